"""What patterns can never do: contradict themselves, conclude an absence that nobody looked for, repeat another rule.

May live here: checks of single IR rules and of pairs of them. Must not: files and lines, evaluation, any name of a type
but `coverage`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ..engine.analysis import ORDERING
from ..engine.ir import Conclusion, Pattern, Ref, Rule, Test
from ..engine.truth import holds
from ..facts import Scalar
from .vocabulary import TypeSpec

_Key = tuple[type, Scalar]
_ORDERS: Mapping[str, frozenset[str]] = {
    "eq": frozenset("="),
    "ne": frozenset("<>"),
    "lt": frozenset("<"),
    "le": frozenset("<="),
    "gt": frozenset(">"),
    "ge": frozenset(">="),
}


# --- one pattern ------------------------------------------------------------------------------------------------------


def contradiction(pattern: Pattern, spec: TypeSpec) -> str | None:
    """The field on which the tests or joins of a pattern contradict one another, or None."""
    by_field: dict[str, list[Test]] = {}
    for test in pattern.tests:
        by_field.setdefault(test.field, []).append(test)
    for field, tests in by_field.items():
        if not _satisfiable(tests, _domain(field, spec)):
            return field.partition("__")[0]
    possible: dict[tuple[str, str, str], frozenset[str]] = {}
    for join in pattern.joins:
        key = (join.field, join.alias, join.other)
        possible[key] = possible.get(key, frozenset("<=>")) & _ORDERS[join.op]
        if not possible[key]:
            return join.field.partition("__")[0]
    return None


def _domain(field: str, spec: TypeSpec) -> set[_Key] | None:
    """All values that a field may have, None where they cannot be listed."""
    found = spec.fields.get(field)
    if found is None or found.type not in ("enum", "bool"):
        return None
    return {_key(v) for v in ((True, False) if found.type == "bool" else found.values)}


def _satisfiable(tests: Iterable[Test], domain: set[_Key] | None) -> bool:
    tests = list(tests)
    for test in tests:
        if test.op in ("eq", "in"):
            domain = _values(test) if domain is None else domain & _values(test)
    if domain is not None:
        return any(all(holds(t.op, value, t.value) for t in tests) for _, value in domain)
    limits = [int(t.value) for t in tests if t.op in ORDERING and isinstance(t.value, int)]
    if not limits:
        return True
    # If any integer will do, one near a limit does: no further away than there are single values struck out.
    reach = 1 + sum(len(_values(t)) for t in tests if t.op in ("ne", "not_in"))
    near = {limit + step for limit in limits for step in range(-reach, reach + 1)}
    return any(all(holds(t.op, value, t.value) for t in tests) for value in near)


def _values(test: Test) -> set[_Key]:
    return {_key(v) for v in (test.value if isinstance(test.value, tuple) else (test.value,))}


def _key(value: Scalar) -> _Key:
    return type(value), value


def unguarded(rule: Rule, pattern: Pattern, spec: TypeSpec) -> bool:
    """Whether a negated pattern concludes an absence without a pattern that says that all of its domain was seen."""
    if not pattern.negated or not spec.open_world:
        return False
    wanted = {("domain", "eq", spec.domain), ("complete", "eq", True)}
    return not any(
        p.type == "coverage" and not p.negated and wanted <= {(t.field, t.op, t.value) for t in p.tests}
        for p in rule.patterns
    )


# --- a pattern and what there is to match -----------------------------------------------------------------------------


def may_match_conclusion(pattern: Pattern, conclusion: Conclusion) -> bool:
    """Whether a concluded fact can pass the tests; a field that is copied from elsewhere can have any value."""
    for test in pattern.tests:
        value = conclusion.fields.get(test.field)
        if value is None or (not isinstance(value, Ref) and not holds(test.op, value, test.value)):
            return False
    return all(join.field in conclusion.fields for join in pattern.joins)


def may_match_row(pattern: Pattern, fields: Mapping[str, Scalar]) -> bool:
    """Whether a catalog row passes the tests and has the joined fields."""
    return all(holds(t.op, fields.get(t.field), t.value) for t in pattern.tests) and all(
        join.field in fields for join in pattern.joins
    )


# --- two rules --------------------------------------------------------------------------------------------------------


def repeated(rules: Iterable[Rule]) -> Iterator[tuple[Rule, Rule]]:
    """Pairs of rules with the same patterns and conclusions, whatever their aliases and order: earlier, later."""
    seen: dict[object, Rule] = {}
    for rule in rules:
        shape = _shape(rule)
        if shape in seen:
            yield seen[shape], rule
        else:
            seen[shape] = rule


def _shape(rule: Rule) -> object:
    """A rule without its names: each pattern is known by its type, its tests and the patterns that it is joined to."""
    marks: dict[str, object] = {}
    for pattern in rule.patterns:  # joins point back
        marks[pattern.alias] = _mark(pattern, marks)
    conclusions = frozenset(
        (
            conclusion.type,
            frozenset(
                (name, (marks[value.alias], value.field) if isinstance(value, Ref) else _key(value))
                for name, value in conclusion.fields.items()
                if not (conclusion.type == "evidence" and name == "rule")
            ),
        )
        for conclusion in rule.conclusions
    )
    return conclusions, frozenset(Counter(marks.values()).items())


def _mark(pattern: Pattern, marks: Mapping[str, object]) -> object:
    tests = frozenset((t.field, t.op, frozenset(_values(t))) for t in pattern.tests)
    joins = frozenset((j.field, j.op, marks[j.alias], j.other) for j in pattern.joins)
    return pattern.type, pattern.negated, tests, joins
