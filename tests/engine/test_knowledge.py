"""The engines agree on the real knowledge: on every rule's examples, and on every triage case at hand.

CLIPS tests joins by brute force, so it gets the rows that native used in each session and a fixed sample of the other
catalog rows; native runs again on exactly those. durable-rules gets all rows.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import pytest
import yaml
from gpurules.engine.durable import DurableEngine
from gpurules.engine.ir import Row, Rule
from gpurules.engine.native import RuleBase
from gpurules.gathering import Inputs, gather
from gpurules.knowledge.loader import Knowledge, load_knowledge
from gpurules.reasoning.examples import example_facts
from gpurules.reasoning.merge import merge

from . import clips_oracle
from .harness import unnumbered, view, worker

CASES = Path(os.environ.get("GPURULES_CORPUS", Path(__file__).resolve().parents[3] / "shared")) / "cases"
SAMPLE = 23  # every so many catalog rows go to CLIPS besides those that were used
FEW = {"clips": 10, "durable": 12}  # so many sessions run in the ordinary suite, spread over all


@lru_cache(maxsize=1)
def knowledge() -> Knowledge:
    return load_knowledge()


@lru_cache(maxsize=1)
def native() -> RuleBase:
    return RuleBase(knowledge().ir, knowledge().static)


def example_sessions() -> Iterator[list[Row]]:
    known = knowledge()
    for rule in known.rules.values():
        for examples in rule["examples"].values():
            for example in examples:
                facts = merge(example_facts(known, example), known.vocabulary)
                yield [known.vocabulary.lower(f) for f in facts]


def case_sessions() -> Iterator[list[Row]]:
    known = knowledge()
    for path in sorted(CASES.glob("[0-9]*.yaml")):
        given = yaml.safe_load(path.read_text(encoding="utf-8"))["input"]
        reports = [(k, v.encode()) for k, v in given.items() if k not in ("facts", "question")]
        facts = (
            [("facts.yaml", yaml.safe_dump(given["facts"], allow_unicode=True).encode())] if "facts" in given else []
        )
        gathered = gather(Inputs(reports=reports, facts=facts, question=given.get("question")), known)
        yield [known.vocabulary.lower(f) for f in merge(gathered.facts, known.vocabulary)]


def sessions() -> list[list[Row]]:
    return [*example_sessions(), *case_sessions()]


def some(count: int) -> list[list[Row]]:
    """So many sessions, evenly spread."""
    every = sessions()
    return every[:: -(-len(every) // count)]


def renamed(rules: Sequence[Rule]) -> list[Rule]:
    """The same rules under names that CLIPS accepts."""
    return [Rule(f"r{i}", r.patterns, r.conclusions, r.group) for i, r in enumerate(rules)]


def slots_of(rules: Sequence[Rule], rows: Sequence[Row]) -> dict[str, Sequence[str]]:
    slots: dict[str, set[str]] = defaultdict(lambda: {"any"})
    for type_, fields in rows:
        slots[type_] |= set(fields)
    for rule in rules:
        types = {p.alias: p.type for p in rule.patterns}
        for pattern in rule.patterns:
            slots[pattern.type] |= {t.field for t in pattern.tests} | {j.field for j in pattern.joins}
            for join in pattern.joins:
                slots[types[join.alias]].add(join.other)
        for conclusion in rule.conclusions:
            slots[conclusion.type] |= set(conclusion.fields)
            for value in conclusion.fields.values():
                if not isinstance(value, str | int):
                    slots[types[value.alias]].add(value.field)
    return {type_: sorted(fields) for type_, fields in slots.items()}


def check_clips(rows: Sequence[Row]) -> None:
    memory = native().run(rows)
    used = {p for i in range(len(memory.rows)) for j in memory.justifications(i) for p in j.premises}
    some = [memory.rows[i] for i in sorted(used) if memory.static(i)]
    some += [row for row in knowledge().static[::SAMPLE] if row not in some]
    rules = renamed(knowledge().ir)
    given = [*some, *(r for r in rows if r not in some)]
    expected = clips_oracle.evaluate(rules, given, slots_of(rules, given))
    assert unnumbered(RuleBase(rules, some).run(rows)) == expected


def check_durable(rows: Sequence[Row]) -> None:
    shared = worker()
    if shared is None:
        pytest.skip("durable-rules is not available here")
    durable = DurableEngine(knowledge().ir, knowledge().static, worker=shared)
    assert view(durable.run(rows)) == view(native().run(rows))


def test_clips_agrees_on_some_sessions() -> None:
    for rows in some(FEW["clips"]):
        check_clips(rows)


def test_durable_agrees_on_some_sessions() -> None:
    for rows in some(FEW["durable"]):
        check_durable(rows)


@pytest.mark.slow
def test_clips_agrees_on_all_sessions() -> None:
    for rows in sessions():
        check_clips(rows)


@pytest.mark.slow
def test_durable_agrees_on_all_sessions() -> None:
    for rows in sessions():
        check_durable(rows)
