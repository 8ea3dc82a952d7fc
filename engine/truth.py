"""Kleene's truth of one condition on scalars, as `ir.py` specifies it.

May live here: `holds`. Must not: rows, rules, search.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ..facts import Scalar
from .analysis import ORDERING
from .rows import encode_value

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}


def holds(op: str, value: Scalar | None, other: Any) -> bool | None:
    """Whether `value op other`; None where a side is unknown."""
    if value is None or other is None:
        return None
    if op == "known":
        return True
    if op in ("in", "not_in"):
        return (encode_value(value) in {encode_value(v) for v in other}) is (op == "in")
    if op in ORDERING:
        return type(value) is int and type(other) is int and _COMPARE[op](value, other)
    return (encode_value(value) == encode_value(other)) is (op == "eq")
