from __future__ import annotations

import pytest
import yaml
from gpurules.facts import Fact
from gpurules.gathering import gather
from gpurules.reasoning.session import Session
from gpurules.report.model import Report

from .machines import inputs_of, knowledge, machine, reports, session


def rows_of(one: Session) -> set[object]:
    return {(t, tuple(sorted(f.items()))) for t, f in (one.memory.rows[i] for i in range(len(one.memory.rows)))}


def test_a_report_holds_all_that_its_session_was_made_from() -> None:
    for path, report in list(reports())[::4]:
        given = yaml.safe_load(path.read_text(encoding="utf-8"))["input"]
        first = Session(knowledge(), gather(inputs_of(given), knowledge()).facts)
        again = session(Report.model_validate_json(report.to_json()))
        assert rows_of(again) == rows_of(first), path.name
        assert [(f.key(), f.provenance) for f in again.facts if f.type != "conflict"] == [
            (f.key(), f.provenance) for f in _once(first)
        ], path.name


def _once(one: Session) -> list[Fact]:
    """The session's facts in the report's order: by row, each row once."""
    return [one.fact_of[i] for i in sorted(one.fact_of) if one.fact_of[i].type != "conflict"]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_language_of_a_report_does_not_matter(lang: str) -> None:
    assert rows_of(session(machine(lang=lang))) == rows_of(session(machine()))


def test_facts_of_unknown_types_are_left_out() -> None:
    report = machine()
    strange = report.facts[0].model_copy(update={"type": "of_another_version"})
    assert session(report.model_copy(update={"facts": (*report.facts, strange)})).facts == session(report).facts
