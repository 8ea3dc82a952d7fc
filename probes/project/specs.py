"""Version ranges as pip, Poetry and conda write them.

May live here: parsing specifiers. Must not: which versions exist.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SEPARATORS = re.compile(r"[-_.]+")
_CLAUSE = re.compile(
    r"^(?P<op>===|==|~=|>=|<=|!=|>|<|=|\^|~)? ?v?(?P<version>[0-9][0-9A-Za-z.]*)(?:\+(?P<local>[0-9a-z.]+))?"
    r"(?P<any>\.?\*)?$"
)
_PLAIN = re.compile(r"^[0-9]+(?:\.[0-9]+)*")
LOWEST, HIGHEST = "0", "9999"


@dataclass(frozen=True, slots=True)
class Range:
    """What a specifier asks for: one exact version, or the versions from at_least to under below."""

    text: str
    version: str | None = None
    local: str | None = None
    at_least: str | None = None
    below: str | None = None


def normalised(name: str) -> str:
    """A package name as indexes compare it."""
    return _SEPARATORS.sub("-", name).lower()


def parse(text: str, *, bare: str = "==") -> Range:
    """A specifier; bare: what a version without an operator means."""
    text = " ".join(text.split()).strip("()")
    low, high = LOWEST, HIGHEST
    exact: tuple[str, str | None] | None = None
    for clause in filter(None, (part.strip() for part in text.split(","))):
        found = _CLAUSE.match(clause)
        if found is None:
            continue
        operator, version = found["op"] or bare, found["version"].strip(".")
        if found["any"]:
            operator = "*" if operator in ("==", "=") else operator
        if operator in ("==", "==="):
            exact = _whole(version), found["local"]
        elif operator != "!=":
            from_, to = _bounds(operator, version)
            low, high = max(low, from_, key=_key), min(high, to, key=_key)
    if exact is not None:
        return Range(text, exact[0], exact[1])
    return Range(text, None, None, low, high)


def _bounds(operator: str, version: str) -> tuple[str, str]:
    parts = list(_key(version))
    if operator in (">=", ">"):
        return version, HIGHEST
    if operator == "<":
        return LOWEST, version
    if operator == "<=":
        # The first version above it that could exist.
        return LOWEST, _whole(version) + ".1"
    if operator == "^":
        leading = next((n for n, part in enumerate(parts) if part), len(parts) - 1)
        return version, _next(parts[: leading + 1])
    if operator == "~=":
        return version, _next(parts[:-1] or parts)
    if operator == "~":
        return version, _next(parts[:2])
    return version, _next(parts)  # 2.6.*, and conda's =2.6


def _next(parts: list[int]) -> str:
    return ".".join(map(str, [*parts[:-1], parts[-1] + 1]))


def _whole(version: str) -> str:
    """pip takes ==2.6 for ==2.6.0."""
    return f"{version}.0" if re.match(r"^[0-9]+\.[0-9]+$", version) else version


def _key(version: str) -> tuple[int, ...]:
    found = _PLAIN.match(version)
    return tuple(int(part) for part in found.group().split(".")) if found else ()
