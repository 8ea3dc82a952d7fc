"""What is said of a source beside its address: its kind and the day on which it was opened.

May live here: that remark in each language. Must not: which sources there are, layout.
"""

from __future__ import annotations

from .messages import Words
from .model import Source


def remark(source: Source, words: Words) -> str:
    """`official docs, 2026-11-30`; of a page that was only named it says so. Empty where nothing is known."""
    kind = words.named(f"source.{source.kind}", "") if source.kind else ""
    day = words("source.unopened") if source.opened is False else source.retrieved or ""
    return words("source.remark", kind=kind, day=day) if kind and day else kind or day


def with_remark(text: str, source: Source | None, words: Words) -> str:
    """The text with the remark in brackets behind it."""
    told = remark(source, words) if source else ""
    return words("source.with", text=text, remark=told) if told else text
