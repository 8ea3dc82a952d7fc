"""How many questions a dialogue needs: a simulated user who knows a case but volunteers only its symptom.

    GPURULES_CORPUS=shared python bench/dialogue.py [-v]

The user tells the first error line that is recognised, else the question of the case. Asked something, the user chooses
the answer that the facts of the case state; a question that a command answers gets the facts of the types that it
provides; to anything else the user says that it is not known. Every question is checked to be open and to matter.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from gpurules import pipeline
from gpurules.facts import Fact
from gpurules.knowledge.loader import Knowledge, load_knowledge
from gpurules.reasoning.dialogue import OPENING, Asked, Dialogue
from gpurules.reasoning.gain import State, facts_of, weigh
from gpurules.reasoning.gaps import decided

MAX_QUESTIONS = 10
KNOWN_KINDS = ("wheel_arch", "driver_too_old", "cpu_only_torch", "driver_problem", "negative")


@dataclass(frozen=True)
class Outcome:
    """What came of one case: the questions until the right cause led, None where it never did."""

    case: str
    kind: str
    asked: tuple[str, ...]
    questions: int | None


def case_facts(case: dict[str, Any]) -> list[Fact]:
    """Everything that the case says."""
    given = case["input"]
    reports = [(n, str(t).encode()) for n, t in given.items() if n not in ("facts", "question")]
    loose = yaml.safe_dump(given.get("facts") or {}, allow_unicode=True).encode()
    facts = [("facts.yaml", loose)] if given.get("facts") else []
    return pipeline.read(pipeline.Inputs(reports=reports, facts=facts, question=given.get("question")))


def symptom(facts: Sequence[Fact], knowledge: Knowledge) -> list[Fact]:
    """What the user volunteers."""
    known = {e for s in knowledge.symptoms.values() for e in s["errors"]}
    errors = [f for f in facts if f.type == "error"]
    first = [f for f in errors if f.fields.get("kind") in known][:1] or errors[:1]
    asked = [f for f in facts if f.type == "statement" and f.provenance[0].source == "question"]
    return first or [f for f in asked if f.fields["kind"] != "question_asked"]


def play(case: dict[str, Any], knowledge: Knowledge) -> Outcome:
    """One case from the symptom to the cause."""
    facts = case_facts(case)
    dialogue = Dialogue(knowledge, symptom(facts, knowledge))
    gold = case["gold"]["root_cause"]
    asked: list[str] = []
    while not _leads(dialogue, gold):
        question = dialogue.ask()
        if question is None or len(asked) == MAX_QUESTIONS:
            return Outcome(case["id"], case["kind"], tuple(asked), None)
        check(dialogue, question)
        asked.append(question.id)
        reply(dialogue, question, facts)
    return Outcome(case["id"], case["kind"], tuple(asked), len(asked))


def check(dialogue: Dialogue, question: Asked) -> None:
    """The question is not answered yet, and some answer to it would change something."""
    if question.id == OPENING:
        return
    data = dialogue.knowledge.questions[question.id]
    before = State(dialogue.session)
    assert not decided(dialogue.session, data), f"{question.id} is answered already"
    weighed = weigh(before, question.id, data)
    assert weighed is not None, f"{question.id} changes nothing"
    assert any(o.after.standing != before.standing for o in weighed.outlooks), f"{question.id} changes nothing"


def reply(dialogue: Dialogue, question: Asked, facts: Sequence[Fact]) -> None:
    """What the simulated user says."""
    data = dialogue.knowledge.questions.get(question.id)
    if data is None:
        dialogue.answer("d")
        return
    for answer in data["answers"]:
        given = facts_of(dialogue.session, answer)
        if given and all(_states(facts, g) for g in given):
            dialogue.answer(answer["id"])
            return
    types = {t for a in data["answers"] for entry in a["instance"] for t in entry} | set(data["provides"])
    shown = [f for f in facts if f.type in types and f.key() not in {k.key() for k in dialogue.facts}]
    if shown and (data.get("command") or data.get("reads_as")):
        dialogue.supply(shown)
    else:
        dialogue.answer("d")


def _states(facts: Iterable[Fact], wanted: Fact) -> bool:
    fields = {k: v for k, v in wanted.fields.items() if k != "text"}
    return any(f.type == wanted.type and all(f.fields.get(k) == v for k, v in fields.items()) for f in facts)


def _leads(dialogue: Dialogue, gold: str) -> bool:
    found = [f for f in dialogue.report().findings if f.confidence >= 0.5]
    return bool(found) and found[0].cause == gold


def summary(outcomes: Sequence[Outcome], title: str) -> str:
    """One line: how many cases were solved, and by how many questions at the median."""
    counts = [o.questions for o in outcomes if o.questions is not None]
    numbers = sorted(n if n is not None else MAX_QUESTIONS + 1 for n in (o.questions for o in outcomes))
    median = statistics.median(numbers) if numbers else 0
    within = sum(n <= 5 for n in counts)
    return f"{title}: {len(outcomes)} cases, {within} solved within 5 questions, median {median:g}"


def main() -> int:
    """Plays all cases of the corpus."""
    folder = Path(os.environ.get("GPURULES_CORPUS", Path(__file__).resolve().parents[2] / "shared"), "cases")
    knowledge = load_knowledge()
    cases = [yaml.safe_load(p.read_text(encoding="utf-8")) for p in sorted(folder.glob("[0-9]*.yaml"))]
    outcomes = [play(case, knowledge) for case in cases]
    if "-v" in sys.argv[1:]:
        for o in outcomes:
            print(f"{o.case:40} {'-' if o.questions is None else o.questions:>2}  {', '.join(o.asked)}")
    print(summary([o for o in outcomes if o.kind in KNOWN_KINDS], "kinds with rules"))
    print(summary(outcomes, "all kinds"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
