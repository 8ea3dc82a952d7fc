"""Reports built by hand, as the pipeline would make them; shared by the tests of the renderers."""

from __future__ import annotations

from typing import Any

import pytest
from gpurules.report.model import (
    Advice,
    Checked,
    Derivation,
    Effect,
    FactView,
    Finding,
    Fix,
    NotChecked,
    Passed,
    Plan,
    ProvenanceView,
    Question,
    Reason,
    Recognised,
    Report,
    Source,
    Step,
)

INDEX = "https://download.pytorch.org/whl/cu129"
PIP = f"pip install torch==2.13.0+cu129 torchvision==0.28.0+cu129 --index-url {INDEX}"
UV = f"uv {PIP}"
GUIDE = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/"


def report(**fields: Any) -> Report:
    return Report(**{"version": "0.1.0", "knowledge_version": "2026-11-30", **fields})


def wheel_fix(**fields: Any) -> Fix:
    usual = {
        "id": "install-torch-build",
        "finding": "f1",
        "kind": "cure",
        "action": "install_torch_build",
        "title": "Install a CUDA 12.8+ build",
        "steps": [Step(tool="pip", command=PIP), Step(tool="uv", command=UV)],
        "index_url": INDEX,
        "packages": {"torch": "==2.13.0+cu129", "torchvision": "==0.28.0+cu129"},
        "effects": [Effect(op="set", type="torch", fields={"version": "2.13.0+cu129"})],
        "verified": "simulated",
        "verify": "python -c \"import torch; print(torch.ones(1, device='cuda'))\"",
        "notes": ["Newest torch for this driver (570.124). With driver 580 or newer: 2.15.0+cu132."],
        "undo": "pip install torch==2.6.0+cu124 --index-url https://download.pytorch.org/whl/cu124",
    }
    return Fix(**{**usual, **fields})


def wheel_finding(**fields: Any) -> Finding:
    usual = {
        "id": "f1",
        "cause": "wheel_missing_new_arch",
        "severity": "error",
        "title": "torch 2.6.0+cu124 cannot run on RTX 5090",
        "message": "The build was compiled for sm_50 to sm_90; the RTX 5090 is sm_120.",
        "subject": "gpu:0",
        "rule": "torch-build-lacks-kernels",
        "fixes": ["install-torch-build"],
        "evidence": ["o1", "o2"],
        "because": [
            Reason(text="the build holds code for sm_50 … sm_90", where="issue.txt:41"),
            Reason(text="the RTX 5090 is sm_120", where="issue.txt:40"),
            Reason(text="code runs only on its own major architecture", where="NVIDIA CUDA guide", url=GUIDE),
        ],
        "ruled_out": [Reason(text="the driver is new enough; the CUDA toolkit plays no part")],
        "false_alarms": ["A build that someone compiled for this card."],
        "sources": [GUIDE],
    }
    return Finding(**{**usual, **fields})


@pytest.fixture
def one_problem() -> Report:
    return report(
        verdict="problems",
        platform="linux",
        summary="This torch has no code for the RTX 5090.",
        findings=[wheel_finding()],
        fixes=[wheel_fix()],
        not_checked=[
            NotChecked(id="psu", title="power supply", reason="not in the paste", obtain="--goal psu_w=850"),
            NotChecked(id="pcie", title="PCIe link", reason="not in the paste"),
        ],
        facts=[
            FactView(
                id="o1",
                type="arch_list",
                fields={"text": "sm_50 sm_90"},
                provenance=[ProvenanceView(kind="report", source="issue.txt", line=41, reader="collect_env")],
            ),
            FactView(
                id="o2", type="gpu", fields={"name": "NVIDIA GeForce RTX 5090", "index": 0, "display_active": True}
            ),
        ],
        derivations=[Derivation(fact="f1", rule="torch-build-lacks-kernels", premises=["o1", "o2"])],
        sources=[Source(url=GUIDE, title="Binary compatibility", retrieved="2026-11-30", kind="vendor")],
        recognised=[Recognised(source="issue.txt", layouts=["collect_env", "traceback"], facts=41)],
        passed=[Passed(rule="driver-too-old", text="driver 570.124 serves CUDA 12.4")],
    )


@pytest.fixture
def one_problem_zh() -> Report:
    return report(
        lang="zh",
        verdict="problems",
        platform="linux",
        summary="此 torch 不含 RTX 5090 的代码。",
        findings=[
            wheel_finding(
                title="torch 2.6.0+cu124 无法在 RTX 5090 上运行",
                message="该版本只为 sm_50 至 sm_90 编译。",
                because=[
                    Reason(text="该版本只为 sm_50 … sm_90 编译", where="issue.txt:41"),
                    Reason(
                        text="RTX 5090 的计算能力为 sm_120，而 CUDA 二进制代码只能在同一主架构、"
                        "且次版本不低于编译目标的显卡上运行",
                        where="issue.txt:40",
                    ),
                ],
                ruled_out=[Reason(text="驱动版本足够新；与系统中的 CUDA 工具包无关")],
            )
        ],
        fixes=[wheel_fix(title="请安装 CUDA 12.8 及以上的版本", notes=None)],
        not_checked=[
            NotChecked(id="psu", title="电源", reason="文本中没有", obtain="--goal psu_w=850"),
            NotChecked(id="pcie", title="PCIe 链路", reason="文本中没有"),
        ],
        recognised=[Recognised(source="issue.txt", layouts=["collect_env"], facts=41)],
    )


@pytest.fixture
def several() -> Report:
    driver = Fix(
        id="upgrade-driver",
        finding="f2",
        kind="cure",
        action="upgrade_driver",
        title="Install driver branch 580",
        steps=[
            Step(platform="linux", command="apt-get install nvidia-driver-580-open", needs_root=True),
            Step(platform="windows", text="Run the installer of driver 580."),
            Step(text="Restart the machine.", reversible=False),
        ],
        driver_at_least="580",
        verified="not_simulable",
        verified_note="the driver is outside the model",
        risks=["The screen goes dark while the module reloads."],
    )
    companion = Fix(
        id="align",
        finding="f3",
        kind="mitigation",
        action="align_torchvision_with_torch",
        title="Match torchvision to torch",
    )
    return report(
        verdict="problems",
        platform="linux",
        summary="This torch has no code for the RTX 5090.",
        findings=[
            wheel_finding(ruled_out=None),
            Finding(
                id="f2",
                cause="driver_too_old_for_wheel",
                severity="error",
                title="Driver 535.54 is too old for CUDA 12.9",
                message="CUDA 12.9 needs 525.60.13 at least; its PTX needs 575.",
                rule="driver-too-old",
                fixes=["upgrade-driver"],
            ),
            Finding(
                id="f3",
                cause="torch_companion_mismatch",
                severity="warning",
                title="torchvision 0.20 belongs to another torch",
                message="torchvision 0.20 belongs to another torch",
                rule="companions",
                fixes=["align"],
                confidence=0.9,
            ),
        ],
        fixes=[wheel_fix(notes=None, verified_note="driver 535 would still be too old"), driver, companion],
        recognised=[
            Recognised(source="a.txt", layouts=["nvidia_smi"], facts=1),
            Recognised(source="b.yaml", facts=3, not_understood=["colour of the case: red"]),
            Recognised(source="c.txt", facts=0, truncated=True),
        ],
        recommendations=[Advice(id="backup", text="Note the present versions before changing them.")],
        assumptions=["Linux, because the paths are Linux paths"],
        notes=["The knowledge is 400 days old."],
    )


@pytest.fixture
def healthy() -> Report:
    return report(
        verdict="ok",
        platform="linux",
        summary="NVIDIA RTX 4090 · driver 570.133 · torch 2.13.0+cu129: they fit together.",
        checked=Checked(rules=87, domains=[f"d{i}" for i in range(12)]),
    )


@pytest.fixture
def no_gpu() -> Report:
    return report(
        verdict="ok",
        platform="linux",
        summary="No GPU here: 0 display devices of NVIDIA, AMD or Intel on the PCI bus. torch 2.13.0+cpu fits that.",
        findings=[
            Finding(
                id="f1",
                cause="none_healthy",
                severity="info",
                title="A CPU build on a machine without a GPU",
                message="Nothing is wrong.",
                rule="cpu-machine",
            )
        ],
        not_checked=[
            NotChecked(id="driver", title="GPU driver", reason="nothing to check"),
            NotChecked(id="nccl", title="NCCL", reason="nothing to check"),
            NotChecked(id="psu", title="power supply", reason="needs root or your answer"),
        ],
        recognised=[Recognised(source="probe", facts=63)],
    )


@pytest.fixture
def unknown() -> Report:
    def cause(number: int, name: str, title: str, confidence: float) -> Finding:
        return Finding(
            id=f"f{number}",
            cause=name,
            severity="warning",
            confidence=confidence,
            title=title,
            message=title,
            rule="cuda-unknown-error",
            because=[Reason(text="a laptop, and the error came after hours of uptime")],
        )

    return report(
        verdict="unknown",
        platform="linux",
        summary='"CUDA unknown error" has 3 possible causes; the paste does not tell them apart.',
        findings=[
            cause(1, "uvm_broken_after_suspend", "nvidia_uvm broken after suspend", 0.44),
            cause(2, "visible_devices_wrong", "CUDA_VISIBLE_DEVICES changed", 0.14),
            cause(3, "driver_library_mismatch", "half-upgraded driver", 0.12),
        ],
        questions=[
            Question(
                id="slept",
                text="Did the machine sleep since it last worked?",
                answers=["yes", "no"],
                command="cat /proc/driver/nvidia/version; nvidia-smi",
                look_for="two different versions",
            ),
            Question(id="devices", text="What is CUDA_VISIBLE_DEVICES?", command="echo $CUDA_VISIBLE_DEVICES"),
        ],
        recognised=[Recognised(source="stdin", layouts=["traceback"], facts=2)],
    )


@pytest.fixture
def planning() -> Report:
    return report(
        verdict="ok",
        platform="linux",
        summary="Full fine-tuning of a 7B model does not fit on two RTX 3090; LoRA does.",
        findings=[
            Finding(
                id="f1",
                cause="planning_capacity",
                severity="info",
                title="LoRA fits, full fine-tuning does not",
                message="Weights, gradients and AdamW state take 16 bytes a parameter.",
                fixes=["use-lora"],
            )
        ],
        fixes=[
            Fix(id="use-lora", finding="f1", kind="advice", action="use_lora_or_qlora", title="Train LoRA adapters")
        ],
        plan=Plan(
            verdict="conditional",
            numbers={"full_ft_vram_gib": 112.04, "lora_vram_gib": 18},
            ranges={"full_ft_vram_gib": (104, 121.5), "psu_w_min": (1000, 1200)},
            reasons=[Reason(text="7.0 billion parameters", where="question"), Reason(text="16 bytes a parameter")],
        ),
    )
