"""What can be said about a rule base before any row is there.

May live here: the checks that make rules well-formed under `ir.py`, and the order in which they are evaluated.
Must not: evaluation, YAML, GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..messages import Message
from .ir import Conclusion, Pattern, Ref, Rule

ORDERING = ("lt", "le", "gt", "ge")
JOIN_OPS = ("eq", "ne", *ORDERING)
TEST_OPS = (*JOIN_OPS, "in", "not_in", "known")
MAX_POSITIVE = 16

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*\Z")


class RuleError(ValueError):
    """A rule base that no engine accepts: the fault, and the id of the rule that has it."""

    def __init__(self, rule: str, fault: str, part: Pattern | Conclusion | None = None, **values: object) -> None:
        self.rule = rule
        self.fault = Message(f"engine.{fault}", **values)
        self.message = Message("engine.fault", where=_place(rule, part), fault=self.fault)
        super().__init__(self.message)

    def __str__(self) -> str:
        return self.message.said("en")


@dataclass(frozen=True, slots=True)
class Level:
    """Rules (by position) that may be evaluated together once all earlier levels are done.

    recursive: the types that rules of this level both read and conclude.
    """

    rules: tuple[int, ...]
    recursive: frozenset[str]


def check_rules(rules: Sequence[Rule]) -> None:
    """Raises RuleError for the first rule that is not well-formed."""
    seen: set[str] = set()
    for rule in rules:
        if rule.id in seen:
            raise RuleError(rule.id, "id_twice")
        seen.add(rule.id)
        _check_rule(rule)


def positives(rule: Rule) -> tuple[Pattern, ...]:
    """The patterns that bind rows, in the rule's order."""
    return tuple(p for p in rule.patterns if not p.negated)


def negatives(rule: Rule) -> tuple[Pattern, ...]:
    """The patterns that must be definitely absent."""
    return tuple(p for p in rule.patterns if p.negated)


def _check_rule(rule: Rule) -> None:
    aliases = [p.alias for p in rule.patterns]
    if len(set(aliases)) != len(aliases):
        raise RuleError(rule.id, "alias_twice")
    bindable = [p.alias for p in positives(rule)]
    if len(bindable) > MAX_POSITIVE:
        raise RuleError(rule.id, "too_many", n=MAX_POSITIVE)
    earlier: list[str] = []
    for pattern in rule.patterns:
        _check_pattern(rule.id, pattern, bindable if pattern.negated else earlier, aliases)
        if not pattern.negated:
            earlier.append(pattern.alias)
    for conclusion in rule.conclusions:
        _check_conclusion(rule.id, conclusion, bindable)


def _check_pattern(rule: str, pattern: Pattern, allowed: Sequence[str], aliases: Sequence[str]) -> None:
    _check_names(rule, pattern, (pattern.type, *(t.field for t in pattern.tests), *(j.field for j in pattern.joins)))
    for test in pattern.tests:
        if test.op not in TEST_OPS:
            raise RuleError(rule, "operator", pattern, op=test.op)
        if test.op in ORDERING and (isinstance(test.value, bool) or not isinstance(test.value, int)):
            raise RuleError(rule, "integers_only", pattern, op=test.op, value=test.value)
        if test.op != "known" and (test.op in ("in", "not_in")) != isinstance(test.value, tuple):
            raise RuleError(rule, "no_such_value", pattern, op=test.op, value=repr(test.value))
    for join in pattern.joins:
        if join.op not in JOIN_OPS:
            raise RuleError(rule, "join_operator", pattern, op=join.op)
        if join.alias not in aliases:
            raise RuleError(rule, "join_unknown", pattern, alias=join.alias)
        if join.alias not in allowed:
            raise RuleError(rule, "join_later", pattern, alias=join.alias)
        _check_names(rule, pattern, (join.other,))


def _check_conclusion(rule: str, conclusion: Conclusion, bindable: Sequence[str]) -> None:
    _check_names(rule, conclusion, (conclusion.type, *conclusion.fields))
    for value in conclusion.fields.values():
        if isinstance(value, Ref):
            if value.alias not in bindable:
                raise RuleError(rule, "no_row", conclusion, alias=value.alias)
            _check_names(rule, conclusion, (value.field,))


def _check_names(rule: str, part: Pattern | Conclusion, names: Iterable[str]) -> None:
    for name in names:
        if not _NAME.match(name):
            raise RuleError(rule, "identifier", part, name=name)


def _place(rule: str, part: Pattern | Conclusion | None) -> Message:
    if isinstance(part, Pattern):
        return Message("engine.pattern", rule=rule, alias=part.alias)
    if isinstance(part, Conclusion):
        return Message("engine.conclusion", rule=rule, type=part.type)
    return Message("engine.rule", rule=rule)


def levels(rules: Sequence[Rule]) -> tuple[Level, ...]:
    """The order of evaluation; raises RuleError where negation is not stratified.

    Types and rules form one graph (type -> rule that reads it -> type it concludes). Its strongly connected components
    are the recursions; a level is the longest path that leads to a component.
    """
    edges = _edges(rules)
    component = _components(edges)
    for number, rule in enumerate(rules):
        for pattern in negatives(rule):
            if component[pattern.type] == component[number]:
                raise RuleError(rule.id, "negation", type=pattern.type)
    depth = _depths(edges, component)
    grouped: dict[int, list[int]] = {}
    recursive: dict[int, set[str]] = {}
    for number, rule in enumerate(rules):
        level = depth[component[number]]
        grouped.setdefault(level, []).append(number)
        inside = {p.type for p in positives(rule) if component[p.type] == component[number]}
        recursive.setdefault(level, set()).update(inside)
    return tuple(Level(tuple(grouped[n]), frozenset(recursive[n])) for n in sorted(grouped))


_Node = str | int


def _edges(rules: Sequence[Rule]) -> dict[_Node, list[_Node]]:
    edges: dict[_Node, list[_Node]] = {}
    for number, rule in enumerate(rules):
        edges[number] = []
        for pattern in rule.patterns:
            edges.setdefault(pattern.type, []).append(number)
        for conclusion in rule.conclusions:
            edges.setdefault(conclusion.type, [])
            edges[number].append(conclusion.type)
    return edges


def _components(edges: dict[_Node, list[_Node]]) -> dict[_Node, int]:
    """Tarjan's algorithm without recursion; components are numbered against the direction of the edges."""
    index: dict[_Node, int] = {}
    low: dict[_Node, int] = {}
    found: dict[_Node, int] = {}
    open_: list[_Node] = []
    count = 0
    for root, leads_to in edges.items():
        if root in index:
            continue
        index[root] = low[root] = len(index)
        open_.append(root)
        work = [(root, iter(leads_to))]
        while work:
            node, successors = work[-1]
            for nxt in successors:
                if nxt not in index:
                    index[nxt] = low[nxt] = len(index)
                    open_.append(nxt)
                    work.append((nxt, iter(edges[nxt])))
                    break
                if nxt not in found:
                    low[node] = min(low[node], index[nxt])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    while True:
                        member = open_.pop()
                        found[member] = count
                        if member == node:
                            break
                    count += 1
    return found


def _depths(edges: dict[_Node, list[_Node]], component: dict[_Node, int]) -> dict[int, int]:
    """The longest path to each component; a component's number is higher than that of any it leads to."""
    depth = dict.fromkeys(component.values(), 0)
    for node in sorted(edges, key=lambda n: -component[n]):
        here = component[node]
        for nxt in edges[node]:
            there = component[nxt]
            if there != here:
                depth[there] = max(depth[there], depth[here] + 1)
    return depth
