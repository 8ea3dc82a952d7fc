"""Phrases: every entry recognises its samples and spares its near misses; questions in English and Chinese."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import gpurules
import pytest
from gpurules.facts import Provenance
from gpurules.knowledge.names import GpuName, GpuNames
from gpurules.knowledge.phrases import Phrases, load_phrases, read_question
from gpurules.knowledge.problems import Problems
from gpurules.knowledge.schema import PhraseEntry
from gpurules.knowledge.yamlnodes import load

PATH = Path(gpurules.__file__).parent / "knowledge" / "facts" / "phrases.yaml"
NAMES = GpuNames(GpuName(text) for text in ("GeForce RTX 5090", "GeForce RTX 4090", "GeForce RTX 3090", "H800", "A10"))
WANTED = {
    "after_suspend", "after_upgrade", "after_kernel_change", "daemon_reload", "runs_fine", "in_container",
    "only_container", "conda_cpu_build", "asks_toolkit", "toolkit_for_other_framework", "asks_slot_broken",
    "idle_device", "hang", "slow", "power_off", "existing_jobs_continue", "asks_rebuild", "docker_snap", "wsl",
    "all_programs_fail", "one_of_several_users", "worked_before", "wants_training", "wants_inference",
}  # fmt: skip

# Kinds that are a term or a figure, of which there are few ways to say it.
TERMS = {
    "wants_qlora", "wants_pretrain", "wants_4bit", "wants_8bit", "wants_fp32", "wants_pure16", "wants_mixed",
    "wants_ddp", "wants_fsdp", "wants_offload", "wants_checkpointing", "no_checkpointing", "asks_count",
    "optimizer_adamw8bit", "optimizer_adamw", "optimizer_sgd", "optimizer_adafactor",
    "optimizer_lion", "batch_size", "sequence_k", "sequence_tokens", "budget_usd", "budget_cny", "budget_wan",
    "asks_tensor_cores", "asks_nvlink", "asks_mig", "asks_p2p", "asks_triton", "asks_triton_on_windows",
    "asks_bundled_cuda", "asks_cudnn", "asks_nvcc_for_extension", "asks_which_cuda", "asks_cuda_on_mac",
    "asks_cuda_on_amd", "asks_torch_on_mac", "asks_ascend", "card_memory",
    "asks_nvlink_needed", "asks_same_cards", "asks_torchvision", "asks_cuda_of_driver",
    "vram_stated", "cpu_cores", "smi_cuda_mentioned", "cuda_major_mentioned", "python_mentioned", "system_mentioned",
}  # fmt: skip


def _rows() -> list[dict[str, Any]]:
    root = load(PATH, Problems())
    assert root is not None
    rows: list[dict[str, Any]] = root.plain()["rows"]
    return rows


ROWS = _rows()


def _load() -> Phrases:
    problems = Problems()
    phrases = load_phrases(PATH, problems)
    problems.raise_if_any()
    return phrases


PHRASES = _load()


@pytest.mark.parametrize("row", ROWS, ids=[row["kind"] for row in ROWS])
def test_entry(row: dict[str, Any]) -> None:
    entry = PhraseEntry.model_validate(row)
    alone = Phrases.compile([row])
    assert len(entry.patterns) >= (1 if entry.kind in TERMS else 4)
    for sample in entry.samples:
        assert [s.kind for s in alone.said(sample)] == [entry.kind], sample
        assert entry.kind in [s.kind for s in PHRASES.said(sample)], sample
    for sentence in entry.near_misses:
        assert alone.said(sentence) == [], sentence
    for pattern in entry.patterns:
        assert any(re.search(pattern, s, re.IGNORECASE | re.ASCII) for s in entry.samples), pattern


def test_the_kinds_are_there_once() -> None:
    assert set(PHRASES.kinds) >= WANTED
    assert len(set(PHRASES.kinds)) == len(PHRASES.kinds)


def test_re2_reads_the_patterns_alike() -> None:
    re2 = pytest.importorskip("re2")
    samples = [s for row in ROWS for s in [*row["samples"], *row.get("near_misses", ())]]
    for row in ROWS:
        for pattern in [*row["patterns"], *row.get("unless", ())]:
            ours, other = re.compile(pattern, re.IGNORECASE | re.ASCII), re2.compile(f"(?i){pattern}")
            for sample in samples:
                assert bool(ours.search(sample)) == bool(other.search(sample)), (pattern, sample)


QUESTIONS = [
    ("It died after a driver update, and nvidia-smi works.",
     [("after_upgrade", "after a driver update", None), ("driver_works", "nvidia-smi works", None)]),
    ("The host driver is the 525 branch; the image is built on CUDA 12.1.",
     [("driver_branch", "driver is the 525 branch;", 525), ("container_cuda", "12.1", None),
      ("cuda_mentioned", "12.1", None)]),
    ("I own a 5090 and two 4090s.",
     [("gpu_mentioned", "GeForce RTX 5090", 1), ("gpu_mentioned", "GeForce RTX 4090", 2)]),
    ("Everything worked until last week.", [("worked_before", "Everything worked until", None)]),
    ("8 张 H800 训练卡住，单卡正常",
     [("hang", "卡住", None), ("works_with_fewer_gpus", "单卡正常", None), ("wants_training", "训练", None),
      ("gpu_mentioned", "H800", 8)]),
    ("休眠唤醒之后所有程序都报错，怎么解决？",
     [("after_suspend", "休眠", None), ("all_programs_fail", "所有程序都报错", None),
      ("asks_change", "怎么解决", None)]),
    ("驱动是 550 的，容器里看不到显卡", [("in_container", "容器里", None), ("driver_branch", "驱动是 550", 550)]),
    ("Nothing interesting was said.", []),
    ("", []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "statements"), QUESTIONS, ids=[text for text, _ in QUESTIONS])
def test_questions(text: str, statements: list[tuple[str, str, int | None]]) -> None:
    facts = read_question(text, PHRASES, NAMES)
    assert [(f.fields["kind"], f.fields["detail"], f.get("number")) for f in facts] == statements
    assert all(
        f.type == "statement" and f.provenance == (Provenance("user", "question", None, "question"),) for f in facts
    )


def test_details_are_short() -> None:
    row = {"kind": "long", "patterns": ["a.*b"], "samples": []}
    (said,) = Phrases.compile([row]).said("a" + "x" * 1000 + "b")
    assert len(said.detail) == 120


def test_long_questions_cost_little() -> None:
    for text in ("the driver in a container " * 100_000, "a" * 1_000_000, "after " * 100_000, "训练" * 100_000):
        begun = time.monotonic()
        read_question(text, PHRASES, NAMES)
        assert time.monotonic() - begun < 3


def test_faults_of_a_phrase_file(tmp_path: Path) -> None:
    path = tmp_path / "phrases.yaml"
    path.write_text(
        "rows:\n  - {kind: a, patterns: ['(?=x)', '(a', 'fine']}\n  - {kind: b}\n  - {kind: c, patterns: ['(a)\\1']}\n",
        encoding="utf-8",
    )
    problems = Problems()
    load_phrases(path, problems)
    refused = "look-around, back-references, inline flags and possessive repeats are not allowed"
    assert [str(p) for p in problems.found] == [
        f"phrases.yaml:2: a.patterns: {refused}",
        "phrases.yaml:2: a.patterns: no valid pattern: missing ), unterminated subpattern at position 0",
        "phrases.yaml:3: a phrase needs `kind` and `patterns`",
        f"phrases.yaml:4: c.patterns: {refused}",
    ]
