"""The native engine: forward chaining over compiled rules; the default, and the reference for the others.

May live here: the immutable rule base and the session of one run. Must not: GPUs, files, text for people.

Rules are grouped into levels (see `analysis.py`), so all but recursive rules are matched exactly once a run, over
complete inputs; recursive ones go on from the new rows only. A rule whose rows are absent is never even compiled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .analysis import Level, RuleError, check_rules, levels, negatives, positives
from .codegen import Mode, Plan, StaticIndexes, build_index
from .ir import Row, Rule
from .memory import Journal, Justification, StaticRows, WorkingMemory
from .rows import Codec, Key

__all__ = ["Justification", "RuleBase", "RuleError", "WorkingMemory"]


class RuleBase:
    """Rules and the static rows they all see; immutable, to be shared between threads and runs.

    Raises RuleError where the rules are not well-formed or their negation is not stratified.
    """

    def __init__(self, rules: Iterable[Rule], static: Iterable[Row] = ()) -> None:
        self.rules: tuple[Rule, ...] = tuple(rules)
        check_rules(self.rules)
        order = levels(self.rules)
        static = tuple(static)
        self._codec = Codec(self.rules, static)
        closing = _Program(self.rules, order, closable(self.rules, static), self._codec, StaticRows(), closing=True)
        self._static = StaticRows.freeze(closing.run(static))
        everything = frozenset(range(len(self.rules)))
        self._program = _Program(self.rules, order, everything, self._codec, self._static)

    def run(self, rows: Iterable[Row]) -> WorkingMemory:
        """The fixpoint over the static rows and these rows."""
        return self._program.run(rows)


def closable(rules: Sequence[Rule], static: Sequence[Row]) -> frozenset[int]:
    """The rules without negation that static rows alone may fire."""
    reached = {type_ for type_, _ in static}
    found: set[int] = set()
    before = -1
    while len(found) > before:
        before = len(found)
        for number, rule in enumerate(rules):
            if number not in found and all(p.type in reached and not p.negated for p in rule.patterns):
                found.add(number)
                reached.update(c.type for c in rule.conclusions)
    return frozenset(found)


def _start_rank(rule: Rule, i: int) -> tuple[int, int, int]:
    """Lower is better to start at: a type picked by equality, then one with more tests."""
    tests = positives(rule)[i].tests
    return -min(1, sum(t.op == "eq" for t in tests)), -len(tests), i


class _Dispatch:
    """The plans that start at one type, by the value of the field they pick their start rows with."""

    def __init__(self) -> None:
        self.tables: dict[int, dict[Any, list[Plan]]] = {}
        self.rest: list[Plan] = []

    def add(self, plan: Plan) -> None:
        if plan.dispatch is None:
            self.rest.append(plan)
        else:
            slot, value = plan.dispatch
            self.tables.setdefault(slot, {}).setdefault(value, []).append(plan)


class _Stage:
    """A level made ready: plans over all rows, over cached static bindings, and over new rows of recursive types."""

    def __init__(self) -> None:
        self.full: dict[str, _Dispatch] = {}
        self.cached: list[tuple[Plan, _Bindings]] = []
        self.delta: dict[str, _Dispatch] = {}


class _Bindings:
    """The static rows that match a rule with negation, found at the first run that needs them."""

    def __init__(self, plan: Plan, static: StaticIndexes) -> None:
        self._plan, self._static = plan, static
        self._found: list[tuple[Key, ...]] | None = None

    def get(self) -> list[tuple[Key, ...]]:
        if self._found is None:
            found: list[tuple[Key, ...]] = []
            start = self._plan.positive[self._plan.start].type if self._plan.positive else None
            self._plan.compile(self._static)([()] if start is None else self._static.rows[start], found)
            self._found = found
        return self._found


class _Program:
    """Some rules of a rule base, ready to run over some static rows.

    closing: the run that finds the static rows; later runs leave out what it has concluded.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        order: Sequence[Level],
        chosen: frozenset[int],
        codec: Codec,
        static: StaticRows,
        *,
        closing: bool = False,
    ) -> None:
        self._codec, self._static, self._closing = codec, static, closing
        self._indexed = StaticIndexes(static.by_type)
        self._static_types = frozenset(static.by_type)
        self._stages = [self._stage(rules, level, chosen) for level in order]

    def run(self, rows: Iterable[Row]) -> WorkingMemory:
        session = _Session(self._codec, self._static, self._indexed)
        for row in rows:
            session.give(row)
        for stage in self._stages:
            session.run(stage)
        return session.close()

    def _stage(self, rules: Sequence[Rule], level: Level, chosen: frozenset[int]) -> _Stage:
        stage = _Stage()
        for number in level.rules:
            if number in chosen:
                self._add_rule(stage, rules[number], level)
        return stage

    def _add_rule(self, stage: _Stage, rule: Rule, level: Level) -> None:
        types = [p.type for p in positives(rule)]
        ranked = sorted(range(len(types)), key=lambda i: _start_rank(rule, i))
        moving = [i for i in ranked if types[i] not in self._static_types]
        if moving:
            self._add_plan(stage.full, rule, moving[0], "full")
        else:
            for i in ranked:
                self._add_plan(stage.full, rule, i, "mixed")
            if self._closing or negatives(rule):
                stage.cached.append(self._cached(rule, ranked[0] if ranked else 0))
        for i, type_ in enumerate(types):
            if type_ in level.recursive:
                self._add_plan(stage.delta, rule, i, "delta")

    def _add_plan(self, into: dict[str, _Dispatch], rule: Rule, start: int, mode: Mode) -> None:
        plan = Plan(rule, start, mode, self._codec, self._static_types)
        dispatch = into.get(plan.positive[start].type)
        if dispatch is None:
            dispatch = into[plan.positive[start].type] = _Dispatch()
        dispatch.add(plan)

    def _cached(self, rule: Rule, start: int) -> tuple[Plan, _Bindings]:
        collect = Plan(rule, start, "collect", self._codec, self._static_types)
        return Plan(rule, start, "cached", self._codec, self._static_types), _Bindings(collect, self._indexed)


class _Session(Journal):
    """One run: the journal and the indexes over its rows."""

    def __init__(self, codec: Codec, static: StaticRows, indexed: StaticIndexes) -> None:
        super().__init__(codec, static)
        self.indexed = indexed
        self._indexes: dict[str, dict[tuple[int, ...], dict[Any, list[Key]]]] = {}

    def index(self, type_: str, slots: tuple[int, ...]) -> dict[Any, list[Key]]:
        """The index over the session's rows of a type, made when it is first looked at."""
        indexes = self._indexes.get(type_)
        if indexes is None:
            indexes = self._indexes[type_] = {}
        index = indexes.get(slots)
        if index is None:
            index = indexes[slots] = build_index(self.rows.get(type_, ()), slots, {})
        return index

    def run(self, stage: _Stage) -> None:
        """Matches the rules of one level to the fixpoint."""
        for type_, dispatch in stage.full.items():
            if type_ in self.rows:
                self._start(dispatch, type_, self.rows[type_])
        for plan, bindings in stage.cached:
            plan.run(bindings.get(), self)
        while True:
            waiting = [type_ for type_ in stage.delta if type_ in self.new]
            if not waiting:
                break
            batch = self._admit(waiting[0])
            self._start(stage.delta[waiting[0]], waiting[0], batch, fresh=True)
        for type_ in list(self.new):
            self._admit(type_)

    def _start(self, dispatch: _Dispatch, type_: str, rows: list[Key], *, fresh: bool = False) -> None:
        for slot, table in dispatch.tables.items():
            index = build_index(rows, (slot,), {}) if fresh else self.index(type_, (slot,))
            for value in index if len(index) < len(table) else table:
                if value in table and value in index:
                    for plan in table[value]:
                        plan.run(index[value], self)
        for plan in dispatch.rest:
            plan.run(rows, self)

    def _admit(self, type_: str) -> list[Key]:
        """Makes new rows visible to rules."""
        batch = self.new.pop(type_)
        self.rows[type_].extend(batch)
        for slots, index in self._indexes.get(type_, {}).items():
            build_index(batch, slots, index)
        return batch
