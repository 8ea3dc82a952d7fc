"""CLIPS as an independent evaluator: rules as defrules whose conditions are functions of the slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import clips  # type: ignore[import-untyped]
from gpurules.engine.ir import Conclusion, Join, Pattern, Ref, Row, Rule
from gpurules.facts import Scalar

from . import reference

ORDER = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
TRUTH = {True: "TRUE", False: "FALSE"}


def literal(value: Scalar) -> str:
    if isinstance(value, bool):
        return TRUTH[value]
    if isinstance(value, int):
        return str(value)
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def compare(op: str, a: str, b: str) -> str:
    if op in ORDER:
        return f"(and (integerp {a}) (integerp {b}) ({ORDER[op]} {a} {b}))"
    return f"({'eq' if op == 'eq' else 'neq'} {a} {b})"


def test_text(op: str, v: str, value: Any) -> str:
    if op == "known":
        return "TRUE"
    if op in ("in", "not_in"):
        joined = " ".join(f"(eq {v} {literal(x)})" for x in value)
        member = f"(or FALSE FALSE {joined})"
        return member if op == "in" else f"(not {member})"
    return compare(op, v, literal(value))


def condition(pattern: Pattern) -> str:
    """A positive condition needs its fields, a negated one holds where a field is unknown."""
    parts = []
    for test in pattern.tests:
        v = f"?{pattern.alias}_{test.field}"
        holds = test_text(test.op, v, test.value)
        parts.append(f"(or (eq {v} nil) {holds})" if pattern.negated else f"(and (neq {v} nil) {holds})")
    for join in pattern.joins:
        parts.append(_join(pattern, join))
    return f"(and TRUE TRUE {' '.join(parts)})"


def _join(pattern: Pattern, join: Join) -> str:
    a, b = f"?{pattern.alias}_{join.field}", f"?{join.alias}_{join.other}"
    holds = compare(join.op, a, b)
    if pattern.negated:
        return f"(or (eq {a} nil) (eq {b} nil) {holds})"
    return f"(and (neq {a} nil) (neq {b} nil) {holds})"


def _element(pattern: Pattern, slots_of: Mapping[str, Sequence[str]]) -> str:
    fields = slots_of[pattern.type]
    slots = [f"({f} ?{pattern.alias}_{f})" for f in fields[:-1]]
    last = fields[-1]
    slots.append(f"({last} ?{pattern.alias}_{last}&:{condition(pattern)})")
    return f"({pattern.type} {' '.join(slots)})"


def _rule(rule: Rule, salience: int, slots_of: Mapping[str, Sequence[str]]) -> str:
    positive = [p for p in rule.patterns if not p.negated]
    left = [f"?f_{p.alias} <- {_element(p, slots_of)}" for p in positive]
    left += [
        f"(test (neq ?f_{p.alias} ?f_{q.alias}))"
        for i, p in enumerate(positive)
        for q in positive[:i]
        if p.type == q.type
    ]
    left += [f"(not {_element(p, slots_of)})" for p in rule.patterns if p.negated]
    premises = " ".join(f"?f_{p.alias}" for p in positive)
    right = [f"(note {rule.id} (assert {_concluded(c, slots_of[c.type])}) {premises})" for c in rule.conclusions]
    return f"(defrule {rule.id} (declare (salience {salience})) {' '.join(left)} => {' '.join(right)})"


def _concluded(conclusion: Conclusion, fields: Sequence[str]) -> str:
    values = []
    for f in fields:
        value = conclusion.fields.get(f)
        text = "nil" if value is None else f"?{value.alias}_{value.field}" if isinstance(value, Ref) else literal(value)
        values.append(f"({f} {text})")
    return f"({conclusion.type} {' '.join(values)})"


def _content(fact: Any) -> reference.Content:
    return reference.content((fact.template.name, {k: _scalar(v) for k, v in fact if v != clips.Symbol("nil")}))


def _scalar(value: Any) -> Scalar:
    if isinstance(value, clips.Symbol):
        return bool({"TRUE": True, "FALSE": False}[value])
    return bool(value) if isinstance(value, bool) else int(value) if isinstance(value, int) else str(value)


def evaluate(
    rules: Sequence[Rule], rows: Sequence[Row], slots_of: Mapping[str, Sequence[str]]
) -> tuple[set[reference.Content], set[reference.Firing]]:
    env = clips.Environment()
    types = {p.type for r in rules for p in r.patterns} | {c.type for r in rules for c in r.conclusions}
    types |= {type_ for type_, _ in rows}
    for type_ in sorted(types):
        env.build(f"(deftemplate {type_} {' '.join(f'(slot {f} (default nil))' for f in slots_of[type_])})")
    firings: set[reference.Firing] = set()

    def note(rule: Any, conclusion: Any, *premises: Any) -> None:
        # asserting a known fact gives that fact back
        firings.add((str(rule), tuple(_content(p) for p in premises), _content(conclusion)))

    env.define_function(note, name="note")
    env.eval("(set-strategy breadth)")
    ordered = reference.strata(rules)
    assert ordered is not None
    for n, stratum in enumerate(ordered):
        for rule in stratum:
            env.build(_rule(rule, -n, slots_of))
    env.reset()
    for type_, values in rows:
        env.find_template(type_).assert_fact(**{k: _clips(v) for k, v in values.items()})
    env.run()
    return {_content(f) for f in env.facts() if f.template.name in types}, firings


def _clips(value: Scalar) -> Any:
    return clips.Symbol(TRUTH[value]) if isinstance(value, bool) else value
