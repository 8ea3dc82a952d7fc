"""Running the examples of rules: fires, silent, unknown, with only the catalogs around them.

May live here: the meaning of the three kinds of example. Must not: any example.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..engine.ir import Rule
from ..errors import InputError
from ..facts import Fact, Provenance, Scalar
from ..knowledge.loader import Knowledge
from ..messages import Lang, Message
from ..report.model import RuleTest
from .gaps import Gaps
from .session import Session


def run_examples(knowledge: Knowledge, ids: Iterable[str], lang: Lang = "en") -> list[RuleTest]:
    """The results of all examples of the rules of those ids."""
    results = []
    for rule_id in ids:
        for kind, examples in knowledge.rules[rule_id]["examples"].items():
            for number, example in enumerate(examples, 1):
                fault = _run(knowledge, rule_id, kind, example)
                told = fault.said(lang) if fault else ""
                results.append(RuleTest(rule=rule_id, example=f"{kind} {number}", ok=fault is None, message=told))
    return results


def example_facts(knowledge: Knowledge, example: Mapping[str, Any]) -> list[Fact]:
    """The facts of an example, with their values in the fields' own types."""
    facts = []
    for entry in example["facts"]:
        ((type_name, fields),) = entry.items()
        problems = [p for k, v in fields.items() if (p := knowledge.vocabulary.check(type_name, k, v))]
        if problems or knowledge.vocabulary.types[type_name].kind != "observed":
            raise InputError("example.facts", faults=problems or [Message("fault.not_observed")])
        facts.append(
            Fact(
                type_name,
                {k: knowledge.vocabulary.coerce(type_name, k, v) for k, v in fields.items()},
                (Provenance("user", "example"),),
            )
        )
    return facts


def _run(knowledge: Knowledge, rule_id: str, kind: str, example: Mapping[str, Any]) -> Message | None:
    try:
        session = Session(knowledge, example_facts(knowledge, example))
    except (InputError, ValueError, KeyError) as error:
        return Message("example.bad_facts", error=error.message if isinstance(error, InputError) else error)
    rules = [r for r in knowledge.ir if r.group == rule_id]
    fired = [j for r in rules for j in session.memory.firings(r.id)]
    if kind == "fires":
        return _check_fires(session, rule_id, fired, example)
    if fired:
        return Message("example.fires")
    if kind == "unknown":
        return _check_unknown(session, rules, example)
    return None


def _check_fires(session: Session, rule_id: str, fired: list[Any], example: Mapping[str, Any]) -> Message | None:
    if not fired:
        return Message("example.silent")
    if example.get("cause") and not session.rows("evidence", cause=example["cause"], rule=rule_id):
        return Message("example.no_evidence", cause=example["cause"])
    for type_name, wanted in (example.get("derives") or {}).items():
        expected = session.knowledge.vocabulary.lower_fields(
            type_name, {k: session.knowledge.vocabulary.coerce(type_name, k, v) for k, v in wanted.items()}
        )
        if not any(
            _has(session.fields(i), expected)
            and any(j.rule in {f.rule for f in fired} for j in session.memory.justifications(i))
            for i in session.memory.of_type(type_name)
        ):
            return Message("example.not_derived", type=type_name, fields=wanted)
    return None


def _has(fields: Mapping[str, Scalar], wanted: Mapping[str, Scalar]) -> bool:
    return all(fields.get(k) == v for k, v in wanted.items())


def _check_unknown(session: Session, rules: list[Rule], example: Mapping[str, Any]) -> Message | None:
    """The rule must be undecided, and what it lacks must be (or follow from) the type that the example names."""
    gaps = Gaps(session)
    lacking: set[str] = set()
    for rule in rules:
        result = gaps.outcome(rule)
        if result.state == "not_checked" and result.pattern is not None:
            lacking.add(rule.patterns[result.pattern].type)
            lacking |= gaps.missing(rule.patterns[result.pattern].type, 0)
    needs = example.get("needs")
    if not lacking:
        return Message("example.decided")
    return None if needs in lacking else Message("example.other_lack", lacking=sorted(lacking), needs=needs)
