"""The closed set of named functions with which the knowledge computes whole numbers from whole numbers.

May live here: pure functions of integers. Must not: any figure, fact type or product; those are operands, in YAML.

Written `[NAME, OPERAND, ...]`, in the vocabulary for computed fields (operands are fields of the same type or numbers)
and in fixes for `numbers` (operands are `$alias.field` or numbers). A result is unknown where an operand is, or where
the function has no value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..messages import Message


@dataclass(frozen=True, slots=True)
class Function:
    """A function with the number of operands that it takes (at most: None is any number)."""

    call: Callable[[Sequence[int]], int | None]
    least: int
    most: int | None
    about: str


FUNCTIONS: Mapping[str, Function] = {
    "sum": Function(sum, 2, None, "all operands together"),
    "difference": Function(lambda n: n[0] - sum(n[1:]), 2, None, "the first less all others"),
    "product": Function(math.prod, 2, None, "all operands multiplied"),
    "quotient": Function(lambda n: n[0] // n[1] if n[1] else None, 2, 2, "the first by the second, rounded down"),
    "percent": Function(
        lambda n: 100 * n[0] // n[1] if n[1] else None, 2, 2, "the first as percent of the second, rounded down"
    ),
    "largest": Function(max, 2, None, "the largest operand"),
    "smallest": Function(min, 2, None, "the smallest operand"),
}


def operands_fault(name: str, operands: Sequence[object]) -> Message | None:
    """What is wrong with the use of a function, or None."""
    function = FUNCTIONS.get(name)
    if function is None:
        return Message("fault.unknown_function", name=name, known=sorted(FUNCTIONS))
    if len(operands) < function.least or (function.most is not None and len(operands) > function.most):
        return Message("fault.operands" if function.most else "fault.operands_or_more", name=name, n=function.least)
    return None


def compute(name: str, operands: Sequence[object]) -> int | None:
    """The function's value; None where an operand is no whole number."""
    numbers = [n for n in operands if isinstance(n, int) and not isinstance(n, bool)]
    return FUNCTIONS[name].call(numbers) if len(numbers) == len(operands) else None
