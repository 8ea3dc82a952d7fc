"""Reports and sessions of the triage cases and of small machines, for the tests of explanations.

May live here: turning input into reports. Must not: expectations.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from gpurules import pipeline
from gpurules.knowledge.loader import Knowledge, load_knowledge
from gpurules.reasoning.recall import facts_of
from gpurules.reasoning.session import Session
from gpurules.report.model import Report

ROOT = Path(__file__).parents[2]
CASES = sorted((ROOT / "tests" / "cases").glob("*.yaml"))
# Inputs that are not of this repository: tests with them are skipped where they are absent.
CORPUS = sorted((Path(os.environ.get("GPURULES_CORPUS", ROOT.parent / "shared")) / "cases").glob("[0-9]*.yaml"))
TODAY = date(2026, 11, 30)
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def knowledge() -> Knowledge:
    return load_knowledge()


def inputs_of(given: dict[str, Any], lang: str = "en") -> pipeline.Inputs:
    """The inputs that a case gives: texts by name, facts, a question."""
    texts = [(f"{n}.txt", str(t).encode()) for n, t in given.items() if n not in ("question", "facts")]
    facts = [("facts.yaml", yaml.safe_dump(given["facts"], allow_unicode=True).encode())] if "facts" in given else []
    return pipeline.Inputs(reports=texts, facts=facts, question=given.get("question"), lang=lang, today=TODAY)


@functools.cache
def report_of(path: Path, lang: str = "en") -> Report:
    return pipeline.diagnose(inputs_of(yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)["input"], lang))


def reports() -> Iterator[tuple[Path, Report]]:
    """The reports of all cases of this repository, and of the corpus where it is there."""
    for path in (*CASES, *CORPUS):
        yield path, report_of(path)


def described(*facts: dict[str, dict[str, Any]], lang: str = "en") -> Report:
    """The report of a machine given as typed facts."""
    content = yaml.safe_dump({"facts": list(facts)}, sort_keys=False, allow_unicode=True)
    return pipeline.diagnose(pipeline.Inputs(facts=[("machine.yaml", content.encode())], lang=lang, today=TODAY))


def machine(**changed: Any) -> Report:
    """A Linux machine with one GPU, a driver and a torch; `changed` replaces single values."""
    told = {
        "gpu": "NVIDIA GeForce RTX 5090",
        "driver": "570.124.06",
        "torch": "2.6.0+cu124",
        "python": "3.12.3",
    } | changed
    lang = told.pop("lang", "en")
    return described(
        {"os": {"family": told.get("family", "linux"), "machine": told.get("machine", "x86_64")}},
        {"gpu": {"index": 0, "name": told["gpu"]}},
        {"driver": {"vendor": "nvidia", "version": told["driver"]}},
        {"torch": {"version": told["torch"]}},
        {"python": {"version": told["python"]}},
        lang=lang,
    )


def session(report: Report) -> Session:
    return Session(knowledge(), facts_of(report, knowledge()))
