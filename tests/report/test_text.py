"""The text form, word for word: what people see is part of the contract with them."""

from __future__ import annotations

import re

import pytest
from gpurules.report.layout import Look, display_width
from gpurules.report.model import Finding, Fix, NotChecked, Report, Step
from gpurules.report.text import render_text


def test_one_problem(one_problem: Report) -> None:
    assert (
        render_text(one_problem)
        == """\
PROBLEM  This torch has no code for the RTX 5090. Install a CUDA 12.8+ build:
         pip install torch==2.13.0+cu129 torchvision==0.28.0+cu129 \\
             --index-url https://download.pytorch.org/whl/cu129

1 error · 0 warnings · read 41 facts from issue.txt (collect_env, traceback)

✗ torch 2.6.0+cu124 cannot run on RTX 5090   [torch-build-lacks-kernels]
  because   the build holds code for sm_50 … sm_90             issue.txt:41
            the RTX 5090 is sm_120                             issue.txt:40
            code runs only on its own major architecture       NVIDIA CUDA guide
  fix       the command above
  note      Newest torch for this driver (570.124). With driver 580 or newer:
            2.15.0+cu132.
  checked   simulated: clears this finding, raises no other
  verify    python -c "import torch; print(torch.ones(1, device='cuda'))"
  not it    the driver is new enough; the CUDA toolkit plays no part

Not checked: power supply, PCIe link (not in the paste).
Details: gpurules why 1
"""
    )


def test_one_problem_zh(one_problem_zh: Report) -> None:
    assert (
        render_text(one_problem_zh, lang="zh")
        == """\
有问题  此 torch 不含 RTX 5090 的代码。请安装 CUDA 12.8 及以上的版本：
        pip install torch==2.13.0+cu129 torchvision==0.28.0+cu129 \\
            --index-url https://download.pytorch.org/whl/cu129

1 个错误 · 0 个警告 · 从 issue.txt（collect_env）读到 41 条事实

✗ torch 2.6.0+cu124 无法在 RTX 5090 上运行   [torch-build-lacks-kernels]
  原因      该版本只为 sm_50 … sm_90 编译                           issue.txt:41
            RTX 5090 的计算能力为 sm_120，而 CUDA 二进制代码只能在  issue.txt:40
            同一主架构、且次版本不低于编译目标的显卡上运行
  修复      见上方命令
  模拟      已模拟：可消除此问题，且不引发新的错误
  验证      python -c "import torch; print(torch.ones(1, device='cuda'))"
  排除      驱动版本足够新；与系统中的 CUDA 工具包无关

未检查：电源、PCIe 链路（文本中没有）。
详情：gpurules why 1
"""
    )


def test_several(several: Report) -> None:
    assert (
        render_text(several)
        == """\
PROBLEM  This torch has no code for the RTX 5090. Install a CUDA 12.8+ build:
         pip install torch==2.13.0+cu129 torchvision==0.28.0+cu129 \\
             --index-url https://download.pytorch.org/whl/cu129

2 errors · 1 warning · read 4 facts from a.txt (nvidia_smi), b.yaml, c.txt
(nothing recognised, cut short)

✗ 1. torch 2.6.0+cu124 cannot run on RTX 5090   [torch-build-lacks-kernels]
  because   the build holds code for sm_50 … sm_90             issue.txt:41
            the RTX 5090 is sm_120                             issue.txt:40
            code runs only on its own major architecture       NVIDIA CUDA guide
  fix       the command above
  checked   simulated: clears this finding, raises no other: driver 535 would
            still be too old
  verify    python -c "import torch; print(torch.ones(1, device='cuda'))"

✗ 2. Driver 535.54 is too old for CUDA 12.9   [driver-too-old]
  because   CUDA 12.9 needs 525.60.13 at least; its PTX needs 575.
  fix       Install driver branch 580 (needs root)
            1. apt-get install nvidia-driver-580-open
            2. Restart the machine.
  risk      The screen goes dark while the module reloads.
  checked   not simulated: the driver is outside the model

! 3. torchvision 0.20 belongs to another torch   [companions]
  relief    Match torchvision to torch

Also:
  - Note the present versions before changing them.

Assumed: Linux, because the paths are Linux paths.
Not understood: colour of the case: red.
Note: The knowledge is 400 days old.
Details: gpurules why 1
"""
    )


def test_healthy(healthy: Report) -> None:
    assert (
        render_text(healthy)
        == """\
OK  NVIDIA RTX 4090 · driver 570.133 · torch 2.13.0+cu129: they fit together.
    Checked 87 rules in 12 domains; nothing found.
"""
    )


def test_healthy_ui_in_chinese(healthy: Report) -> None:
    assert (
        render_text(healthy, lang="zh")
        == """\
正常  NVIDIA RTX 4090 · driver 570.133 · torch 2.13.0+cu129: they fit together.
      已检查 87 条规则，覆盖 12 个方面，未发现问题。
"""
    )


def test_no_gpu(no_gpu: Report) -> None:
    assert (
        render_text(no_gpu)
        == """\
OK  No GPU here: 0 display devices of NVIDIA, AMD or Intel on the PCI bus. torch
    2.13.0+cpu fits that.

Read 63 facts from this machine

✓ A CPU build on a machine without a GPU   [cpu-machine]
  because   Nothing is wrong.

Not checked: GPU driver, NCCL (nothing to check); power supply (needs root or
your answer).
Details: gpurules why 1
"""
    )


def test_unknown(unknown: Report) -> None:
    assert (
        render_text(unknown)
        == """\
UNKNOWN  "CUDA unknown error" has 3 possible causes; the paste does not tell
         them apart.
         most likely  nvidia_uvm broken after suspend (44 %): a laptop, and the
                      error came after hours of uptime
         then         CUDA_VISIBLE_DEVICES changed (14 %) · half-upgraded driver
                      (12 %)
         ask next     Did the machine sleep since it last worked? (yes / no)
         or run       cat /proc/driver/nvidia/version; nvidia-smi
         look for     two different versions

Read 2 facts from stdin (traceback)

Would help to know:
  - What is CUDA_VISIBLE_DEVICES?
      echo $CUDA_VISIBLE_DEVICES

Details: gpurules why 1
"""
    )


def test_unknown_ui_in_chinese(unknown: Report) -> None:
    assert (
        render_text(unknown, lang="zh")
        == """\
无法确定  "CUDA unknown error" has 3 possible causes; the paste does not tell
          them apart.
          最可能  nvidia_uvm broken after suspend（44 %）：a laptop, and the
                  error came after hours of uptime
          其次    CUDA_VISIBLE_DEVICES changed（14 %） · half-upgraded driver
                  （12 %）
          下一问  Did the machine sleep since it last worked?（yes / no）
          或运行  cat /proc/driver/nvidia/version; nvidia-smi
          查看    two different versions

从 stdin（traceback）读到 2 条事实

还需了解：
  - What is CUDA_VISIBLE_DEVICES?
      echo $CUDA_VISIBLE_DEVICES

详情：gpurules why 1
"""
    )


def test_planning(planning: Report) -> None:
    assert (
        render_text(planning)
        == """\
DEPENDS  Full fine-tuning of a 7B model does not fit on two RTX 3090; LoRA does.

  numbers   GPU memory, full fine-tuning  112.0 GiB (104–121.5)
            GPU memory, LoRA              18 GiB
            power supply, at least        1000–1200 W
  because   7.0 billion parameters                                      question
            16 bytes a parameter

· LoRA fits, full fine-tuning does not
  because   Weights, gradients and AdamW state take 16 bytes a parameter.
  advice    Train LoRA adapters

Details: gpurules why 1
"""
    )


def test_one_problem_narrow(one_problem: Report) -> None:
    assert (
        render_text(one_problem, look=Look(width=44))
        == """\
PROBLEM
  This torch has no code for the RTX 5090.
  Install a CUDA 12.8+ build:
  pip install torch==2.13.0+cu129 \\
      torchvision==0.28.0+cu129 \\
      --index-url https://download.pytorch.org/whl/cu129

1 error · 0 warnings · read 41 facts from
issue.txt (collect_env, traceback)

✗ torch 2.6.0+cu124 cannot run on RTX 5090
  [torch-build-lacks-kernels]
  because   the build holds code for sm_50 …
            sm_90 (issue.txt:41)
            the RTX 5090 is sm_120
            (issue.txt:40)
            code runs only on its own major
            architecture (NVIDIA CUDA guide)
  fix       the command above
  note      Newest torch for this driver
            (570.124). With driver 580 or
            newer: 2.15.0+cu132.
  checked   simulated: clears this finding,
            raises no other
  verify    python -c \\
                "import torch; print(torch.ones(1, device='cuda'))"
  not it    the driver is new enough; the
            CUDA toolkit plays no part

Not checked: power supply, PCIe link (not in
the paste).
Details: gpurules why 1
"""
    )


def test_one_problem_ascii(one_problem: Report) -> None:
    assert (
        render_text(one_problem, look=Look(encoding="ascii"))
        == """\
PROBLEM  This torch has no code for the RTX 5090. Install a CUDA 12.8+ build:
         pip install torch==2.13.0+cu129 torchvision==0.28.0+cu129 \\
             --index-url https://download.pytorch.org/whl/cu129

1 error - 0 warnings - read 41 facts from issue.txt (collect_env, traceback)

x torch 2.6.0+cu124 cannot run on RTX 5090   [torch-build-lacks-kernels]
  because   the build holds code for sm_50 ... sm_90           issue.txt:41
            the RTX 5090 is sm_120                             issue.txt:40
            code runs only on its own major architecture       NVIDIA CUDA guide
  fix       the command above
  note      Newest torch for this driver (570.124). With driver 580 or newer:
            2.15.0+cu132.
  checked   simulated: clears this finding, raises no other
  verify    python -c "import torch; print(torch.ones(1, device='cuda'))"
  not it    the driver is new enough; the CUDA toolkit plays no part

Not checked: power supply, PCIe link (not in the paste).
Details: gpurules why 1
"""
    )


def test_one_problem_verdict_only(one_problem: Report) -> None:
    assert (
        render_text(one_problem, detail="verdict")
        == """\
PROBLEM  This torch has no code for the RTX 5090. Install a CUDA 12.8+ build:
         pip install torch==2.13.0+cu129 torchvision==0.28.0+cu129 \\
             --index-url https://download.pytorch.org/whl/cu129
"""
    )


def test_one_problem_everything(one_problem: Report) -> None:
    assert (
        render_text(one_problem, detail="all")
        == """\
PROBLEM  This torch has no code for the RTX 5090. Install a CUDA 12.8+ build:
         pip install torch==2.13.0+cu129 torchvision==0.28.0+cu129 \\
             --index-url https://download.pytorch.org/whl/cu129

1 error · 0 warnings · read 41 facts from issue.txt (collect_env, traceback)

✗ torch 2.6.0+cu124 cannot run on RTX 5090   [torch-build-lacks-kernels]
  because   the build holds code for sm_50 … sm_90             issue.txt:41
            the RTX 5090 is sm_120                             issue.txt:40
            code runs only on its own major architecture       NVIDIA CUDA guide
  means     The build was compiled for sm_50 to sm_90; the RTX 5090 is sm_120.
  evidence  arch_list(text=sm_50 sm_90)                             issue.txt:41
            gpu(name=NVIDIA GeForce RTX 5090, index=0,
            display_active=True)
  fix       the command above
  also      uv pip install torch==2.13.0+cu129 torchvision==0.28.0+cu129 \\
                --index-url https://download.pytorch.org/whl/cu129
  note      Newest torch for this driver (570.124). With driver 580 or newer:
            2.15.0+cu132.
  checked   simulated: clears this finding, raises no other
  verify    python -c "import torch; print(torch.ones(1, device='cuda'))"
  undo      pip install torch==2.6.0+cu124 \\
                --index-url https://download.pytorch.org/whl/cu124
  not it    the driver is new enough; the CUDA toolkit plays no part
  unless    A build that someone compiled for this card.
  source    Binary compatibility

Not checked: power supply, PCIe link (not in the paste).
  power supply  --goal psu_w=850
Details: gpurules why 1

Passed:
  ✓ driver 570.124 serves CUDA 12.4

Sources:
  - Binary compatibility https://docs.nvidia.com/cuda/cuda-c-programming-guide/
    (official docs, 2026-11-30)
"""
    )


@pytest.mark.parametrize("width", [40, 60, 80, 100])
@pytest.mark.parametrize("name", ["one_problem", "one_problem_zh", "several", "no_gpu", "unknown", "planning"])
def test_prose_fits_the_width(name: str, width: int, request: pytest.FixtureRequest) -> None:
    report: Report = request.getfixturevalue(name)
    text = render_text(report, lang=report.lang, look=Look(width=width), detail="all")
    # What may be longer: a piece of a command or an address that has no place to break at.
    wide = [line for line in text.splitlines() if display_width(line) > width]
    assert all(re.search(r"import torch|https://|==|/proc/|nvidia-driver-580-open", line) for line in wide), wide


def test_colour_is_the_only_difference_of_a_terminal(several: Report) -> None:
    coloured = render_text(several, look=Look(colour=True))
    assert "\x1b[31;1mPROBLEM\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == render_text(several)


def test_nothing_from_the_input_controls_the_terminal(one_problem: Report) -> None:
    evil = "a\x1b]0;title\x07b\x1b[2Jc\x9b31md\u202ee\rf\x00g\nh"
    finding = one_problem.findings[0].model_copy(update={"title": evil, "rule": evil, "message": evil, "because": None})
    fix = one_problem.fixes[0].model_copy(update={"steps": (Step(command=evil),), "title": evil, "verify": evil})
    broken = one_problem.model_copy(
        update={
            "summary": evil,
            "findings": (finding,),
            "fixes": (fix,),
            "not_checked": (NotChecked(id="x", title=evil, reason=evil, obtain=evil),),
            "assumptions": (evil,),
        }
    )
    text = render_text(broken, detail="all")
    assert [char for char in text if ord(char) < 32 or 127 <= ord(char) < 160 or char == "\u202e"] == [
        "\n"
    ] * text.count("\n")
    assert "\n✗ abc31mde fg h   [abc31mde fg h]\n" in text


@pytest.mark.parametrize("platform", ["windows", None])
def test_a_command_stays_whole_where_a_backslash_would_not_continue_it(
    one_problem: Report, platform: str | None
) -> None:
    text = render_text(one_problem.model_copy(update={"platform": platform}))
    command = one_problem.fixes[0].steps[0].command
    assert f"         {command}\n" in text
    assert "\\\n" not in text


def test_more_than_three_fixes_of_a_finding_wait_for_v(healthy: Report) -> None:
    fixes = tuple(Fix(id=f"x{i}", finding="f1", kind="advice", action="a", title=f"Do {i}") for i in range(5))
    finding = Finding(id="f1", cause="c", severity="warning", title="t", message="m", fixes=tuple(f.id for f in fixes))
    report = healthy.model_copy(update={"verdict": "problems", "summary": "S.", "findings": (finding,), "fixes": fixes})
    assert "  advice    Do 2\n            2 more with -v\n" in render_text(report)
    assert "  advice    Do 4\n" in render_text(report, detail="all")


def test_without_a_command_the_verdict_says_the_fix_in_words(several: Report) -> None:
    report = several.model_copy(update={"findings": several.findings[2:], "fixes": several.fixes[2:], "summary": "S."})
    assert render_text(report, detail="verdict") == "PROBLEM  S. Match torchvision to torch.\n"


STEPS = (
    Step(platform="windows", command="wsl --update"),
    Step(platform="linux", command="apt-get install x"),
    Step(platform="wsl", command="apt-get install y"),
    Step(text="Restart."),
)


@pytest.mark.parametrize(
    ("platform", "steps", "first"),
    [
        ("linux", STEPS, "apt-get install x"),
        ("windows", STEPS, "wsl --update"),
        ("wsl", STEPS, "apt-get install y"),
        ("wsl", STEPS[:2], "apt-get install x"),
        (None, STEPS, "wsl --update"),
        ("macos", STEPS[3:], ""),
    ],
)
def test_only_the_steps_of_the_platform(
    one_problem: Report, platform: str | None, steps: tuple[Step, ...], first: str
) -> None:
    fix = one_problem.fixes[0].model_copy(update={"steps": steps, "title": "Update"})
    report = one_problem.model_copy(update={"platform": platform, "fixes": (fix,)})
    verdict = render_text(report, detail="verdict")
    assert verdict.splitlines()[1:] == ([f"         {first}"] if first else [])


def test_what_is_unknown_offers_checks_not_cures(unknown: Report) -> None:
    check = Fix(
        id="c",
        finding="f1",
        kind="check",
        action="reload_nvidia_uvm",
        title="See whether the module is loaded",
        steps=(Step(command="lsmod | grep nvidia_uvm"),),
    )
    text = render_text(unknown.model_copy(update={"fixes": (check,)}), detail="verdict")
    assert text.count("lsmod") == 1
    assert text.endswith("         check        lsmod | grep nvidia_uvm\n")


def test_beside_a_settled_problem_other_causes_are_merely_possible(several: Report, unknown: Report) -> None:
    report = several.model_copy(update={"findings": (several.findings[0], unknown.findings[1], several.findings[2])})
    text = render_text(report)
    assert "1 error · 1 warning ·" in text
    assert "\nPossible too:\n  - CUDA_VISIBLE_DEVICES changed (14 %)\n" in text
    assert "\n! 3. torchvision 0.20" in text  # the numbers are those that `gpurules why` takes
