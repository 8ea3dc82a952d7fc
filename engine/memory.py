"""Working memory: the rows of one run with every justification, and the journal an engine writes to make it.

May live here: row ids, justifications, static rows shared by runs. Must not: matching, GPUs, proof search.

Ids. Static rows come first and have the same id in every run; the rows of the run follow, ordered by type and content.
So ids depend on what the rows are, never on the order in which rules or rows were looked at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, overload

from .ir import Row
from .rows import Codec, Key, canonical

Record = tuple[Any, ...]
"""(rule id, serial of the row of each positive pattern): a justification as the engines note it."""


@dataclass(frozen=True, slots=True, order=True)
class Justification:
    """One firing: the rule and the ids of the rows of its positive patterns, in the rule's order."""

    rule: str
    premises: tuple[int, ...]


class StaticRows:
    """Rows and justifications that hold in every run of a rule base; a row's serial is its id."""

    def __init__(self, rows: Sequence[tuple[str, Key]] = (), derived: Iterable[int] = ()) -> None:
        self.order: tuple[tuple[str, Key], ...] = tuple((t, (*key, i)) for i, (t, key) in enumerate(rows))
        self.derived = frozenset(derived)
        self.justs: dict[int, tuple[Justification, ...]] = {}
        self.firings: dict[str, set[Justification]] = {}
        self.decoded: dict[int, Row] = {}
        self.by_type: dict[str, list[Key]] = {}
        self.ids: dict[str, dict[Key, int]] = {}
        for i, (type_, key) in enumerate(rows):
            self.by_type.setdefault(type_, []).append(self.order[i][1])
            self.ids.setdefault(type_, {})[key] = i

    @classmethod
    def freeze(cls, memory: WorkingMemory) -> StaticRows:
        """The static rows that a run over nothing but static rows has closed."""
        rows = [(type_, row[:-1]) for type_, row in memory.encoded()]
        frozen = cls(rows, (i for i in range(len(rows)) if not memory.given(i)))
        frozen.justs = {i: js for i in range(len(rows)) if (js := memory.justifications(i))}
        for firings in frozen.justs.values():
            for firing in firings:
                frozen.firings.setdefault(firing.rule, set()).add(firing)
        return frozen

    def find(self, type_: str, key: Key) -> int | None:
        """The id of a static row."""
        ids = self.ids.get(type_)
        return None if ids is None else ids.get(key)


class Journal:
    """What one run has found so far; an engine gives the rows of the run first and then adds conclusions."""

    def __init__(self, codec: Codec, static: StaticRows) -> None:
        self.codec = codec
        self.static = static
        self.rows: defaultdict[str, list[Key]] = defaultdict(list)
        self.new: defaultdict[str, list[Key]] = defaultdict(list)
        self.ids: defaultdict[str, dict[Key, list[Record]]] = defaultdict(dict)
        self.justs: list[list[Record]] = []
        self.static_justs: defaultdict[int, list[Record]] = defaultdict(list)
        self.given_static: set[int] = set()
        self.given_count = 0

    def give(self, row: Row) -> None:
        """A row of the run's input."""
        type_, key = self.codec.encode(row)
        known = self.ids[type_]
        if key in known:
            return
        static = self.static.find(type_, key)
        if static is not None:
            self.given_static.add(static)
            return
        noted: list[Record] = []
        known[key] = noted
        self.rows[type_].append((*key, len(self.static.order) + len(self.justs)))
        self.justs.append(noted)
        self.given_count = len(self.justs)

    def add(self, type_: str, key: Key) -> list[Record]:
        """Where to note the justifications of a concluded row that `ids` does not have yet."""
        static = self.static.find(type_, key)
        noted: list[Record]
        if static is None:
            noted = []
            self.new[type_].append((*key, len(self.static.order) + len(self.justs)))
            self.justs.append(noted)
        else:
            noted = self.static_justs[static]
        self.ids[type_][key] = noted
        return noted

    def close(self) -> WorkingMemory:
        """The working memory of the finished run."""
        for type_, rows in self.new.items():
            self.rows[type_].extend(rows)
        self.new.clear()
        return WorkingMemory(self)


class _Rows(Sequence[Row]):
    """Rows decoded when they are looked at."""

    def __init__(self, codec: Codec, static: StaticRows, order: Sequence[tuple[str, Key]]) -> None:
        self._codec, self._static, self._order = codec, static, order
        self._seen: dict[int, Row] = {}
        self._first = len(static.order)

    def __len__(self) -> int:
        return self._first + len(self._order)

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        i = range(len(self))[index]
        # static rows are decoded once for all runs
        seen = self._static.decoded if i < self._first else self._seen
        row = seen.get(i)
        if row is None:
            type_, key = self.key(i)
            row = seen[i] = (type_, MappingProxyType(self._codec.decode(type_, key)))
        return row

    def key(self, i: int) -> tuple[str, Key]:
        return self._static.order[i] if i < self._first else self._order[i - self._first]


class WorkingMemory:
    """The result of a run; read-only. `rows[id]` is a row."""

    def __init__(self, journal: Journal) -> None:
        self._static = static = journal.static
        self._first = len(static.order)
        self._codec = journal.codec
        self._order: list[tuple[str, Key]] = []
        self._spans: dict[str, range] = {}
        for type_ in sorted(journal.rows):
            start = self._first + len(self._order)
            # keys of one type are unique, so the serial behind the extras never decides
            self._order += [(type_, row) for row in canonical(journal.rows[type_])]
            self._spans[type_] = range(start, self._first + len(self._order))
        self._serials: list[int] = [row[-1] - self._first for _, row in self._order]
        self._rank = [0] * len(self._serials)
        for i, serial in enumerate(self._serials):
            self._rank[serial] = i + self._first
        self._justs = journal.justs
        self._static_justs = dict(journal.static_justs)
        self._given_static = journal.given_static
        self._given_count = journal.given_count
        self._cache: dict[int, tuple[Justification, ...]] = {}
        self._by_key: dict[tuple[str, Key], int] | None = None
        self._by_rule: Mapping[str, tuple[Justification, ...]] | None = None
        self._decoded = _Rows(self._codec, static, self._order)

    @property
    def rows(self) -> Sequence[Row]:
        """All rows by id."""
        return self._decoded

    def encoded(self) -> Iterator[tuple[str, Key]]:
        """(type, key and serial) of all rows by id, for engines."""
        return (self._decoded.key(i) for i in range(len(self._decoded)))

    def given(self, row_id: int) -> bool:
        """Whether the row was an input, static or of this run (it may be concluded too)."""
        if row_id < self._first:
            return row_id not in self._static.derived or row_id in self._given_static
        return self._given_count > self._serials[row_id - self._first]

    def static(self, row_id: int) -> bool:
        """Whether the row holds in every run of the rule base."""
        return row_id < self._first

    def of_type(self, type_: str) -> Sequence[int]:
        """The ids of a type's rows, ascending."""
        static: Sequence[int] = [row[-1] for row in self._static.by_type.get(type_, ())]
        span = self._spans.get(type_, range(0))
        return [*static, *span] if static else span

    def find(self, row: Row) -> int | None:
        """The id of the row with this content."""
        type_, key = self._codec.encode(row)
        static = self._static.find(type_, key)
        if static is not None:
            return static
        if self._by_key is None:
            self._by_key = {(t, r[:-1]): i for i, (t, r) in enumerate(self._order, self._first)}
        return self._by_key.get((type_, key))

    def justifications(self, row_id: int) -> tuple[Justification, ...]:
        """Every firing that concludes the row, sorted."""
        cached = self._cache.get(row_id)
        if cached is None:
            if row_id < self._first:
                found = {*self._static.justs.get(row_id, ()), *map(self._ranked, self._static_justs.get(row_id, ()))}
            else:
                found = set(map(self._ranked, self._justs[self._serials[row_id - self._first]]))
            cached = self._cache[row_id] = tuple(sorted(found, key=_order))
        return cached

    def firings(self, rule_id: str) -> tuple[Justification, ...]:
        """Every firing of a rule, sorted."""
        if self._by_rule is None:
            grouped: defaultdict[str, set[Justification]] = defaultdict(set)
            for records in (*self._justs, *self._static_justs.values()):
                for record in records:
                    grouped[record[0]].add(self._ranked(record))
            for rule, firings in self._static.firings.items():
                grouped[rule] |= firings
            self._by_rule = {rule: tuple(sorted(found, key=_order)) for rule, found in grouped.items()}
        return self._by_rule.get(rule_id, ())

    def _ranked(self, record: Record) -> Justification:
        first, rank = self._first, self._rank
        return Justification(record[0], tuple([s if s < first else rank[s - first] for s in record[1:]]))


def _order(firing: Justification) -> tuple[str, tuple[int, ...]]:
    return firing.rule, firing.premises
