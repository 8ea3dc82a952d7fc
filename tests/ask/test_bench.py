"""The simulated user of bench/dialogue.py, over the cases of the kinds that rules know."""

from __future__ import annotations

import os
import statistics
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from gpurules.knowledge.loader import Knowledge

from ..benches import bench as load

ROOT = Path(__file__).parents[2]
CASES = Path(os.environ.get("GPURULES_CORPUS", ROOT.parent / "shared"), "cases")


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return load("dialogue")


@pytest.mark.skipif(not CASES.is_dir(), reason="needs the cases (GPURULES_CORPUS)")
def test_five_questions_do_at_the_median(knowledge: Knowledge, bench: ModuleType) -> None:
    cases = [yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(CASES.glob("[0-9]*.yaml"))]
    played = [bench.play(case, knowledge) for case in cases if case["kind"] in bench.KNOWN_KINDS]
    assert len(played) == 25
    counts = [bench.MAX_QUESTIONS + 1 if o.questions is None else o.questions for o in played]
    assert statistics.median(counts) <= 5
    assert sum(n <= 5 for n in counts) >= 20
