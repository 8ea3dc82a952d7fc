from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from gpurules.report.model import Finding, Report
from gpurules.report.schema import PUBLISHED, json_schema
from gpurules.schemas import schema_text
from pydantic import ValidationError

SCHEMAS = Path(__file__).parents[2] / "docs" / "schema"
NAMES = ["one_problem", "one_problem_zh", "several", "healthy", "no_gpu", "unknown", "planning"]


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_the_published_schema_is_that_of_the_models(name: str) -> None:
    # After a change of the models: python -m gpurules.report.schema docs/schema
    assert (SCHEMAS / name).read_text(encoding="utf-8") == schema_text(json_schema(name))
    jsonschema.Draft202012Validator.check_schema(json_schema(name))


@pytest.mark.parametrize("name", NAMES)
def test_reports_obey_the_schema_and_survive_the_journey(name: str, request: pytest.FixtureRequest) -> None:
    report: Report = request.getfixturevalue(name)
    written = json.loads(report.to_json())
    jsonschema.validate(written, json_schema(), cls=jsonschema.Draft202012Validator)
    assert Report.model_validate(written) == report
    assert written == json.loads(report.to_json(ascii_only=True))


def _values(node: Any) -> list[Any]:
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else []
    return [node, *(value for child in children for value in _values(child))]


@pytest.mark.parametrize("name", NAMES)
def test_absent_is_left_out(name: str, request: pytest.FixtureRequest) -> None:
    assert None not in _values(request.getfixturevalue(name).to_dict())


def test_the_keys_of_the_contract(one_problem: Report) -> None:
    written = one_problem.to_dict()
    assert list(written) == [
        *("schema", "version", "knowledge_version", "lang", "verdict", "summary", "platform", "findings", "fixes"),
        *("not_checked", "questions", "recommendations", "facts", "derivations", "sources", "recognised"),
        *("assumptions", "passed"),
    ]
    assert written["schema"] == "gpurules.report/1"
    assert written["fixes"][0]["packages"] == {"torch": "==2.13.0+cu129", "torchvision": "==0.28.0+cu129"}
    assert "env" not in written["fixes"][0]
    assert written["facts"][1]["fields"] == {
        "name": "NVIDIA GeForce RTX 5090",
        "index": 0,
        "display_active": True,
    }


def test_the_schema_refuses_what_the_contract_does_not_know(one_problem: Report) -> None:
    written = one_problem.to_dict()
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**written, "verdict": "maybe"}, json_schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({k: v for k, v in written.items() if k != "findings"}, json_schema())
    jsonschema.validate({**written, "added_later": 1}, json_schema())


def test_json_cannot_control_a_terminal(healthy: Report) -> None:
    text = healthy.model_copy(update={"summary": "a\x1b[2J\x9b1m\u202eb\u2028"}).to_json()
    assert '"summary": "a\\u001b[2J\\u009b1m\\u202eb\\u2028"' in text
    assert json.loads(text)["summary"] == "a\x1b[2J\x9b1m\u202eb\u2028"


@pytest.mark.parametrize(
    ("severity", "statuses"),
    [("error", [1, 1, 0]), ("warning", [0, 1, 0]), ("info", [0, 0, 0])],
)
def test_exit_status(healthy: Report, severity: str, statuses: list[int]) -> None:
    finding = Finding(id="f1", cause="c", severity=severity, title="t", message="m")  # type: ignore[arg-type]
    report = healthy.model_copy(update={"findings": (finding,)})
    assert [report.exit_status(level) for level in ("error", "warning", "never")] == statuses
    assert healthy.exit_status() == 0


def test_a_report_does_not_change(healthy: Report) -> None:
    with pytest.raises(ValidationError):
        healthy.verdict = "problems"  # type: ignore[misc]


@pytest.mark.parametrize("confidence", [-0.1, 1.1, float("nan")])
def test_confidence_is_a_share(confidence: float) -> None:
    with pytest.raises(ValidationError):
        Finding(id="f", cause="c", severity="error", title="t", message="m", confidence=confidence)
