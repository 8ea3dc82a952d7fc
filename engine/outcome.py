"""What became of a rule in a run: fired, or how far it came and what stopped it.

May live here: the deepest partial match of one rule. Must not: text for people, coverage of probes, GPUs.

Positive patterns are tried in the rule's order, then negated ones. Where several partial matches come equally far, one
that fails for something unknown is preferred, then the one with fewest false equalities (they say which row is meant;
of many rows only those that the first equal join names are looked at), then fewest false conditions, then the lowest
row ids. A binding that one negated pattern certainly blocks is blocked, whatever is unknown about another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..facts import Scalar
from .ir import Join, Pattern, Rule, Test
from .memory import Justification, WorkingMemory
from .rows import encode_value
from .truth import holds

State = Literal["fired", "not_applicable", "not_checked"]
Reason = Literal["no_row", "test_false", "unknown_field", "blocked", "maybe_blocked"]

# A rule may match thousands of catalog rows part of the way; what stops the first ones stops the others too.
MAX_PARTIAL = 1000
MAX_EXPLAINED = 20
_MANY = 1000  # more than a pattern has conditions
MAX_NEAR = 200  # rows that are compared to find the nearest


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state of a rule and, unless it fired, its deepest partial match.

    matched: the rows of the positive patterns that did match, in the rule's order.
    pattern: the position in `rule.patterns` of the first pattern that failed.
    row, test, field: the row that comes nearest (or blocks), the condition it fails, the field that is unknown.
    """

    rule: str
    state: State
    firings: tuple[Justification, ...] = ()
    matched: tuple[int, ...] = ()
    pattern: int | None = None
    reason: Reason | None = None
    row: int | None = None
    test: Test | Join | None = None
    field: str | None = None


@dataclass(frozen=True, slots=True)
class _Failure:
    """Why a pattern found no row; smaller rank explains better."""

    rank: tuple[int, int, int]
    reason: Reason
    row: int | None = None
    test: Test | Join | None = None
    field: str | None = None


def outcome(rule: Rule, memory: WorkingMemory) -> Outcome:
    """What became of the rule in this run."""
    firings = memory.firings(rule.id)
    if firings:
        return Outcome(rule.id, "fired", firings, firings[0].premises)
    return deepest(rule, memory)


def deepest(rule: Rule, memory: WorkingMemory) -> Outcome:
    """How far the patterns of a rule match, whether or not a rule of that id fired: for rules made for a question."""
    return _Search(rule, memory).run()


class _Search:
    """The search for the deepest partial match of one rule."""

    def __init__(self, rule: Rule, memory: WorkingMemory) -> None:
        self.rule, self.memory = rule, memory
        self.positive = [(i, p) for i, p in enumerate(rule.patterns) if not p.negated]
        self.negative = [(i, p) for i, p in enumerate(rule.patterns) if p.negated]
        self.numbers = {p.alias: n for n, (_, p) in enumerate(self.positive)}

    def run(self) -> Outcome:
        partial: list[tuple[int, ...]] = [()]
        for position, pattern in self.positive:
            grown = self._grow(pattern, partial)
            if not grown:
                rows = _Near(pattern, self)
                failures = [(self._failure(pattern, rows, bound), bound) for bound in partial[:MAX_EXPLAINED]]
                return self._report(position, *min(failures, key=lambda f: (f[0].rank, f[1])))
            partial = grown
        return self._negated(partial)

    def _negated(self, partial: list[tuple[int, ...]]) -> Outcome:
        """All positive patterns match; a binding that nothing certainly blocks explains better than one that is."""
        best: tuple[tuple[int, int, tuple[int, ...]], int, _Failure] | None = None
        for bound in partial:
            failures = [(position, f) for position, p in self.negative if (f := self._blocker(p, bound)) is not None]
            if not failures:
                return Outcome(self.rule.id, "fired", (), bound)
            position, failure = next((f for f in failures if f[1].reason == "blocked"), failures[0])
            rank = (failure.rank[0], -position, bound)
            if best is None or rank < best[0]:
                best = (rank, position, failure)
        assert best is not None
        return self._report(best[1], best[2], best[0][2])

    def _report(self, position: int, failure: _Failure, matched: tuple[int, ...]) -> Outcome:
        unknown = failure.reason in ("no_row", "unknown_field", "maybe_blocked")
        return Outcome(
            self.rule.id,
            "not_checked" if unknown else "not_applicable",
            (),
            matched,
            position,
            failure.reason,
            failure.row,
            failure.test,
            failure.field,
        )

    # -- positive patterns ------------------------------------------------------------------------------------------

    def _grow(self, pattern: Pattern, partial: list[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """The partial matches with one more row each."""
        rows_of = self.memory.rows
        known = self.memory.of_type(pattern.type)
        key = next((j for j in pattern.joins if j.op == "eq"), None)
        index: dict[Any, list[int]] = {}
        if key is None:
            known = [i for i in known if self._passes(pattern, i)]
        else:
            for i in known:
                value = rows_of[i][1].get(key.field)
                if value is not None:
                    index.setdefault(encode_value(value), []).append(i)
        grown: list[tuple[int, ...]] = []
        for bound in partial:
            rows: Sequence[int] = known
            if key is not None:
                other = self.other(key, bound)
                rows = index.get(encode_value(other), ()) if other is not None else ()
            for i in rows:
                if (
                    i not in bound
                    and (key is None or self._passes(pattern, i))
                    and all(holds(j.op, self.get(i, j.field), self.other(j, bound)) for j in pattern.joins)
                ):
                    grown.append((*bound, i))
                    if len(grown) == MAX_PARTIAL:
                        return grown
        return grown

    def _passes(self, pattern: Pattern, i: int) -> bool:
        """Whether a row passes the tests of a pattern."""
        fields = self.memory.rows[i][1]
        return all(holds(t.op, fields.get(t.field), t.value) for t in pattern.tests)

    def _failure(self, pattern: Pattern, rows: _Near, bound: tuple[int, ...]) -> _Failure:
        """What keeps the nearest row of the type from matching."""
        best = _Failure((2, 0, 0), "no_row")
        for i in rows.around(bound):
            if i not in bound:
                failure = self._near_miss(i, pattern, bound)
                if best.row is None or failure.rank < best.rank:
                    best = failure
        return best

    def _near_miss(self, i: int, pattern: Pattern, bound: tuple[int, ...]) -> _Failure:
        verdicts = list(self._verdicts(i, pattern, bound))
        false = [condition for condition, verdict in verdicts if verdict is False]
        if false:
            unequal = sum(condition.op == "eq" for condition in false)
            return _Failure((1, unequal * _MANY + len(false), i), "test_false", i, false[0])
        condition = next(condition for condition, verdict in verdicts if verdict is None)
        row, field = self._unknown(i, condition, bound)
        return _Failure((0, sum(v is None for _, v in verdicts), i), "unknown_field", row, condition, field)

    # -- negated patterns -------------------------------------------------------------------------------------------

    def _blocker(self, pattern: Pattern, bound: tuple[int, ...]) -> _Failure | None:
        """The row that makes a negated pattern fail: a certain one before a possible one."""
        best: _Failure | None = None
        for i in self.memory.of_type(pattern.type):
            verdicts = list(self._verdicts(i, pattern, bound))
            if any(verdict is False for _, verdict in verdicts):
                continue
            condition = next((condition for condition, verdict in verdicts if verdict is None), None)
            if condition is None:
                return _Failure((1, 0, i), "blocked", i)
            if best is None:
                row, field = self._unknown(i, condition, bound)
                best = _Failure((0, 0, i), "maybe_blocked", row, condition, field)
        return best

    # -- conditions -------------------------------------------------------------------------------------------------

    def _verdicts(self, i: int, pattern: Pattern, bound: tuple[int, ...]) -> Iterator[tuple[Test | Join, bool | None]]:
        for test in pattern.tests:
            yield test, holds(test.op, self.get(i, test.field), test.value)
        for join in pattern.joins:
            yield join, holds(join.op, self.get(i, join.field), self.other(join, bound))

    def _unknown(self, i: int, condition: Test | Join, bound: tuple[int, ...]) -> tuple[int, str]:
        """The row and field that is unknown in a condition."""
        if isinstance(condition, Join) and self.get(i, condition.field) is not None:
            return bound[self.numbers[condition.alias]], condition.other
        return i, condition.field

    def get(self, i: int, field: str) -> Scalar | None:
        return self.memory.rows[i][1].get(field)

    def other(self, join: Join, bound: tuple[int, ...]) -> Scalar | None:
        return self.get(bound[self.numbers[join.alias]], join.other)


class _Near:
    """The rows of a pattern's type among which the nearest is looked for."""

    def __init__(self, pattern: Pattern, search: _Search) -> None:
        self.search = search
        self.rows = search.memory.of_type(pattern.type)
        self.key = next((j for j in pattern.joins if j.op == "eq"), None)
        self.index: dict[Any, list[int]] = {}
        if self.key is not None and len(self.rows) > MAX_NEAR:
            for i in self.rows:
                value = search.get(i, self.key.field)
                self.index.setdefault(None if value is None else encode_value(value), []).append(i)

    def around(self, bound: tuple[int, ...]) -> Sequence[int]:
        """All rows of a small type; of a large one those that the first equal join names, or the first ones."""
        if self.key is not None and self.index:
            value = self.search.other(self.key, bound)
            named = [*self.index.get(None, ()), *(self.index.get(encode_value(value), ()) if value is not None else ())]
            if named:
                return named[:MAX_NEAR]
        return self.rows[:MAX_NEAR]
