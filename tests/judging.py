"""Judging a report by what a case expects, for whoever runs cases.

May live here: reading tests/cases, the inputs that a case stands for, the comparison of a report with its `expect`.

A case is a YAML file: id (the file's name), source_url (a public report or page on which its situation rests; the
texts are our own), about, input (texts by name; question, facts, goals, project: files by name), expect: verdict;
causes (of the findings, all, in order) or, for an unknown verdict, first_candidate (absent: no finding at all) or
candidates (all, in order); order (these are among the findings, in this order); never_causes; title and confidence
[low, high] (of the first finding); fixes (each is met by one fix, in this order; every field given must be equal, of
packages those named); fix_ids (of all fixes, in order); never_actions, never_indexes (of no fix whatever); questions
and advice (ids of all, in order); never_questions; plan (verdict, choices: the first ones, numbers: [low, high] by
name, claims, reasons: each of these stands in one); recommend (what `recommend` answers to the same inputs: build,
absent where there is none; reason: why there is none; changes: what would have to change; alternatives: all of them).
"""

from __future__ import annotations

from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from gpurules.pipeline import Inputs
from gpurules.probes.project import read_project

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))
INDEX = "https://download.pytorch.org/whl/"
TODAY = date(2026, 11, 30)


@cache
def case(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


def facts_text(content: Any) -> str:
    return yaml.safe_dump(content, allow_unicode=True)


def inputs(given: dict[str, Any]) -> Inputs:
    """The inputs of a case without the command line."""
    texts = {k: v for k, v in given.items() if k not in ("question", "goals", "project")}
    project = read_project({name: text.encode() for name, text in given.get("project", {}).items()})
    return Inputs(
        reports=[(f"{k}.txt", v.encode()) for k, v in texts.items() if not k.startswith("facts")],
        facts=[(f"{k}.yaml", facts_text(v).encode()) for k, v in texts.items() if k.startswith("facts")],
        question=given.get("question"),
        goals=given.get("goals", {}),
        given=project.facts,
        today=TODAY,
    )


def faults(report: dict[str, Any], expect: dict[str, Any]) -> list[str]:
    """Where a report, as JSON, is not what is expected."""
    causes = [finding["cause"] for finding in report["findings"]]
    found = [] if report["verdict"] == expect["verdict"] else [f"verdict {report['verdict']}"]
    if "candidates" in expect or "causes" in expect:
        found += [] if causes == expect.get("candidates", expect.get("causes")) else [f"causes {causes}"]
    elif causes[:1] != ([expect["first_candidate"]] if "first_candidate" in expect else []):
        found.append(f"candidates {causes}")
    order = [cause for cause in causes if cause in expect.get("order", ())]
    found += [] if order == expect.get("order", []) else [f"order {causes}"]
    found += [f"names {cause}" for cause in causes if cause in expect.get("never_causes", ())]
    if "title" in expect and (said := [f["title"] for f in report["findings"]][:1]) != [expect["title"]]:
        found.append(f"title {said}")
    low, high = expect.get("confidence", (0, 1))
    found += [f"confidence {f['confidence']}" for f in report["findings"][:1] if not low <= f["confidence"] <= high]
    if "questions" in expect and (asked := [q["id"] for q in report["questions"]]) != expect["questions"]:
        found.append(f"questions {asked}")
    found += [f"asks {q['id']}" for q in report["questions"] if q["id"] in expect.get("never_questions", ())]
    if "advice" in expect and (given := [a["id"] for a in report["recommendations"]]) != expect["advice"]:
        found.append(f"advice {given}")
    return [*found, *_fixes(report, expect), *_plan(report.get("plan"), expect.get("plan"))]


def recommend_faults(result: dict[str, Any], expect: dict[str, Any]) -> list[str]:
    """Where a recommendation, as JSON, is not what is expected."""
    build = f"{result['torch']}+{result['index']}" if "torch" in result else None
    changes = [change["what"] for change in (result.get("none") or {}).get("changes", ())]
    reason = (result.get("none") or {}).get("reason")
    others = [f"{other['torch']}+{other['index']}" for other in result.get("alternatives", ())]
    found = [] if build == expect.get("build") else [f"recommends {build}"]
    found += [] if changes == expect.get("changes", []) else [f"changes {changes}"]
    found += [] if reason == expect.get("reason", reason) else [f"reason {reason}"]
    return [*found, *([] if others == expect.get("alternatives", others) else [f"alternatives {others}"])]


def _fixes(report: dict[str, Any], expect: dict[str, Any]) -> list[str]:
    ids = [fix["id"] for fix in report["fixes"]]
    found = [f"fixes {ids}"] if ids != expect.get("fix_ids", ids) else []
    places: list[int] = []
    for wanted in expect.get("fixes", ()):
        fitting = [i for i, fix in enumerate(report["fixes"]) if _meets(fix, wanted)]
        places += fitting[:1]
        if not fitting:
            found.append(f"no fix {wanted} among {[(f['id'], f['action']) for f in report['fixes']]}")
    if places != sorted(places):
        found.append(f"fixes in the order {places}")
    found += [
        f"offers {name}" for name in {f["action"] for f in report["fixes"]} & set(expect.get("never_actions", ()))
    ]
    barred = {INDEX + name for name in expect.get("never_indexes", ())}
    return [*found, *(f"offers {url}" for url in {f.get("index_url") for f in report["fixes"]} & barred)]


def _meets(fix: dict[str, Any], wanted: dict[str, Any]) -> bool:
    packages = fix.get("packages") or {}
    rest = {k: v for k, v in wanted.items() if k != "packages"}
    return all(fix.get(k) == v for k, v in rest.items()) and all(
        packages.get(name) == spec for name, spec in wanted.get("packages", {}).items()
    )


def _plan(plan: dict[str, Any] | None, expect: dict[str, Any] | None) -> list[str]:
    if expect is None:
        return []
    if plan is None:
        return ["no plan"]
    found = [f"plan {k} {plan.get(k)}" for k in ("verdict", "claims") if k in expect and plan.get(k) != expect[k]]
    choices = expect.get("choices", [])
    found += [f"choices {plan['choices']}"] if plan["choices"][: len(choices)] != choices else []
    numbers = plan["numbers"]
    reasons = [reason["text"] for reason in plan["reasons"]]
    return [
        *found,
        *(
            f"no reason {text!r} among {reasons}"
            for text in expect.get("reasons", ())
            if text not in "\n".join(reasons)
        ),
        *(
            f"{name} {numbers.get(name)}"
            for name, (low, high) in expect.get("numbers", {}).items()
            if not low <= numbers.get(name, low - 1) <= high
        ),
    ]
