"""Questions of what fits, in both languages: the answer, and what to install."""

from __future__ import annotations

import pytest
from gpurules import pipeline
from gpurules.pipeline import Inputs
from gpurules.report.model import Report

TORCH, DRIVER, FEATURE, TOOLKIT = "fit_torch", "fit_driver", "fit_feature", "fit_toolkit"
# The question, what it is about, the answer, and what the first command installs.
QUESTIONS: list[tuple[str, str, str, str | None]] = [
    (
        "Which PyTorch for an RTX 5090 on Windows 11 with Python 3.12 and driver 576.02?",
        TORCH,
        "torch 2.11.0+cu128 is the newest that runs on GeForce RTX 5090",
        "torch==2.11.0+cu128",
    ),
    (
        "I have CUDA 12.4, which torch should I install for an RTX 3060?",
        TORCH,
        "torch 2.15.0+cu132 is the newest that runs on GeForce RTX 3060",
        "torch==2.15.0+cu132",
    ),
    (
        "How do I install PyTorch for a GTX 1080 Ti?",
        TORCH,
        "torch 2.14.1+cu126 is the newest that runs on GeForce GTX 1080 Ti",
        "torch==2.14.1+cu126",
    ),
    (
        "RTX 4060 应该装哪个版本的 pytorch",
        TORCH,
        "torch 2.15.0+cu132 is the newest that runs on GeForce RTX 4060",
        "torch==2.15.0+cu132",
    ),
    (
        "Does an RTX 5090 work with PyTorch 2.5?",
        TORCH,
        "No: no build of torch 2.5 has code for GeForce RTX 5090",
        "torch==2.15.0+cu132",
    ),
    (
        "Does an RTX 5090 work with PyTorch 2.7?",
        TORCH,
        "Yes: torch 2.7.1+cu128 runs on GeForce RTX 5090",
        "torch==2.7.1+cu128",
    ),
    (
        "Will PyTorch 2.12 work on a GTX 1080 Ti?",
        TORCH,
        "Yes: torch 2.12.1+cu126 runs on GeForce GTX 1080 Ti",
        "torch==2.12.1+cu126",
    ),
    (
        "Does torch 2.9 run on a Tesla K80?",
        TORCH,
        "No: no build of torch 2.9 has code for Tesla K80",
        "torch==2.7.1+cu118",
    ),
    (
        "RTX 5090 支持 torch 2.5 吗",
        TORCH,
        "No: no build of torch 2.5 has code for GeForce RTX 5090",
        "torch==2.15.0+cu132",
    ),
    (
        "Does PyTorch support the RTX 4090?",
        TORCH,
        "Yes: GeForce RTX 4090 is supported, by torch 2.15.0+cu132 among others",
        "torch==2.15.0+cu132",
    ),
    ("Does PyTorch still support the Tesla K40?", TORCH, "No: no torch build of PyTorch has code for Tesla K40", None),
    (
        "Can I use torch 2.9 with driver 470.82 on an RTX 3060?",
        DRIVER,
        "Only with a newer driver: torch 2.9.0+cu126 needs 525.60.13 or newer",
        "torch==2.7.1+cu118",
    ),
    (
        "Can I use torch 2.9 with driver 472.12 on an RTX 3060 under Windows 10?",
        DRIVER,
        "Only with a newer driver: torch 2.9.0+cu126 needs 528.33 or newer",
        "torch==2.5.1+cu118",
    ),
    ("nvidia-smi 显示 CUDA 12.2，能装 cu124 的 torch 吗", DRIVER, "Yes: driver 535.54.03 runs cu124 builds", None),
    ("Is cu130 supported by driver 550?", DRIVER, "No: cu130 builds need driver 580 or newer", None),
    ("Is cu124 supported by driver 537.58 on Windows 10?", DRIVER, "Yes: driver 537.58 runs cu124 builds", None),
    ("Is cu130 supported by driver 551.23 on Windows 11?", DRIVER, "No: cu130 builds need driver 580 or newer", None),
    ("Which driver do I need for CUDA 13?", DRIVER, "CUDA 13 needs driver 580 or newer (Windows: 580)", None),
    (
        "Which NVIDIA driver does CUDA 12.8 need?",
        DRIVER,
        "CUDA 12.8 needs driver 525.60.13 or newer (Windows: 528.33)",
        None,
    ),
    ("What driver does an RTX 5090 need?", DRIVER, "GeForce RTX 5090 needs driver branch 570 or newer", None),
    ("Which driver should I take for a GTX 1080?", DRIVER, "GeForce GTX 1080 takes driver branches 367 to 580", None),
    (
        "Which driver for torch 2.9 on an RTX 3060?",
        DRIVER,
        "torch 2.9.0+cu126 needs driver 525.60.13 or newer (Windows: 528.33)",
        None,
    ),
    ("Is driver 550 enough for PyTorch 2.9 on an L40S?", DRIVER, "Yes: driver 550 runs torch 2.9.1+cu128", None),
    (
        "Is driver 470 enough for PyTorch 2.9 on an A100?",
        DRIVER,
        "Only with a newer driver: torch 2.9.0+cu126 needs 525.60.13 or newer",
        "torch==2.7.1+cu118",
    ),
    ("RTX 5090 需要什么版本的驱动", DRIVER, "GeForce RTX 5090 needs driver branch 570 or newer", None),
    ("V100 能跑 bf16 吗", FEATURE, "No: Tesla V100 has no bfloat16 units", None),
    ("Does the A100 support bfloat16?", FEATURE, "Yes: A100 computes bfloat16 in its tensor cores", None),
    ("Does the RTX 3090 support fp8?", FEATURE, "No: GeForce RTX 3090 has no FP8 units", None),
    ("4090 支持 fp8 吗", FEATURE, "Yes: GeForce RTX 4090 computes FP8 in its tensor cores", None),
    ("Does the RTX 2080 Ti have TF32?", FEATURE, "No: GeForce RTX 2080 Ti has no TF32 units", None),
    ("Is TF32 available on the A100?", FEATURE, "Yes: A100 computes TF32 in its tensor cores", None),
    (
        "My RTX 2080 Ti: does flash attention 2 work on it?",
        FEATURE,
        "No: FlashAttention 2 does not run on GeForce RTX 2080 Ti",
        None,
    ),
    ("3090 能用 flash-attn 吗", FEATURE, "Yes: FlashAttention 2 runs on GeForce RTX 3090", None),
    (
        "Do I need to install the CUDA toolkit to use PyTorch?",
        TOOLKIT,
        "No CUDA toolkit is needed for torch from pip",
        None,
    ),
    ("安装 pytorch 需要单独安装 CUDA 吗", TOOLKIT, "No CUDA toolkit is needed for torch from pip", None),
    (
        "RX 7900 XTX 支持 pytorch 吗",
        TORCH,
        "torch 2.13.0+rocm7.2 is the newest that runs on Radeon RX 7900 XTX",
        "torch==2.13.0+rocm7.2",
    ),
    ("Does PyTorch work on Apple M2?", TORCH, "Yes: torch runs on Apple M2 through MPS", None),
    (
        "Which torch and which driver do I need for an RTX 5090 on Ubuntu 24.04?",
        DRIVER,
        "GeForce RTX 5090 needs driver branch 570 or newer",
        None,
    ),
    (
        "Does an RTX 5090 work with PyTorch 2.5 on Windows 11?",
        TORCH,
        "No: torch 2.5 has no code for GeForce RTX 5090",
        "torch==2.14.1+cu132",
    ),
    (
        "Is cu124 supported on an RTX 3060?",
        TORCH,
        "Yes: cu124 builds such as torch 2.6.0 run on GeForce RTX 3060",
        "torch==2.6.0+cu124",
    ),
    (
        "Does cu124 work on an RTX 5090?",
        TORCH,
        "No: cu124 builds have no code for GeForce RTX 5090",
        "torch==2.15.0+cu132",
    ),
    (
        "Can I install cu130 for a GTX 1080?",
        TORCH,
        "No: cu130 builds no longer have code for GeForce GTX 1080",
        "torch==2.14.1+cu126",
    ),
]
OTHERS = [
    "Why does torch not work on my RTX 5090?",
    "Training Llama-3-8B hangs on two RTX 3090.",
    "Which rank of torch.distributed hangs?",
    "flash-attn fails to build on my V100.",
]


def installed(report: Report) -> str | None:
    """What the first command of the first finding installs."""
    steps = [s for f in report.fixes if f.finding == "1" for s in f.steps if s.command]
    return (
        steps[0].command.split(" --index-url")[0].removeprefix("pip install ") if steps and steps[0].command else None
    )


@pytest.mark.parametrize(("question", "cause", "title", "command"), QUESTIONS, ids=[q for q, *_ in QUESTIONS])
def test_question(question: str, cause: str, title: str, command: str | None) -> None:
    report = pipeline.diagnose(Inputs(question=question))
    assert (report.verdict, report.plan) == ("ok", None)
    assert (report.findings[0].cause, report.findings[0].title) == (cause, title)
    assert (report.findings[0].severity, report.findings[0].answers) == ("info", True)
    assert installed(report) == command
    assert report.not_checked == ()


@pytest.mark.parametrize("question", OTHERS)
def test_trouble_is_not_answered_so(question: str) -> None:
    report = pipeline.diagnose(Inputs(question=question))
    assert not any(finding.cause.startswith("fit_") for finding in report.findings)


def test_two_questions_in_one() -> None:
    report = pipeline.diagnose(
        Inputs(question="Which torch and which driver do I need for an RTX 5090 on Ubuntu 24.04?")
    )
    assert [f.title for f in report.findings] == [
        "GeForce RTX 5090 needs driver branch 570 or newer",
        "torch 2.15.0+cu132 is the newest that runs on GeForce RTX 5090",
    ]


def test_in_chinese() -> None:
    report = pipeline.diagnose(Inputs(question="RTX 5090 支持 torch 2.5 吗", lang="zh"))
    assert report.summary == "不行：torch 2.5 的任何版本都没有 GeForce RTX 5090 的代码。"
    assert report.fixes[0].title == "可改用 torch 2.15.0+cu132"


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Which torch should I install?", ["which_gpu"]),
        ("Which driver do I need?", ["which_gpu"]),
        ("Does it support bf16?", ["which_gpu"]),
    ],
)
def test_without_a_card_the_card_is_asked_for(question: str, asked: list[str]) -> None:
    report = pipeline.diagnose(Inputs(question=question))
    assert report.verdict == "unknown"
    assert [q.id for q in report.questions] == asked
    assert report.summary.startswith("What fits depends on the machine")


def test_a_question_that_says_what_is_there_is_diagnosed() -> None:
    said = "torch.cuda.is_available() is False on my RTX 3060 with torch 2.3.0+cpu on Windows 11"
    report = pipeline.diagnose(Inputs(question=said))
    assert [f.cause for f in report.findings] == ["cpu_only_wheel"]
    assert report.fixes[0].packages == {"torch": "==2.14.1+cu132"}


def test_what_is_there_counts_more_than_what_is_named() -> None:
    machine = b"gpus: GTX 1080 Ti\ndriver: 580.95.05\nos: Linux x86_64\n"
    question = "Which torch do I need for an RTX 5090?"
    report = pipeline.diagnose(Inputs(question=question, facts=[("machine.yaml", machine)]))
    assert report.findings[0].title == "torch 2.14.1+cu126 is the newest that runs on GeForce GTX 1080 Ti"
