"""A naive evaluator of the IR: nested loops to the fixpoint, written from the docstring of `engine/ir.py` alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from gpurules.engine.ir import Pattern, Ref, Row, Rule

Content = tuple[str, tuple[tuple[str, str, Any], ...]]
Firing = tuple[str, tuple[Content, ...], Content]


def content(row: Row) -> Content:
    """The row as a value in which True, 1 and "1" differ."""
    return row[0], tuple(sorted((k, type(v).__name__, v) for k, v in row[1].items()))


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and a == b


def holds(op: str, a: Any, b: Any) -> bool | None:
    """Kleene's value of `a op b`; None is an unknown field on either side."""
    if a is None or b is None:
        return None
    if op == "known":
        return True
    if op in ("in", "not_in"):
        return any(_same(a, x) for x in b) is (op == "in")
    if op in ("eq", "ne"):
        return _same(a, b) is (op == "eq")
    if type(a) is not int or type(b) is not int:
        return False
    return {"lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[op]


def verdicts(pattern: Pattern, row: Row, bound: dict[str, Row]) -> list[bool | None]:
    """One verdict for each test and join of the pattern."""
    fields = row[1]
    return [holds(t.op, fields.get(t.field), t.value) for t in pattern.tests] + [
        holds(j.op, fields.get(j.field), bound[j.alias][1].get(j.other)) for j in pattern.joins
    ]


def _matches(rule: Rule, rows: Sequence[Row]) -> Iterable[dict[str, Row]]:
    positive = [p for p in rule.patterns if not p.negated]
    candidates = [[r for r in rows if r[0] == p.type] for p in positive]
    for chosen in itertools.product(*candidates):
        bound = {p.alias: r for p, r in zip(positive, chosen, strict=True)}
        if len({id(r) for r in chosen}) < len(chosen):
            continue
        if not all(all(v is True for v in verdicts(p, bound[p.alias], bound)) for p in positive):
            continue
        if any(False not in verdicts(p, r, bound) for p in rule.patterns if p.negated for r in rows if r[0] == p.type):
            continue
        yield bound


def strata(rules: Sequence[Rule]) -> list[list[Rule]] | None:
    """The rules by stratum, or None where negation is not stratified."""
    level: dict[str, int] = {}
    stratum = dict.fromkeys((r.id for r in rules), 0)
    types = {c.type for r in rules for c in r.conclusions}
    for _ in range(len(types) * (len(types) + 2) + 2):
        changed = False
        for rule in rules:
            need = max((level.get(p.type, 0) + p.negated for p in rule.patterns), default=0)
            stratum[rule.id] = max(stratum[rule.id], need)
            for c in rule.conclusions:
                if level.get(c.type, 0) < need:
                    level[c.type] = need
                    changed = True
        if not changed:
            break
        if max(level.values()) > len(types):
            return None
    return [[r for r in rules if stratum[r.id] == n] for n in range(max(stratum.values(), default=0) + 1)]


def evaluate(rules: Sequence[Rule], rows: Iterable[Row]) -> tuple[set[Content], set[Firing]]:
    """All rows, and (rule, premises, conclusion) of every firing."""
    known: dict[Content, Row] = {content(r): r for r in rows}
    firings: set[Firing] = set()
    ordered = strata(rules)
    assert ordered is not None
    for stratum in ordered:
        size = -1
        while size != len(known):
            size = len(known)
            for rule in stratum:
                for bound in list(_matches(rule, list(known.values()))):
                    premises = tuple(content(bound[p.alias]) for p in rule.patterns if not p.negated)
                    for c in rule.conclusions:
                        values = {
                            k: bound[v.alias][1].get(v.field) if isinstance(v, Ref) else v for k, v in c.fields.items()
                        }
                        row = (c.type, {k: v for k, v in values.items() if v is not None})
                        known.setdefault(content(row), row)
                        firings.add((rule.id, premises, content(row)))
    return set(known), firings
