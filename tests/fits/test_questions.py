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
    (
        "Is rtx 5080 compatible w/ cuda 12.4 pytorch?",
        TORCH,
        "No: CUDA 12.4 has no code for GeForce RTX 5080, which needs 12.8",
        "torch==2.15.0+cu132",
    ),
    (
        "Does a GTX 1080 work with CUDA 13.0 and PyTorch?",
        TORCH,
        "No: CUDA 12.9 was the last with code for GeForce GTX 1080",
        "torch==2.14.1+cu126",
    ),
    ("is cuda 11.8 enough for 4090?", TORCH, "Yes: CUDA 11.8 has code for GeForce RTX 4090", "torch==2.15.0+cu132"),
    ("Can I use pytorch cu121 with a CUDA 12.6 driver?", DRIVER, "Yes: driver 560.28.03 runs cu121 builds", None),
    (
        "My nvidia-smi says CUDA Version: 13.0, can I install pytorch cu126?",
        DRIVER,
        "Yes: driver 580.65.06 runs cu126 builds",
        None,
    ),
    (
        "nvidia-smi shows cuda 12.8 but nvcc shows 11.5, which one does pytorch use?",
        TOOLKIT,
        "nvidia-smi shows the newest CUDA that the driver serves, not one that is installed",
        None,
    ),
    (
        "What does the CUDA version in nvidia-smi mean?",
        TOOLKIT,
        "nvidia-smi shows the newest CUDA that the driver serves, not one that is installed",
        None,
    ),
    (
        "nvidia-smi 显示的 CUDA 版本和 nvcc -V 不一样，以哪个为准",
        TOOLKIT,
        "nvidia-smi shows the newest CUDA that the driver serves, not one that is installed",
        None,
    ),
    (
        "does pytorch come with its own CUDA?",
        TOOLKIT,
        "Yes: torch from pip brings its own CUDA and cuDNN libraries",
        None,
    ),
    ("Do I need cuDNN installed for pytorch?", TOOLKIT, "No cuDNN needs to be installed for torch from pip", None),
    (
        "Do I need to install nvcc to use flash-attn?",
        TOOLKIT,
        "nvcc is needed only where no wheel of the extension fits",
        None,
    ),
    (
        "does pytorch 2.6 need cuda 12.4 installed on my system?",
        TOOLKIT,
        "No CUDA toolkit is needed for torch from pip",
        None,
    ),
    (
        "装了 cuda 12.6，pytorch 只有 cu124，能用吗",
        TOOLKIT,
        "Yes: cu124 builds bring CUDA 12.4 along, whatever CUDA is installed",
        None,
    ),
    (
        "cuda 12.1 的服务器，没有 root 权限，能装 cu128 的 torch 吗",
        TOOLKIT,
        "Yes: cu128 builds bring CUDA 12.8 along, whatever CUDA is installed",
        None,
    ),
    ("Does pytorch support python 3.14?", TORCH, "Yes: Python 3.14 is served from torch 2.9.0 on", None),
    ("which python version for pytorch 2.1?", TORCH, "torch 2.1 is published for Python 3.8 to 3.11", None),
    ("Can I use torch 1.13 with python 3.11?", TORCH, "torch 1.13 is published for Python 3.7 to 3.10", None),
    (
        "What is the latest driver supporting GTX 1080 Ti?",
        DRIVER,
        "GeForce GTX 1080 Ti takes driver branches 367 to 580",
        None,
    ),
    ("latest nvidia driver for tesla k80?", DRIVER, "Tesla K80 takes driver branches 340 to 470", None),
    (
        "what is the min nvidia driver for pytorch 2.9 cu130",
        DRIVER,
        "cu130 builds need driver 580 or newer (Windows: 580)",
        None,
    ),
    ("does tesla p40 support fp16?", FEATURE, "It runs, but slowly: Tesla P40 has hardly any float16 units", None),
    ("Does the V100 support fp16?", FEATURE, "Yes: Tesla V100 computes float16 in its tensor cores", None),
    ("does a P100 have tensor cores?", FEATURE, "No: Tesla P100 has no tensor cores", None),
    ("Does a Tesla T4 have tensor cores?", FEATURE, "Yes: Tesla T4 has tensor cores", None),
    ("does the GTX 1660 Ti have tensor cores?", FEATURE, "No: GeForce GTX 1660 Ti has no tensor cores", None),
    ("Does RTX 4090 support NVLink?", FEATURE, "No: GeForce RTX 4090 has no NVLink", None),
    (
        "Can two RTX 3090 use nvlink?",
        FEATURE,
        "Yes: GeForce RTX 3090 has NVLink (112.5 GB/s in both directions together)",
        None,
    ),
    ("does the 4090 support P2P?", FEATURE, "No: the driver offers no P2P between GeForce RTX 4090 cards", None),
    ("Does the A100 support P2P?", FEATURE, "Yes: A100 cards can read each other's memory (P2P)", None),
    ("Does RTX 4090 support MIG?", FEATURE, "No: GeForce RTX 4090 has no MIG", None),
    ("Does A30 support MIG", FEATURE, "Yes: A30 can be divided into up to 4 MIG instances", None),
    ("fp4 support on rtx 5090?", FEATURE, "Yes: GeForce RTX 5090 computes FP4 in its tensor cores", None),
    ("4090 支持 fp4 吗", FEATURE, "No: GeForce RTX 4090 has no FP4 units", None),
    ("does rtx 3090 support int8", FEATURE, "Yes: GeForce RTX 3090 computes INT8 in its tensor cores", None),
    (
        "P40 支持 int8 吗",
        FEATURE,
        "Yes, without tensor cores: Tesla P40 adds INT8 products four at a time (DP4A)",
        None,
    ),
    (
        "Does xformers work on V100?",
        FEATURE,
        "Only older releases: xformers 0.0.31 and newer no longer serve Tesla V100",
        None,
    ),
    ("Can vLLM run on a V100?", FEATURE, "Only older releases: vllm 0.23 and newer no longer serve Tesla V100", None),
    ("does vllm support Tesla P40?", FEATURE, "No: vllm does not serve Tesla P40", None),
    ("Is bitsandbytes supported on GTX 1080 Ti?", FEATURE, "Yes: bitsandbytes serves GeForce GTX 1080 Ti", None),
    ("2080Ti 能用 vllm 吗", FEATURE, "Yes: vllm serves GeForce RTX 2080 Ti", None),
    ("does triton work on gtx 1080ti?", FEATURE, "No: torch.compile and Triton do not serve GeForce GTX 1080 Ti", None),
    ("does torch.compile work on a P100?", FEATURE, "No: torch.compile and Triton do not serve Tesla P100", None),
    ("torch.compile 在 V100 上能用吗", FEATURE, "Yes: torch.compile and Triton serve Tesla V100", None),
    ("triton on Windows?", FEATURE, "Yes: for Windows the package is triton-windows", None),
    ("can pytorch use intel arc a770?", TORCH, "Yes: torch 2.14.1+xpu runs on Arc A770", "torch==2.14.1+xpu"),
    (
        "does pytorch support amd rx 6600?",
        TORCH,
        "Radeon RX 6600 runs torch 2.13.0+rocm7.2 with HSA_OVERRIDE_GFX_VERSION=10.3.0",
        "torch==2.13.0+rocm7.2",
    ),
    (
        "does 7900xtx work with flash attention",
        FEATURE,
        "Yes, through its Triton backend: Radeon RX 7900 XTX takes no CUDA wheel of flash-attn",
        None,
    ),
    ("Can I use cuda on macbook m3?", TORCH, "No: there is no CUDA on a Mac", None),
    ("Does a Radeon support CUDA?", TORCH, "No: CUDA needs a GPU of NVIDIA, torch for AMD is built with ROCm", None),
    ("Mac M4 Pro 能跑 pytorch 吗", TORCH, "Yes on Apple silicon: torch runs there through MPS", None),
    (
        "昇腾 910B 能用 pytorch 吗",
        TORCH,
        "Yes, with torch_npu: Ascend NPUs run torch through an adapter of their maker",
        None,
    ),
    (
        "RTX 3050 装什么版本的 cuda 和 pytorch",
        TORCH,
        "GeForce RTX 3050 needs CUDA 11.1 or newer",
        "torch==2.15.0+cu132",
    ),
    ("5070ti 要装 cuda 几？", TORCH, "GeForce RTX 5070 Ti needs CUDA 12.8 or newer", "torch==2.15.0+cu132"),
    (
        "Which CUDA version for a GTX 1080 Ti?",
        TORCH,
        "GeForce GTX 1080 Ti takes CUDA 8.0 to 12.9",
        "torch==2.14.1+cu126",
    ),
    ("torch 2.4 on h200?", TORCH, "Yes: torch 2.4.1+cu121 runs on H200", "torch==2.4.1+cu121"),
    (
        "显卡是 MX450，驱动 512.78，能装 cuda 11.8 的 pytorch 吗",
        TORCH,
        "Yes: CUDA 11.8 has code for GeForce MX450",
        "torch==2.7.1+cu118",
    ),
    (
        "驱动 470.223 最高能装哪个版本的 pytorch？3090",
        TORCH,
        "torch 2.7.1+cu118 is the newest that runs on GeForce RTX 3090",
        "torch==2.7.1+cu118",
    ),
    (
        "win10 + gtx1650，python3.9，装哪个 torch",
        TORCH,
        "torch 2.8.0+cu128 is the newest that runs on GeForce GTX 1650",
        "torch==2.8.0+cu128",
    ),
    (
        "I got a RTX 4070 laptop, driver 546.12 on Win11, what pytorch cuda version should I install?",
        TORCH,
        "torch 2.14.1+cu126 is the newest that runs on GeForce RTX 4070 Laptop GPU",
        "torch==2.14.1+cu126",
    ),
    (
        "What pytorch works with driver 470 on a Tesla T4 on ubuntu 20.04",
        TORCH,
        "torch 2.7.1+cu118 is the newest that runs on Tesla T4",
        "torch==2.7.1+cu118",
    ),
    (
        "Will pytorch 2.8 work w/ gtx 970?",
        TORCH,
        "Yes: torch 2.8.0+cu126 runs on GeForce GTX 970",
        "torch==2.8.0+cu126",
    ),
    (
        "hi, which pytorch+cuda combo for a 3090 ti with python 3.10 on debian 12?",
        TORCH,
        "torch 2.14.1+cu130 is the newest that runs on GeForce RTX 3090 Ti",
        "torch==2.14.1+cu130",
    ),
    (
        "Is it possible to run pytorch 2.7 with NVIDIA driver 525.147?",
        DRIVER,
        "Yes: driver 525.147 runs torch 2.7.1+cu128",
        None,
    ),
    (
        "Can I use torch 2.9 with driver 390.48?",
        DRIVER,
        "No: driver 390.48 is too old for every build of torch 2.9",
        None,
    ),
    (
        "Is it possible to run pytorch 2.7 with driver 581.15 on Windows 11?",
        DRIVER,
        "Yes: driver 581.15 runs torch 2.7.1+cu128",
        None,
    ),
    (
        "does the gtx 1650 support fp16 training",
        FEATURE,
        "Yes, without tensor cores: GeForce GTX 1650 computes float16",
        None,
    ),
    ("what cuda version is supported by pytorch 2.5?", TORCH, "torch 2.5 is published for CUDA 11.8 to 12.4", None),
    (
        "is nvlink needed for 2x3090 training?",
        FEATURE,
        "No: several cards work together without NVLink, over PCIe",
        None,
    ),
    (
        "Do 2 gpus need to be same model for DDP?",
        FEATURE,
        "No: DDP runs on different cards too, at the pace of the slowest",
        None,
    ),
    ("jetson nano pytorch version?", TORCH, "No: no torch build of PyTorch has code for Jetson Nano", None),
    (
        "P100 支持 fp16 吗",
        FEATURE,
        "Yes, without tensor cores: Tesla P100 computes float16 twice as fast as float32",
        None,
    ),
    ("mi300x 能用 vllm 吗", FEATURE, "Yes: vLLM serves Instinct MI300X through ROCm", None),
    ("does H100 support fp4", FEATURE, "No: H100 has no FP4 units", None),
    ("Windows 下 vllm 能用吗", FEATURE, "No: vllm runs on Linux only", None),
    ("RX 6700XT Windows 能装 pytorch 吗", TORCH, "No: PyTorch publishes no Windows build for Radeon RX 6700 XT", None),
    (
        "torch 2.1.0 对应的 torchvision 版本是多少",
        TORCH,
        "torch 2.1 goes with torchvision 0.16 (2.1.2 with 0.16.2)",
        None,
    ),
    (
        "服务器驱动 525.105.17，CUDA Version 12.0，A100，能跑 torch 2.6 cu124 吗",
        TORCH,
        "Yes: torch 2.6.0+cu124 runs on A100",
        "torch==2.6.0+cu124",
    ),
    ("Does RTX 3060 support CUDA 12?", TORCH, "Yes: CUDA 12 has code for GeForce RTX 3060", "torch==2.15.0+cu132"),
    (
        "my gpu is gt 710, can i use pytorch cuda?",
        TORCH,
        "No: no torch build of PyTorch has code for GeForce GT 710",
        None,
    ),
    (
        "pip install torch gives me cpu version on windows, what's the right command for 4070?",
        TORCH,
        "torch 2.14.1+cu132 is the newest that runs on GeForce RTX 4070",
        "torch==2.14.1+cu132",
    ),
    (
        "does torch 2.5.1 support cuda 12.6?",
        TORCH,
        "torch 2.5.1 is published for CUDA 11.8 to 12.4; an installed CUDA 12.6 does not matter",
        None,
    ),
    (
        "RTX5090D 能装 pytorch2.6 吗",
        TORCH,
        "No: no build of torch 2.6 has code for GeForce RTX 5090 D",
        "torch==2.15.0+cu132",
    ),
    ("多张 P40 能不能做张量并行 vllm", FEATURE, "No: vllm does not serve Tesla P40", None),
    ("CUDA 13 支持 V100 吗", TORCH, "No: CUDA 12.9 was the last with code for Tesla V100", "torch==2.14.1+cu126"),
    ("驱动 560 对应 cuda 多少", DRIVER, "Driver branch 560 serves CUDA 12.6 and older", None),
    (
        "A卡 7800xt 能跑 pytorch 吗",
        TORCH,
        "torch 2.13.0+rocm7.2 is the newest that runs on Radeon RX 7800 XT",
        "torch==2.13.0+rocm7.2",
    ),
]
OTHERS = [
    "Why does torch not work on my RTX 5090?",
    "Training Llama-3-8B hangs on two RTX 3090.",
    "Which rank of torch.distributed hangs?",
    "flash-attn fails to build on my V100.",
    "NVLink is active between my two RTX 3090.",
    "torch.compile fails on my RTX 4090. What now?",
    "vLLM crashes on my V100.",
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
    ("question", "summary"),
    [
        ("4090 支持 nvlink 吗", "不支持：GeForce RTX 4090 没有 NVLink。"),
        ("vllm 支持 V100 吗", "仅旧版可以：vllm 0.23 及以上不再支持 Tesla V100。"),
        ("pytorch 自带 cuda 吗", "是的：用 pip 安装的 torch 自带 CUDA 与 cuDNN 库。"),
        ("torch 2.4 支持 python 3.13 吗", "torch 2.4 支持 Python 3.8 至 3.12。"),
        ("5070ti 要装 cuda 几", "GeForce RTX 5070 Ti 需要 CUDA 12.8 及以上。"),
    ],
)
def test_answers_in_chinese(question: str, summary: str) -> None:
    assert pipeline.diagnose(Inputs(question=question, lang="zh")).summary == summary


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("Which torch should I install?", ["which_gpu"]),
        ("Which driver do I need?", ["which_gpu"]),
        ("Does it support bf16?", ["which_gpu"]),
        ("Does it have tensor cores?", ["which_gpu"]),
        ("Which CUDA version does it need?", ["which_gpu"]),
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
