"""The validation of this machine: facts, predictions, checks, comparison.

May live here: the order of these steps and the choice of the device. Must not: checks (probes/validation), predictions
(rules), layout.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from . import __version__
from .errors import InputError
from .facts import Fact
from .probes.validation import CHECKS, Budget, Check, Device, Outcome, planned, run_checks

if TYPE_CHECKING:
    from .reasoning.session import Session
    from .report.model import Lang, Report
    from .report.validation import Validation

Progress = Callable[[Check, Outcome | None], None]


def chosen(only: Sequence[str]) -> list[Check]:
    """The checks of these names, or all. Raises InputError for one that is not there."""
    from .knowledge.problems import did_you_mean

    names = [check.name for check in CHECKS]
    for name in only:
        if name not in names:
            raise InputError("input.no_check", name=name, hint=did_you_mean(name, names), known=names)
    return [check for check in CHECKS if not only or check.name in only]


def device_of(wanted: str, facts: Sequence[Fact]) -> Device:
    """The device of `auto`, `cpu`, `cuda` or `cuda:N`. Raises InputError for another text."""
    if wanted == "auto":
        listed = any(f.type == "gpu" and f.get("vendor") in ("nvidia", "amd", None) for f in facts)
        return Device("cuda" if listed else "cpu")
    kind, colon, index = wanted.partition(":")
    if wanted == "cpu":
        return Device("cpu")
    if kind == "cuda" and (index.isascii() and index.isdigit() if colon else True):
        return Device("cuda", int(index or 0))
    raise InputError("input.no_device", name=wanted)


def validated(
    facts: Sequence[Fact], checks: Sequence[Check], device: Device, budget: Budget, progress: Progress
) -> tuple[list[Fact], list[Outcome]]:
    """The facts that the checks give, and their outcomes; facts: of the machine and the interpreter that has torch."""
    python = next((str(f.fields["executable"]) for f in facts if f.type == "python" and "executable" in f.fields), "")
    interpreter = os.path.expanduser(python) or sys.executable
    outcomes = run_checks(checks, device, interpreter, budget, progress=progress)
    return [*planned(checks, device), *(outcome.fact() for outcome in outcomes)], outcomes


def validation(
    facts: Sequence[Fact],
    checks: Sequence[Check],
    device: Device,
    budget: Budget,
    progress: Progress,
    judge: Callable[[Sequence[Fact]], tuple[Session, Report]],
    lang: Lang,
) -> tuple[Validation, Report]:
    """The checks of a device compared with what the rules say, and the report of all facts. judge: the diagnosis."""
    from .reasoning.validation import compared, findings, predictions, verdict
    from .report.validation import Validation

    begun = time.monotonic()
    own, outcomes = validated(facts, checks, device, budget, progress)
    seconds = time.monotonic() - begun
    session, report = judge([*facts, *own])
    rows = compared(
        [(o.fact(), o.detail.said(lang), o.seconds, o.measured or {}) for o in outcomes],
        predictions(session, device.kind, lang),
        lang,
    )
    found = findings(report, session)
    named = {fix for finding in found for fix in finding.fixes}
    torch = next((str(session.fields(i)["version"]) for i in session.rows("torch_install")), None)
    result = Validation(
        version=__version__,
        knowledge_version=report.knowledge_version,
        lang=lang,
        device=str(device),
        python=next((str(f.get("executable")) for f in facts if f.type == "python"), sys.executable),
        torch=torch,
        verdict=verdict(rows),
        share=budget.share,
        seconds=round(seconds, 1),
        checks=tuple(rows),
        findings=found,
        fixes=tuple(fix for fix in report.fixes if fix.id in named),
    )
    return result, report
