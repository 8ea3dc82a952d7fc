"""The programs under docs/samples: named by the knowledge, written for both languages, and right when they run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from gpurules import pipeline
from gpurules.knowledge.problems import Problems
from gpurules.knowledge.yamlnodes import load
from gpurules.pipeline import Inputs

CHECKOUT = Path(__file__).resolve().parents[2]
SAMPLES = sorted((CHECKOUT / "docs" / "samples").glob("*.py"))
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2")
LOSS = r"loss: (?P<before>[0-9.]+) to (?P<after>[0-9.]+)"
# What each prints on the CPU, where two processes stand for two GPUs.
RUNS: dict[str, tuple[Sequence[str], str]] = {
    "accumulate.py": ((), r"difference from the large batch: [0-9.]+e-(?:0[7-9]|1\d)"),
    "amp.py": ((), LOSS),
    "checkpointing.py": ((), r"kept for the backward pass: 10\.0 MiB, with checkpointing 1\.0 MiB"),
    "ddp.py": (TORCHRUN, r"processes: 2, same weights: True, loss: [0-9.]+"),
    "device.py": ((), r"device: cpu, sum: 1000"),
    "fsdp.py": (
        TORCHRUN,
        rf"processes: 2, 17009 of 33985 parameters here, {LOSS}",
    ),
    "loading.py": ((), r"workers: \d, sums of two epochs: 5559680 5559680"),
    "memory.py": ((), r"weights: 32\.0 MiB\noptimizer state: 64\.0 MiB"),
    "spawn.py": ((), r"processes: 2, sum: 3"),
}


def named() -> set[str]:
    found: set[str] = set()
    for name, part in (("advice", "advice"), ("errata", "errata")):
        root = load(CHECKOUT / "knowledge" / f"{name}.yaml", Problems())
        entries = root.get(part) if root else None
        assert entries is not None
        found |= {sample.text for _, entry in entries.pairs() if (sample := entry.get("sample")) is not None}
    return found


def test_every_sample_is_named_by_the_knowledge_and_every_one_named_is_there() -> None:
    assert named() == {f"docs/samples/{path.name}" for path in SAMPLES}
    assert [path.name for path in SAMPLES] == sorted(RUNS)


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_sample_speaks_both_languages_and_uses_what_is_current(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.search(r'\A"""[A-Z].*\n(?:.*\n)*?\n[^\n]*[\u4e00-\u9fff]', text)
    assert not re.findall(r"torch\.cuda\.amp|pretrained=|use_reentrant=True|init_method=", text)
    compile(text, path.name, "exec")


def test_the_advice_names_the_program() -> None:
    report = pipeline.diagnose(Inputs(question="How do I write gradient accumulation?", lang="en"))
    assert [(a.id, a.sample) for a in report.recommendations] == [("accumulation_code", "docs/samples/accumulate.py")]


@pytest.mark.torch_needed
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_a_sample_runs_on_the_cpu(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    launcher, printed = RUNS[path.name]
    environ = {**os.environ, "CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, *launcher, str(path)], capture_output=True, text=True, env=environ, cwd=tmp_path, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]
    match = re.fullmatch(printed, done.stdout.strip())
    assert match, done.stdout
    loss = match.groupdict()
    assert not loss or float(loss["after"]) < float(loss["before"]) / 3
