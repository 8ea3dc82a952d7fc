"""Healthy machines: their reports raise no finding of weight.

May live here: the runner of tests/machines, texts in the layouts of collect_env, nvidia-smi and pip list. `ok` where
the text tells torch, GPU and driver, `unknown` where something of these is missing or the build is no published one;
never an error, a warning or a fix.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from gpurules.cli import cli

MACHINES = Path(__file__).parent / "machines"
VERDICTS = {
    "a100-8-rocky-550": "ok",
    "a10g-amazon-linux-560": "ok",
    "arc-b580-xpu": "ok",
    "cpu-server-container": "unknown",
    "gb200-aarch64-580": "ok",
    "gtx1080ti-arch-580": "ok",
    "gtx1660-windows10-531": "ok",
    "h100-8-vllm-570": "ok",
    "h20-8-centos-535": "ok",
    "jetson-orin-jetpack6-vendor-wheel": "unknown",
    "jetson-thor-jetpack7": "ok",
    "l40s-ubuntu-580": "ok",
    "macbook-m3": "unknown",
    "mi300x-8-rocm64": "ok",
    "quadro-m6000-ubuntu-535": "ok",
    "rtx2080ti-debian-470": "ok",
    "rtx3060-ubuntu-535": "ok",
    "rtx4070-wsl-566": "ok",
    "rtx4090-windows-561": "ok",
    "rtx5090-2-ubuntu-580": "ok",
    "rtx6000ada-smi": "unknown",
    "rtxpro6000-fedora-595": "ok",
    "t4-notebook-550": "ok",
    "v100-4-ubuntu-570": "ok",
    "windows-pip-list": "unknown",
}


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("name", VERDICTS)
def test_a_healthy_machine_raises_no_alarm(name: str, lang: str) -> None:
    args = ["diagnose", "--json", "--no-save", "--lang", lang, "--today", "2026-11-30", "--fail-on", "warning"]
    done = CliRunner().invoke(cli, [*args, "--report", str(MACHINES / f"{name}.txt")])
    report = json.loads(done.stdout)
    assert (report["verdict"], done.exit_code) == (VERDICTS[name], 0)
    assert [f["cause"] for f in report["findings"]] == (["none_healthy"] if VERDICTS[name] == "ok" else [])
    assert report["fixes"] == []


def test_every_machine_is_judged() -> None:
    assert {path.stem for path in MACHINES.glob("*.txt")} == set(VERDICTS)
