"""Signatures: patterns of error lines, given as plain data (knowledge/facts/errors.yaml), and what a match states.

May live here: compiling and matching. Must not: any message text, files, YAML. google-re2 is used where it is
installed, else `re`; the patterns keep to what both read alike, so results are the same.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol, cast

from ...facts import Scalar

MAX_ERROR_TEXT = 400
_BEFORE_MATCH = 60
_UNITS = {"B": 1, "BYTES": 1, "K": 1 << 10, "KIB": 1 << 10, "KB": 1 << 10, "M": 1 << 20, "MIB": 1 << 20, "MB": 1 << 20,
          "G": 1 << 30, "GIB": 1 << 30, "GB": 1 << 30, "T": 1 << 40, "TIB": 1 << 40, "TB": 1 << 40}  # fmt: skip
_AMOUNT = re.compile(r"(?P<number>[0-9]{1,15}(?:\.[0-9]{1,6})?) ?(?P<unit>[A-Za-z]{0,5})", re.ASCII)
_SM_DOTTED = re.compile(r"(?P<major>[0-9]{1,2})\.(?P<minor>[0-9])", re.ASCII)
_SM_JOINED = re.compile(r"(?:sm_|compute_)?(?P<digits>[0-9]{2,3})[af]?$", re.ASCII)


class SignatureError(ValueError):
    """An entry that cannot be compiled; the message names its id."""


class _MatchLike(Protocol):
    def groupdict(self) -> dict[str, str | None]: ...
    def group(self, name: int | str = 0) -> str | None: ...


class _PatternLike(Protocol):
    def search(self, text: str) -> _MatchLike | None: ...


@dataclass(frozen=True, slots=True)
class Statement:
    """A fact that a line states, without its provenance."""

    signature: str
    type: str
    fields: Mapping[str, Scalar]


@dataclass(frozen=True, slots=True)
class _Each:
    """A list inside a message: one fact for each item that the pattern matches whole."""

    group: str
    item: _PatternLike
    convert: Mapping[str, str]
    gives: Mapping[str, Mapping[str, Scalar]]


@dataclass(frozen=True, slots=True)
class _Signature:
    id: str
    pattern: _PatternLike
    literals: tuple[tuple[str, ...], ...]
    where: frozenset[str]
    gives: Mapping[str, Mapping[str, Scalar]]
    convert: Mapping[str, str]
    each: tuple[_Each, ...]
    matched_text: bool


@dataclass(frozen=True, slots=True)
class Signatures:
    """A compiled set of signatures; immutable and shared."""

    entries: tuple[_Signature, ...]

    @staticmethod
    def compile(entries: Sequence[Mapping[str, Any]], *, re2: bool = True) -> Signatures:
        """Compile entries of the catalog; `re2=False` uses the standard library's engine."""
        compiler = _compiler(re2)
        return Signatures(tuple(_compile_entry(entry, compiler) for entry in entries))

    def narrow(self, text: str) -> Signatures:
        """Only the signatures whose fixed part stands somewhere in a text: one fast pass instead of one a line."""
        return Signatures(tuple(entry for entry in self.entries if _may_match(entry, text)))

    def without(self, identifiers: Set[str]) -> Signatures:
        """The others."""
        return Signatures(tuple(entry for entry in self.entries if entry.id not in identifiers))

    def match(self, line: str, where: str = "log") -> list[Statement]:
        """What a line states, in the order of the catalog. `where` is log, question or value."""
        statements: list[Statement] = []
        for entry in self.entries:
            if _may_match(entry, line) and where in entry.where:
                found = entry.pattern.search(line)
                if found is not None:
                    statements.extend(_statements(entry, found, line))
        return statements


def _may_match(entry: _Signature, text: str) -> bool:
    # The first and longest text alone decides for nearly every line and entry.
    return any(runs[0] in text and all(run in text for run in runs[1:]) for runs in entry.literals)


def _compiler(re2: bool) -> Callable[[str], _PatternLike]:
    if re2:
        try:
            module = importlib.import_module("re2")
        except ImportError:
            pass
        else:
            return cast("Callable[[str], _PatternLike]", module.compile)
    return lambda pattern: cast("_PatternLike", re.compile(pattern, re.ASCII))


def _compile_entry(entry: Mapping[str, Any], compiler: Callable[[str], _PatternLike]) -> _Signature:
    identifier = str(entry["id"])
    pattern = str(entry["pattern"])
    where = entry.get("in", ("log",))
    each = entry.get("gives_each", ())
    try:
        return _Signature(
            id=identifier,
            pattern=compiler(pattern),
            literals=literals_of(pattern),
            where=frozenset((where,) if isinstance(where, str) else where),
            gives=entry.get("gives", {"error": {}}),
            convert=entry.get("convert", {}),
            each=tuple(
                _Each(item["split"], compiler(f"^(?:{item['item']})$"), item.get("convert", {}), item["gives"])
                for item in ((each,) if isinstance(each, Mapping) else each)
            ),
            matched_text=entry.get("text") == "match",
        )
    except Exception as error:  # re.error, and RE2's own class
        raise SignatureError(f"{identifier}: {error}") from error


def _statements(entry: _Signature, found: _MatchLike, line: str) -> list[Statement]:
    groups = {name: value for name, value in found.groupdict().items() if value}
    values = _converted(groups, entry.convert)
    statements = []
    for kind, constants in entry.gives.items():
        fields = _resolve(constants, values)
        if kind == "error":
            matched = found.group() or ""
            text = matched[:MAX_ERROR_TEXT] if entry.matched_text else _excerpt(line.strip(), matched)
            fields = {"kind": entry.id, "text": text, **_public(values), **fields}
        if fields:
            statements.append(Statement(entry.id, kind, fields))
    for each in entry.each:
        for item in re.split(r"[ ,;]+", groups.get(each.group, "")):
            match = each.item.search(item) if item else None
            if match is None:
                continue
            captured = {name: value for name, value in match.groupdict().items() if value}
            item_values = {**values, **_converted(captured, each.convert)}
            statements.extend(
                Statement(entry.id, kind, _resolve(constants, item_values)) for kind, constants in each.gives.items()
            )
    return statements


def _excerpt(line: str, matched: str) -> str:
    """The line, or of a long one the part round the match, without the words that the cut goes through.

    Half an address or key no longer looks like one, and would not be taken out of what is shown.
    """
    if len(line) <= MAX_ERROR_TEXT:
        return line
    place = line.find(matched)
    start = max(0, place - _BEFORE_MATCH)
    part = line[start : start + MAX_ERROR_TEXT]
    if start and not line[start - 1].isspace() and " " in part[: place - start]:
        part = part.split(" ", 1)[1]
    end = start + MAX_ERROR_TEXT
    whole = end >= len(line) or line[end].isspace()
    return part if whole or " " not in part else part.rsplit(" ", 1)[0]


def _public(values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    return {name: value for name, value in values.items() if not name.startswith("_")}


def _resolve(constants: Mapping[str, Scalar], values: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """`$name` takes the group's value, or leaves the field out where the group did not take part."""
    fields: dict[str, Scalar] = {}
    for name, constant in constants.items():
        if isinstance(constant, str) and constant.startswith("$"):
            if constant[1:] in values:
                fields[name] = values[constant[1:]]
        else:
            fields[name] = constant
    return fields


def _converted(groups: Mapping[str, str], convert: Mapping[str, str]) -> dict[str, Scalar]:
    """Groups as fields. `field: int` converts the group of that name, `field: mib group` another one."""
    values: dict[str, Scalar] = {name: text for name, text in groups.items() if name not in convert}
    for name, how in convert.items():
        kind, *sources = how.split()
        texts = [groups.get(source, "") for source in sources or [name]]
        value = _CONVERSIONS[kind](*texts) if all(texts) else None
        if value is not None:
            values[name] = value
    return values


def to_int(text: str) -> int | None:
    """A decimal or 0x number."""
    try:
        return int(text, 16 if text.lower().startswith("0x") else 10)
    except ValueError:
        return None


def to_mib(text: str) -> int | None:
    """MiB of `55.88 GiB`, rounded; a bare number is in bytes."""
    match = _AMOUNT.match(text)
    if match is None:
        return None
    unit = _UNITS.get(match.group("unit").upper() or "B")
    return round(float(match.group("number")) * unit / (1 << 20)) if unit else None


def mib_difference(whole: str, part: str) -> int | None:
    """MiB of one amount less those of another; never below 0, as printed amounts are rounded."""
    first, second = to_mib(whole), to_mib(part)
    return None if first is None or second is None else max(0, first - second)


def to_sm(text: str) -> int | None:
    """Compute capability as an integer: 8.9, sm_89, compute_89 and 89 are 89; sm_90a is 90."""
    if match := _SM_DOTTED.match(text):
        return int(match.group("major")) * 10 + int(match.group("minor"))
    match = _SM_JOINED.match(text)
    return int(match.group("digits")) if match else None


_CONVERSIONS: Mapping[str, Callable[..., Scalar | None]] = {
    "int": to_int,
    "mib": to_mib,
    "minus": mib_difference,
    "sm": to_sm,
    "text": str,
}

# What ends a run of literal characters.
_SPECIAL = frozenset(".^$*+?{}[]|()\\")
_MIN_LITERAL = 4


def literals_of(pattern: str) -> tuple[tuple[str, ...], ...]:
    """For each top-level alternative of a pattern the texts that its matches contain, longest first.

    Only the top level is read: a group, a class or a repeated character ends a run of literal characters. An
    alternative without any gives "", which every text contains.
    """
    if pattern.startswith("(?i)"):
        return (("",),)
    alternatives = [[""]]
    position = 0
    while position < len(pattern):
        runs = alternatives[-1]
        char = pattern[position]
        following = pattern[position + 1 : position + 2]
        if char == "|":
            alternatives.append([""])
            position += 1
        elif char in "([":
            position = _skip(pattern, position)
            runs.append("")
        elif char == "\\" and following and not following.isalnum():
            runs[-1] += following
            position += 2
        elif char == "\\":
            runs.append("")
            position += 2
        elif char in "*?{":
            # The character before may be missing.
            runs[-1] = runs[-1][:-1]
            runs.append("")
            position = pattern.index("}", position) + 1 if char == "{" else position + 1
        elif char in _SPECIAL:
            runs.append("")
            position += 1
        else:
            runs[-1] += char
            position += 1
    return tuple(_longest_first(runs) for runs in alternatives)


def _longest_first(runs: Sequence[str]) -> tuple[str, ...]:
    ordered = sorted(dict.fromkeys(runs), key=len, reverse=True)
    return (ordered[0], *(run for run in ordered[1:] if len(run) >= _MIN_LITERAL))


def _skip(pattern: str, position: int) -> int:
    """The position after the group or class that begins here."""
    if pattern[position] == "[":
        position += 2 if pattern[position + 1] == "^" else 1
        position += 1  # a first ] is literal
        while pattern[position] != "]":
            position += 2 if pattern[position] == "\\" else 1
        return position + 1
    depth = 0
    while position < len(pattern):
        char = pattern[position]
        if char == "\\":
            position += 1
        elif char == "[":
            position = _skip(pattern, position) - 1
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth == 0:
                return position + 1
        position += 1
    return position
