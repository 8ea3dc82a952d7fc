"""Readers of pasted text: bytes in, facts out. One module a layout; every reader scans all lines for its own.

May live here: the dispatcher. Must not: layouts, rules. Knowledge (signatures) is passed in as data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...facts import Fact
from . import (
    collect_env,
    environment,
    errors,
    kernel_log,
    lspci,
    nvidia_smi,
    packages,
)
from .clean import clean
from .common import merge_equal
from .line import Line
from .signatures import Signatures

_READERS: tuple[tuple[str, Callable[[Sequence[Line], str], list[Fact]]], ...] = (
    ("collect_env", collect_env.read),
    ("nvidia_smi", nvidia_smi.read),
    ("kernel_log", kernel_log.read),
    ("lspci", lspci.read),
    ("packages", packages.read),
    ("environment", environment.read),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says. `layouts`: which readers found something; `refused`: why nothing was read."""

    facts: tuple[Fact, ...]
    layouts: tuple[str, ...]
    truncated: bool = False
    refused: str | None = None


def read_text(data: bytes | str, source: str, signatures: Signatures) -> Reading:
    """Facts of a pasted text, recognised by content; one text may mix several outputs."""
    cleaned = clean(data)
    if cleaned.refused:
        return Reading((), (), cleaned.truncated, cleaned.refused)
    facts: list[Fact] = []
    layouts: list[str] = []
    for layout, read in _READERS:
        found = read(cleaned.lines, source)
        if found:
            layouts.append(layout)
            facts.extend(found)
    found = errors.read(cleaned.lines, source, signatures)
    if found:
        layouts.append("errors")
        facts.extend(found)
    return Reading(tuple(merge_equal(facts)), tuple(layouts), cleaned.truncated)
