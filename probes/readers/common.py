"""Small pieces that several readers need: lists of facts, package names, vendors, platforms.

May live here: pure functions without any layout. Must not: patterns of one layout.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ...facts import Fact, Provenance, Scalar
from .line import Line

# What programs print where they found nothing; never a value.
ABSENT = frozenset(
    {
        "", "-", "none", "null", "n/a", "na", "no cuda", "could not collect", "not supported", "err!", "unknown",
        "unknown error", "not available", "not found", "undefined",
    }
)  # fmt: skip
_SEPARATORS = re.compile(r"[-_.]+")
_LEADING_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)*", re.ASCII)
_MAX_PROVENANCE = 20

MACHINES = {
    "x86_64": "x86_64", "amd64": "x86_64", "x64": "x86_64", "aarch64": "aarch64", "arm64": "arm64",
    "ppc64le": "ppc64le", "i686": "i686", "i386": "i686", "x86": "i686",
}  # fmt: skip
# Vendor ids of PCI functions; each reader adds what else its layout knows.
PCI_VENDORS = {"10de": "nvidia", "1002": "amd", "8086": "intel"}
_VENDOR_WORDS = (
    ("nvidia", ("nvidia", "geforce", "tesla ", "quadro", "titan")),
    ("amd", ("amd ", "amd(", "radeon", "instinct")),
    ("intel", ("intel",)),
    ("apple", ("apple",)),
)


def leading_number(text: str) -> str | None:
    """`13.2.1` of `13.2.1-6ubuntu2`."""
    match = _LEADING_NUMBER.match(text)
    return match.group() if match else None


def package_name(name: str) -> str:
    """The normalised name of a package."""
    return _SEPARATORS.sub("-", name).lower()


def vendor_of(name: str) -> str | None:
    """The GPU vendor that a marketing name contains."""
    lowered = f"{name.lower()} "
    for vendor, words in _VENDOR_WORDS:
        if any(word in lowered for word in words):
            return vendor
    return None


class FactList:
    """Facts of one reader and text, each with the line that states it."""

    def __init__(self, source: str, reader: str) -> None:
        self._source = source
        self._reader = reader
        self.facts: list[Fact] = []

    def add(self, kind: str, fields: Mapping[str, Scalar | None], line: Line | None) -> None:
        """Add a fact from its known fields; without any there is no fact."""
        known = {name: value for name, value in fields.items() if value is not None}
        if known:
            place = Provenance("report", self._source, line.number if line else None, self._reader)
            self.facts.append(Fact(kind, known, (place,)))

    def coverage(self, domain: str, complete: bool, line: Line | None) -> None:
        """Say how much of a domain was seen."""
        self.add("coverage", {"domain": domain, "complete": complete}, line)


def merge_equal(facts: Iterable[Fact]) -> list[Fact]:
    """Facts that say the same become one that names all places (a flood of equal lines: the first of them)."""
    merged: dict[tuple[str, tuple[tuple[str, Scalar], ...]], Fact] = {}
    for fact in facts:
        key = _typed_key(fact)
        known = merged.get(key)
        if known is None:
            merged[key] = fact
        elif len(known.provenance) < _MAX_PROVENANCE:
            new = tuple(place for place in fact.provenance if place not in known.provenance)
            merged[key] = Fact(fact.type, fact.fields, known.provenance + new)
    return list(merged.values())


def _typed_key(fact: Fact) -> tuple[str, tuple[tuple[str, Scalar], ...]]:
    # True == 1 in Python, but they are different values of a fact.
    return fact.type, tuple(sorted((f"{name}:{type(value).__name__}", value) for name, value in fact.fields.items()))
