"""Closed loop: on random machines of the catalogs the cures do what they promise, as an independent oracle sees it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import pytest
from gpurules.facts import Fact, Provenance
from gpurules.knowledge.loader import load_knowledge
from gpurules.reasoning.diagnosis import Diagnosis
from gpurules.reasoning.session import Session
from gpurules.report.fix_text import actions
from gpurules.report.model import Effect, Fix, Report
from hypothesis import HealthCheck, given, settings

from ..recommend import oracle
from ..recommend.oracle import Machine
from .machines import Case, cases, facts

QUICK = settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
LONG = settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck))


def diagnosed(stated: Iterable[Fact]) -> Report:
    return Diagnosis(Session(load_knowledge(), stated), "en").report()


def after(stated: Sequence[Fact], effects: Iterable[Effect]) -> list[Fact]:
    """The facts once the effects are there, worked out from the report alone."""
    left = list(stated)
    for effect in effects:
        wanted = effect.where or {}
        if effect.op == "remove":
            left = [f for f in left if f.type != effect.type or any(f.fields.get(k) != v for k, v in wanted.items())]
    types = load_knowledge().vocabulary
    for effect in effects:
        if effect.op == "add":
            fields = {k: types.coerce(effect.type, k, v) for k, v in (effect.fields or {}).items()}  # type: ignore[arg-type]
            left.append(Fact(effect.type, fields, (Provenance("user", "test"),)))
    return left


def errors(report: Report) -> set[str]:
    return {f.cause for f in report.findings if f.severity == "error"}


def moved(machine: Machine, fix: Fix) -> Machine:
    """The machine for the oracle once the fix is done."""
    for effect in fix.effects:
        version = str((effect.fields or {}).get("version"))
        if effect.op == "add" and effect.type == "driver":
            machine = dataclasses.replace(machine, driver=version)
        if effect.op == "add" and effect.type == "python":
            machine = dataclasses.replace(machine, python=version)
    return machine


def faults_of_wheel(machine: Machine, fix: Fix) -> list[str]:
    """What is wrong with a wheel that a fix installs on this machine."""
    torch = (fix.packages or {}).get("torch", "").removeprefix("==")
    if not torch or not fix.index_url:
        return []
    build = oracle.best(dataclasses.replace(machine, pin=torch))
    return [] if build else [f"{fix.id}: torch {torch} does not run on {machine}"]


def unchanged(stated: Sequence[Fact], fix: Fix) -> bool:
    """Whether a fix leaves the machine as it is."""
    said = {(f.type, k, str(v)) for f in stated for k, v in f.fields.items()}
    added = [(e.type, k, str(v)) for e in fix.effects if e.op == "add" for k, v in (e.fields or {}).items()]
    return bool(added) and all(item in said for item in added)


def faults_of_words(case: Case, report: Report, fix: Fix) -> list[str]:
    """A value that is missing in a sentence, or a driver that is said to be enough and is not."""
    said = [fix.title, fix.driver_at_least, fix.driver_below, fix.python, *(s.command or s.text for s in fix.steps)]
    found = [f"{fix.id} says {text}" for text in said if text and "?" in text]
    cause = next(f.cause for f in report.findings if f.id == fix.finding)
    enough = fix.driver_at_least if cause == "driver_too_old_for_gpu" else None
    if enough and not all(oracle.knows(enough, sm) for sm in case.machine.sms):
        found.append(f"{fix.id}: driver {enough} does not know every GPU")
    return found


def faults(case: Case) -> list[str]:
    """Everything that is wrong with what is recommended for a machine."""
    stated = facts(case)
    report = diagnosed(stated)
    found = [text for fix in report.fixes for text in faults_of_words(case, report, fix)]
    found += [f"{f.id} changes nothing" for f in report.fixes if f.kind == "cure" and unchanged(stated, f)]
    planned = {s.instance.id for s in report.fix_plan.steps} if report.fix_plan else set()
    for fix in report.fixes:
        if not (fix.verified_note and fix.id in planned):
            found += faults_of_wheel(case.machine, fix)
        if fix.kind == "cure" and fix.verified == "simulated" and not fix.verified_note:
            left = errors(diagnosed(after(stated, fix.effects)))
            cause = next(f.cause for f in report.findings if f.id == fix.finding)
            if cause in left or left - errors(report):
                found.append(f"{fix.id} leaves {sorted(left)}")
    return found + faults_of_plan(case, stated, report)


def faults_of_plan(case: Case, stated: Sequence[Fact], report: Report) -> list[str]:
    plan = report.fix_plan
    if plan is None:
        return [f"no plan for {sorted(errors(report))}"] if errors(report) else []
    found: list[str] = []
    machine, now = case.machine, list(stated)
    for step in plan.steps:
        if unchanged(now, step.instance):
            found.append(f"step {step.fix} changes nothing")
        if not actions(step.instance, report.platform):
            found.append(f"step {step.fix} does not say how on {report.platform}")
        machine = moved(machine, step.instance)
        found += faults_of_wheel(machine, step.instance)
        now = after(now, step.instance.effects)
    told = {item.finding for item in plan.left}
    open_causes = {f.cause for f in report.findings if f.id in told}
    unsure = {s.cause for s in plan.steps if s.verified != "simulated"}
    remain = errors(diagnosed(now))
    if remain - open_causes - unsure:
        found.append(f"the plan leaves {sorted(remain)} and says nothing of {sorted(remain - open_causes - unsure)}")
    # PTX counts only for a driver that is known to compile it, so an unknown one is not exchanged.
    known = case.driver is not None
    if open_causes and oracle.best_over(case.machine, driver=known, python=True) is not None:
        found.append(f"says that nothing helps with {sorted(open_causes)}, but a build exists")
    return found


@QUICK
@given(case=cases())
def test_cures_hold_on_random_machines(case: Case) -> None:
    assert faults(case) == []


@pytest.mark.slow
@LONG
@given(case=cases())
def test_cures_hold_on_thousands_of_machines(case: Case) -> None:
    assert faults(case) == []
