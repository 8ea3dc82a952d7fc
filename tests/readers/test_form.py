"""Forms of issues as people fill them in: which entries are read, and which lines are none."""

from __future__ import annotations

from typing import Any

import pytest
from gpurules.facts import Fact
from gpurules.gathering import Inputs, gather
from gpurules.knowledge.loader import load_knowledge

KNOWLEDGE = load_knowledge()


def facts(text: str) -> list[Fact]:
    return list(gather(Inputs(reports=[("issue.txt", text.encode())]), KNOWLEDGE).facts)


def said(text: str, *types: str) -> list[tuple[str, dict[str, Any], int | None]]:
    """The facts of these types from a form, with the line they stand on."""
    return [
        (f.type, dict(f.fields), f.provenance[0].line)
        for f in facts(text)
        if f.provenance[0].reader == "form" and f.type in (types or (f.type,))
    ]


GPU = {"name": "RTX 3090", "index": 0}
DRIVER = {"vendor": "nvidia", "version": "535.113.01"}


@pytest.mark.parametrize(
    "text",
    [
        "- GPU: RTX 3090\n- Driver version: 535.113.01",
        "* **GPU**: RTX 3090\n* **Driver version**: 535.113.01",
        "**GPU:** RTX 3090\n**NVIDIA driver:** 535.113.01",
        "1. GPU model: RTX 3090\n2. GPU driver: 535.113.01",
        "显卡：RTX 3090\n显卡驱动：535.113.01",
        "| GPU | RTX 3090 |\n| Driver | 535.113.01 |",
        "### GPU\n\nRTX 3090\n\n### Driver version\n\n535.113.01\n",
        "**GPU**\nRTX 3090\n**Driver**\n535.113.01\n",
        "Driver: 535.113.01, GPU: RTX 3090",
        "> GPU: RTX 3090\n> Driver: 535.113.01",
    ],
)
def test_forms(text: str) -> None:
    assert sorted((t, f) for t, f, _ in said(text, "gpu", "driver")) == [("driver", DRIVER), ("gpu", GPU)]


def test_each_entry_names_its_own_line() -> None:
    text = "### GPU\n\nRTX 3090\n\nThanks!\n- OS: Ubuntu 22.04\n- Python: 3.10.12\n"
    assert [(t, line) for t, _, line in said(text)] == [("gpu", 3), ("os", 6), ("python", 7)]


BESIDE = "torch.cuda.OutOfMemoryError: CUDA out of memory.\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RTX 3090", {"gpu": {"name": "RTX 3090", "index": 0}}),
        ("2x RTX 3090", {"gpu": {"name": "RTX 3090", "index": 0}}),
        ("RTX 4090 显卡*4", {"gpu": {"name": "RTX 4090", "index": 0}}),
        ("* [x] PyTorch version: 2.5.1+cu121", {"torch": {"version": "2.5.1+cu121"}}),
        ("- GPU (e.g. RTX 3090): RTX 4090", {"gpu": {"name": "RTX 4090", "index": 0}}),
        ("## GPU model?\n- RTX 4090", {"gpu": {"name": "RTX 4090", "index": 0}}),
        ("OS = Windows 11", {"os": {"family": "windows", "name": "Windows 11"}}),
        (
            "Ubuntu 22.04, RTX 4090, torch 2.5.1, driver 550.54",
            {
                "gpu": {"name": "RTX 4090", "index": 0},
                "driver": {"vendor": "nvidia", "version": "550.54"},
                "torch": {"version": "2.5.1"},
                "os": {"family": "linux", "name": "Ubuntu 22.04", "distro": "ubuntu", "distro_version": "22.04"},
            },
        ),
        (
            "My environment: RTX 4090, a lot of patience, torch 2.5.1",
            {"gpu": {"name": "RTX 4090", "index": 0}, "torch": {"version": "2.5.1"}},
        ),
        ("运行环境：RTX 4090，torch 2.5.1", {"gpu": {"name": "RTX 4090", "index": 0}, "torch": {"version": "2.5.1"}}),
        ("I wonder whether an RTX 4090, torch 2.5.1 would help", {}),
        ("step 3, loss 0.25, RTX 4090", {}),
    ],
)
def test_bare_lists_beside_an_output(text: str, expected: dict[str, Any]) -> None:
    found: dict[str, Any] = {}
    for kind, fields, _ in said(BESIDE + text):
        found.setdefault(kind, fields)
    found.pop("statement", None)
    assert found == expected


def test_a_bare_list_alone_is_no_machine() -> None:
    assert said("RTX 4090, torch 2.5.1") == []


def test_several_cards() -> None:
    assert [f for _, f, _ in said("GPU: 2x RTX 3090", "gpu")] == [GPU, GPU | {"index": 1}]
    assert [f["name"] for _, f, _ in said("GPU 0: RTX 3090\nGPU 1: RTX 4090", "gpu")] == ["RTX 3090", "RTX 4090"]


def test_of_one_meaning_the_first_readable_entry_counts() -> None:
    text = "GPU: yes\nGPU: RTX 3090\nanother user:\nGPU: RTX 4090"
    assert [f["name"] for _, f, _ in said(text, "gpu")] == ["RTX 3090"]


@pytest.mark.parametrize(
    "text",
    [
        "GPU: 0\nGPU available: True",
        "- GPU:\n- Driver:\n- Python:\n- PyTorch:",
        "### GPU\n\n_No response_\n",
        "- GPU: [e.g. RTX 3090]\n- OS: [e.g. Ubuntu]",
        "Device: cuda:0\nMemory: 4.2 GB\nVersion: 2.1",
        "12:30:01 step: 3\nhttps://example.org/GPU: nothing",
        "raise ValueError(f'GPU: {name}')",
        "Will my GPU, an old one: run it?",
    ],
)
def test_lines_that_tell_of_no_machine(text: str) -> None:
    assert said(text) == []


def test_what_an_output_tells_counts_more_than_a_form() -> None:
    table = (
        "GPU: RTX 4090\nDriver: 550.54\n"
        "Tue Mar  4 10:00:00 2025\n"
        "| NVIDIA-SMI 535.113.01             Driver Version: 535.113.01   CUDA Version: 12.2     |\n"
        "|   0  NVIDIA GeForce RTX 3090        Off | 00000000:01:00.0  On |                  N/A |\n"
    )
    assert said(table, "driver") == []
    assert [f.fields["version"] for f in facts(table) if f.type == "driver"] == ["535.113.01"]


def test_a_form_completes_an_output() -> None:
    text = "Driver: 515.65.01\nRuntimeError: The NVIDIA driver on your system is too old (found version 11070)."
    assert said(text, "driver") == [("driver", {"vendor": "nvidia", "version": "515.65.01"}, 1)]


def test_a_long_text_of_entries_is_cut() -> None:
    text = "\n".join(f"step {n}: value {n}" for n in range(20_000)) + "\nGPU: RTX 3090"
    assert said(text) == []
