from __future__ import annotations

from gpurules.report.layout import Look
from gpurules.report.model import Alternative, Change, NoBuild, Reason, RecommendResult
from gpurules.report.recommend_text import render_recommend

INDEX = "https://download.pytorch.org/whl/cu129"
PIP = f"pip install torch==2.13.0+cu129 torchvision==0.28.0+cu129 --index-url {INDEX}"
RESULT = RecommendResult(
    version="0.1.0",
    knowledge_version="2026-11-30",
    summary="torch 2.13.0 for CUDA 12.9 runs on the RTX 5090 with driver 570.124.",
    platform="linux",
    index_url=INDEX,
    index="cu129",
    torch="2.13.0",
    packages={"torch": "==2.13.0+cu129", "torchvision": "==0.28.0+cu129"},
    commands={"pip": PIP, "uv": f"uv {PIP}"},
    confirmed=True,
    reasons=(
        Reason(text="the newest torch whose CUDA the driver serves", where="nvidia-smi:3"),
        Reason(text="holds code for sm_120"),
    ),
    alternatives=tuple(
        Alternative(
            torch=f"2.{minor}.0",
            index="cu128",
            index_url="https://download.pytorch.org/whl/cu128",
            commands={"pip": f"pip install torch==2.{minor}.0+cu128"},
            reason="an older torch",
        )
        for minor in (12, 11, 10, 9)
    ),
    struck=(Reason(text="2.15.0+cu132 needs driver 580 or newer", where="nvidia-smi:3"),),
    assumptions=("Python 3.12",),
    verify="gpurules diagnose",
)


def test_a_build() -> None:
    assert (
        render_recommend(RESULT)
        == """\
INSTALL  torch 2.13.0 for CUDA 12.9 runs on the RTX 5090 with driver 570.124.
         pip install torch==2.13.0+cu129 torchvision==0.28.0+cu129 \\
             --index-url https://download.pytorch.org/whl/cu129

  because   the newest torch whose CUDA the driver serves           nvidia-smi:3
            holds code for sm_120
  with uv   uv pip install torch==2.13.0+cu129 torchvision==0.28.0+cu129 \\
                --index-url https://download.pytorch.org/whl/cu129
  verify    gpurules diagnose

Other builds that work:
  - torch 2.12.0 cu128: an older torch
  - torch 2.11.0 cu128: an older torch
  - torch 2.10.0 cu128: an older torch
  1 more with -v

Not offered:
  - 2.15.0+cu132 needs driver 580 or newer (nvidia-smi:3)

Assumed: Python 3.12.
"""
    )


def test_only_the_command() -> None:
    assert render_recommend(RESULT, detail="verdict", look=Look(width=100)).splitlines()[1:] == [
        "         pip install torch==2.13.0+cu129 torchvision==0.28.0+cu129 \\",
        "             --index-url https://download.pytorch.org/whl/cu129",
    ]


def test_a_build_that_is_inferred_says_so() -> None:
    inferred = RESULT.model_copy(update={"confirmed": False})
    assert "This build is inferred from others, not confirmed." in " ".join(render_recommend(inferred).split())


def test_no_build_in_chinese() -> None:
    none = RecommendResult(
        version="0.1.0",
        knowledge_version="2026-11-30",
        lang="zh",
        platform="linux",
        summary="没有适用于此显卡和驱动的 torch 版本。",
        none=NoBuild(
            reason="驱动 470 不支持 RTX 5090。",
            changes=(
                Change(
                    what="driver",
                    to="570",
                    text="安装 570 或更新的驱动",
                    command="sudo apt-get install nvidia-driver-570-open",
                ),
                Change(what="card", text="换用计算能力不高于 8.6 的显卡"),
            ),
        ),
    )
    assert none.exit_status() == 1
    assert (
        render_recommend(none, lang="zh")
        == """\
无可用版本  没有适用于此显卡和驱动的 torch 版本。
  原因      驱动 470 不支持 RTX 5090。

需要的改变：
  - 安装 570 或更新的驱动
    sudo apt-get install nvidia-driver-570-open
  - 换用计算能力不高于 8.6 的显卡
"""
    )
