"""Every rule matters: without it, and without its own examples, some outcome that is asserted elsewhere changes.

May live here: taking rules out of the knowledge and judging again what rests on them. Outcomes are the cases of
tests/cases, the healthy machines, the questions of planning and of what fits, and the examples of the other rules. An
outcome in none of whose runs a rule fired cannot change without it, so only the others are judged again.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpurules.engine.memory import WorkingMemory
from gpurules.facts import Fact, Scalar
from gpurules.gathering import gather
from gpurules.knowledge.loader import Knowledge, load_knowledge
from gpurules.pipeline import Inputs, advised, asking
from gpurules.reasoning.diagnosis import Diagnosis
from gpurules.reasoning.examples import example_facts, run_examples
from gpurules.reasoning.selection import Selection
from gpurules.reasoning.session import Engine, Session, native_engine

from .. import judging
from ..fits.test_questions import QUESTIONS as FITS
from ..planning.test_questions import QUESTIONS
from ..test_machines import MACHINES, VERDICTS

AWAITED = Path(__file__).parent / "awaited_rules.yaml"
KNOWLEDGE = load_knowledge()


class Watched:
    """An engine that notes the rule files whose rules fired in any of its runs."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.fired: set[str] = set()

    def run(self, rows: Iterable[tuple[str, Mapping[str, Scalar]]]) -> WorkingMemory:
        memory = self.engine.run(rows)
        self.fired |= {r.group for r in KNOWLEDGE.ir if r.group not in self.fired and memory.firings(r.id)}
        return memory


@dataclass(frozen=True)
class Outcome:
    """Something asserted: `wrong(knowledge, engine)` tells whether it does not hold."""

    name: str
    wrong: Callable[[Knowledge, Engine], bool]


def reported(
    facts: Iterable[Fact],
    question: str | None,
    judge: Callable[[dict[str, Any]], bool],
    asks: bool,
    known: Knowledge,
    engine: Engine,
) -> bool:
    """asks: the questions are judged too, so they are put in their order, which takes time."""
    session = Session(known, facts, engine)
    diagnosis = Diagnosis(session, "en")
    report = asking(diagnosis.report(), diagnosis, session, "en") if asks else diagnosis.report()
    report = advised(report, session, question, "en")
    return not judge(json.loads(report.to_json()))


def recommended(facts: Iterable[Fact], expect: dict[str, Any], known: Knowledge, engine: Engine) -> bool:
    result = Selection(Session(known, facts, engine), "en").result()
    return bool(judging.recommend_faults(json.loads(result.to_json()), expect))


def of_inputs(name: str, inputs: Inputs, judge: Callable[[dict[str, Any]], bool], asks: bool = False) -> Outcome:
    return Outcome(name, partial(reported, gather(inputs, KNOWLEDGE).facts, inputs.question, judge, asks))


def met(report: dict[str, Any], expect: dict[str, Any]) -> bool:
    return not judging.faults(report, expect)


def quiet(report: dict[str, Any], verdict: str) -> bool:
    return report["verdict"] == verdict and not report["fixes"]


def cases() -> Iterator[Outcome]:
    for path in judging.CASES:
        loaded = judging.case(path)
        expect = loaded["expect"]
        asks = not {"questions", "never_questions"}.isdisjoint(expect)
        yield of_inputs(path.name, judging.inputs(loaded["input"]), partial(met, expect=expect), asks)
        if "recommend" in expect:
            facts = gather(judging.inputs(loaded["input"]), KNOWLEDGE).facts
            yield Outcome(f"{path.name}: recommend", partial(recommended, facts, expect["recommend"]))


def machines() -> Iterator[Outcome]:
    for name, verdict in VERDICTS.items():
        inputs = Inputs(reports=[(name, (MACHINES / f"{name}.txt").read_bytes())])
        yield of_inputs(name, inputs, partial(quiet, verdict=verdict))


def planned(report: dict[str, Any], cause: str, verdict: str, numbers: dict[str, tuple[float, float]]) -> bool:
    plan = report.get("plan") or {}
    return (
        [f["cause"] for f in report["findings"]] == [cause]
        and plan.get("verdict") == verdict
        and all(low <= plan["numbers"].get(name, low - 1) <= high for name, (low, high) in numbers.items())
    )


def plans() -> Iterator[Outcome]:
    for question, cause, verdict, numbers in QUESTIONS:
        judge = partial(planned, cause=cause, verdict=verdict, numbers=numbers)
        yield of_inputs(question, Inputs(question=question), judge)


def answered(report: dict[str, Any], title: str) -> bool:
    return [f["title"] for f in report["findings"]][:1] == [title]


def fits() -> Iterator[Outcome]:
    for question, _, title, _ in FITS:
        yield of_inputs(question, Inputs(question=question), partial(answered, title=title))


def example_fails(rule: str, known: Knowledge, engine: Engine) -> bool:
    return rule in known.rules and not all(result.ok for result in run_examples(known, [rule]))


@cache
def resting_on() -> dict[str, list[Outcome]]:
    """The outcomes in whose runs a rule file fires, by the file, those of cases first."""
    found: dict[str, list[Outcome]] = {rule: [] for rule in KNOWLEDGE.rules}
    engine = native_engine(KNOWLEDGE)
    for outcome in (*cases(), *machines(), *plans(), *fits()):
        watched = Watched(engine)
        assert not outcome.wrong(KNOWLEDGE, watched), outcome.name
        for rule in watched.fired & found.keys():
            found[rule].append(outcome)
    for rule, data in KNOWLEDGE.rules.items():
        watched = Watched(engine)
        for example in (e for examples in data["examples"].values() for e in examples):
            Session(KNOWLEDGE, example_facts(KNOWLEDGE, example), watched)
        for other in (watched.fired & found.keys()) - {rule}:
            found[other].append(Outcome(f"examples of {rule}", partial(example_fails, rule)))
    return found


def without(rule: str) -> Knowledge:
    return dataclasses.replace(
        KNOWLEDGE,
        rules={k: v for k, v in KNOWLEDGE.rules.items() if k != rule},
        ir=tuple(r for r in KNOWLEDGE.ir if r.group != rule),
    )


def changed(rule: str) -> str | None:
    """The name of an outcome that changes without the rule."""
    known = without(rule)
    engine = native_engine(known)
    return next((outcome.name for outcome in resting_on()[rule] if outcome.wrong(known, engine)), None)


def serves_card_to_come(known: Knowledge) -> bool:
    """Whether some torch is recommended for a card above all that Linux builds have code for, by their PTX."""
    kind, newest = next(row for row in known.static if row[0] == "architecture" and row[1]["sm"] == 120)
    to_come = (kind, {**newest, "sm": 140, "sm__major": 14})
    known = dataclasses.replace(
        known, static=(*known.static, to_come), static_sources=(*known.static_sources, known.static_sources[0])
    )
    machine = [
        {"gpu": {"index": 0, "name": "NVIDIA Graphics Device", "vendor": "nvidia", "sm": "14.0"}},
        {"driver": {"vendor": "nvidia", "version": "580.95.05"}},
        {"os": {"family": "linux", "machine": "x86_64"}},
    ]
    inputs = Inputs(facts=[("machine.yaml", judging.facts_text({"facts": machine}).encode())])
    return "torch" in json.loads(Selection(Session(known, gather(inputs, known).facts), "en").result().to_json())


# Rules for which no outcome can be told apart in the forms above, each with what holds only with it.
ELSEWHERE: dict[str, Callable[[Knowledge], bool]] = {"build-may-run-by-ptx-linux": serves_card_to_come}
AREAS = sorted({data["area"] for data in KNOWLEDGE.rules.values()})


def awaited() -> frozenset[str]:
    """Rules that came without an outcome in which they matter; one is taken from the list when it has one."""
    return frozenset(yaml.safe_load(AWAITED.read_text(encoding="utf-8")))


def test_each_rule_fires_in_the_outcome_of_others() -> None:
    assert [rule for rule, outcomes in resting_on().items() if not outcomes and rule not in awaited()] == []


@pytest.mark.slow
@pytest.mark.parametrize("area", AREAS)
def test_without_a_rule_some_outcome_changes(area: str) -> None:
    rules = [rule for rule, data in KNOWLEDGE.rules.items() if data["area"] == area]
    unchanged = {rule for rule in rules if changed(rule) is None}
    assert unchanged == (awaited() | ELSEWHERE.keys()).intersection(rules)


@pytest.mark.parametrize("rule", ELSEWHERE)
def test_others_matter_elsewhere(rule: str) -> None:
    assert ELSEWHERE[rule](KNOWLEDGE)
    assert not ELSEWHERE[rule](without(rule))
