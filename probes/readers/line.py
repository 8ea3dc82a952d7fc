"""One cleaned line of a pasted text; the only thing that readers are given.

May live here: the line model. Must not: cleaning or reading.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A line without quote marks, log prefixes, colours and line end; `number` is 1-based in the original text."""

    number: int
    text: str
