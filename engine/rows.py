"""How rows travel inside the engines: as tuples with one position a field.

May live here: the codec between `ir.Row` and tuples, and the canonical order of tuples. Must not: rules' evaluation.

A key is (value of field 0, ..., value of field n-1, extras). An unknown field is None; extras holds the fields that no
rule and no static row mentions, as sorted pairs. The two bools travel as floats, a type that rows cannot hold: so
`True`, `1` and "1" stay three different values under Python's `==` and hash, and a key still sorts at C speed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..facts import Scalar
from .ir import Conclusion, Pattern, Ref, Row, Rule

Key = tuple[Any, ...]
Encoded = str | int | float

_EXACT = frozenset((str, int, bool))
_BOOLS = {False: 0.25, True: 0.75}
_FROM_BOOLS = {0.25: False, 0.75: True}


def encode_value(value: Scalar) -> Encoded:
    """The value as it stands in a key."""
    if isinstance(value, bool):
        return _BOOLS[value]
    if isinstance(value, (int, str)):
        return value
    raise ValueError(f"not a scalar: {value!r}")


def _encoded(type_: str, name: str, value: Scalar) -> Encoded:
    if value.__class__ in _EXACT:
        return encode_value(value)
    raise ValueError(f"row {type_}.{name}: neither str, int nor bool: {value!r}")


def decode_value(value: Encoded) -> Scalar:
    """The inverse of `encode_value`."""
    return _FROM_BOOLS[value] if isinstance(value, float) else value


def _sort_key(key: Key) -> tuple[Any, ...]:
    """A total order over keys whose values are of different kinds; agrees with Python's order where that exists."""
    out: list[Any] = []
    for value in key:
        if value is None:
            out.append((0, 0))
        elif isinstance(value, tuple):
            out.append((3, tuple((name, _sort_key((inner,))) for name, inner in value)))
        else:
            out.append((2 if isinstance(value, str) else 1, value))
    return tuple(out)


def canonical(keys: Iterable[Key]) -> list[Key]:
    """The keys of one type in their canonical order."""
    listed = list(keys)
    try:
        return sorted(listed)
    except TypeError:
        return sorted(listed, key=_sort_key)


class Codec:
    """The positions of the fields that rules and static rows mention, by type."""

    def __init__(self, rules: Iterable[Rule], static: Iterable[Row] = ()) -> None:
        fields: dict[str, set[str]] = {}
        for rule in rules:
            _collect(rule, fields)
        for type_, known in static:
            fields.setdefault(type_, set()).update(known)
        self.names: dict[str, tuple[str, ...]] = {t: tuple(sorted(names)) for t, names in fields.items()}
        self._slots = {t: {name: i for i, name in enumerate(names)} for t, names in self.names.items()}

    def slot(self, type_: str, field: str) -> int:
        """The position of a field that some rule or static row mentions."""
        return self._slots[type_][field]

    def serial(self, type_: str) -> int:
        """The position behind the key, where the engines keep a row's number."""
        return len(self.names.get(type_, ())) + 1

    def encode(self, row: Row) -> tuple[str, Key]:
        """(type, key) of a row; ValueError where a value is not a scalar."""
        type_, fields = row
        get = fields.get
        values: list[Any] = []
        known = 0
        for name in self.names.get(type_, ()):
            value = get(name)
            if value is not None:
                known += 1
                kind = value.__class__
                if kind is not str and kind is not int:
                    values.append(_encoded(type_, name, value))
                    continue
            values.append(value)
        values.append(self._extras(type_, fields) if known < len(fields) else ())
        return type_, tuple(values)

    def _extras(self, type_: str, fields: Mapping[str, Scalar]) -> tuple[tuple[str, Encoded], ...]:
        slots = self._slots.get(type_, {})
        extras = []
        for name, value in fields.items():
            encoded = _encoded(type_, name, value)
            if name not in slots:
                extras.append((name, encoded))
        return tuple(sorted(extras))

    def decode(self, type_: str, key: Sequence[Any]) -> dict[str, Scalar]:
        """The known fields of a key (anything behind the extras is ignored)."""
        names = self.names.get(type_, ())
        fields = {name: decode_value(v) for name, v in zip(names, key, strict=False) if v is not None}
        fields.update((name, decode_value(v)) for name, v in key[len(names)])
        return fields


def _collect(rule: Rule, fields: dict[str, set[str]]) -> None:
    """Adds the fields that a rule mentions to the fields of their types."""
    types: dict[str, str] = {}
    for pattern in rule.patterns:
        types[pattern.alias] = pattern.type
    for pattern in rule.patterns:
        _collect_pattern(pattern, types, fields)
    for conclusion in rule.conclusions:
        _collect_conclusion(conclusion, types, fields)


def _collect_pattern(pattern: Pattern, types: dict[str, str], fields: dict[str, set[str]]) -> None:
    own = fields.setdefault(pattern.type, set())
    own.update(test.field for test in pattern.tests)
    for join in pattern.joins:
        own.add(join.field)
        fields.setdefault(types[join.alias], set()).add(join.other)


def _collect_conclusion(conclusion: Conclusion, types: dict[str, str], fields: dict[str, set[str]]) -> None:
    fields.setdefault(conclusion.type, set()).update(conclusion.fields)
    for value in conclusion.fields.values():
        if isinstance(value, Ref):
            fields.setdefault(types[value.alias], set()).add(value.field)
