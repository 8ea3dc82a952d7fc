"""What the rules expect of each check of the validation probe, and whether what came of it agrees.

May live here: reading predictions off a session and comparing. Must not: any expectation (rules of area validation),
running checks, layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..facts import Fact
from ..report.messages import Words
from ..report.model import Finding, Lang, Report
from ..report.validation import CheckRow
from .session import Session

AREA = "validation"
OUTCOME = "validation_check"


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is expected of a check, with the rule that says so and its sentence."""

    expected: Literal["passed", "failed"]
    value: str | None
    rule: str
    because: str
    peak_max_mib: int | None = None


def predictions(session: Session, device: str, lang: Lang) -> dict[str, Prediction]:
    """By check; one of which the rules say both that it passes and that it fails has none."""
    found: dict[str, list[Prediction]] = {}
    for row in session.rows("prediction", device=device):
        fields, firing = session.fields(row), session.because(row)
        if firing is None:
            continue
        rule = session.rule_of(firing.rule)
        text = session.rule_text(firing.rule, "because", session.bindings(firing), lang)
        expected: Any = fields["expected"]
        value = str(fields["value"]) if "value" in fields else None
        found.setdefault(str(fields["check"]), []).append(
            Prediction(expected, value, rule.group if rule else firing.rule, text)
        )
    memory = {
        str(fields["check"]): int(fields["peak_max_mib"])
        for fields in map(session.fields, session.rows("memory_expected", device=device))
    }
    # The one that also says what is read tells more than the one that only says that it passes.
    return {
        check: replace(min(said, key=lambda p: p.value is None), peak_max_mib=memory.get(check))
        for check, said in found.items()
        if len({p.expected for p in said}) == 1 and len({p.value for p in said} - {None}) <= 1
    }


def compared(
    outcomes: Sequence[tuple[Fact, str, float, Mapping[str, Any]]], predicted: Mapping[str, Prediction], lang: Lang
) -> list[CheckRow]:
    """The rows of the checks. outcomes: the fact of each with the detail in words, its seconds
    and what it measured."""
    words = Words(lang)
    return [
        _row(fact, detail, seconds, measured, predicted.get(str(fact.fields["check"])), words)
        for fact, detail, seconds, measured in outcomes
    ]


def _row(
    fact: Fact, detail: str, seconds: float, measured: Mapping[str, Any], prediction: Prediction | None, words: Words
) -> CheckRow:
    check, state = str(fact.fields["check"]), fact.fields["state"]
    told: dict[str, Any] = {
        "check": check,
        "title": words.named(f"validate.check.{check}", check),
        "observed": state,
        "detail": detail or None,
        "value": fact.get("value"),
        "seconds": seconds,
        "measured": dict(measured) or None,
        "predicted": "unknown",
    }
    if prediction is not None:
        told |= {
            "predicted": prediction.expected,
            "predicted_value": prediction.value,
            "because": prediction.because,
            "rule": prediction.rule,
            "predicted_mib": prediction.peak_max_mib,
            "agrees": _agrees(fact, prediction),
        }
    return CheckRow(**told)


def _agrees(fact: Fact, prediction: Prediction) -> bool | None:
    state, value, peak = fact.fields["state"], fact.get("value"), fact.get("peak_mib")
    if state == "skipped":
        return None
    if (state == "passed") != (prediction.expected == "passed"):
        return False
    if peak is not None and prediction.peak_max_mib is not None and int(peak) > prediction.peak_max_mib:
        return False
    return value is None or prediction.value is None or value == prediction.value


def verdict(rows: Sequence[CheckRow]) -> Literal["agrees", "disagrees", "unknown"]:
    """Of all checks together."""
    said = {row.agrees for row in rows} - {None}
    if False in said:
        return "disagrees"
    return "agrees" if said else "unknown"


def findings(report: Report, session: Session) -> tuple[Finding, ...]:
    """The findings that disagreements led to."""
    rules = session.knowledge.rules
    return tuple(f for f in report.findings if rules.get(f.rule, {}).get("area") == AREA)
