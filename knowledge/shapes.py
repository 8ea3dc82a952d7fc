"""What pydantic finds wrong with a file, in our own words.

May live here: the way from a pydantic error to a message. Must not: any check, any words.
A validator of ours raises ValueError with the part of the message's id behind `shape.`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..messages import NOTHING, Message, known

_QUOTED = re.compile("'([^']*)'")


def shape_fault(error: Mapping[str, Any], hint: Message = NOTHING) -> Message:
    """The message of one entry of `ValidationError.errors()`; hint: what an unknown field may have meant."""
    kind = str(error["type"])
    if kind == "value_error":
        return Message(f"shape.{error['ctx']['error']}")
    if not known(f"shape.{kind}"):
        return Message("shape.other", text=error["msg"])
    values = dict(error.get("ctx", {}))
    if kind == "literal_error":
        values["expected"] = _QUOTED.findall(values["expected"])
    return Message(f"shape.{kind}", hint=hint, **values)
