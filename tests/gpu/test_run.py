"""tests/gpu/run.sh writes a whole and honest record on a machine that only seems to have GPUs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ..benches import bench

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a compiled library for Linux")

CHECKOUT = Path(__file__).resolve().parents[2]
SCRIPT = CHECKOUT / "tests" / "gpu" / "run.sh"


@pytest.fixture
def machine(tmp_path: Path) -> dict[str, str]:
    """The environment of a machine with two fake GPUs and this Python."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or shutil.which("bash") is None:
        pytest.skip("needs a C compiler and bash")
    bench("probing").prepare(tmp_path, compiler)
    program = tmp_path / "gpurules"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m gpurules "$@"\n')
    program.chmod(0o755)
    profile = CHECKOUT / "tests" / "fakes" / "profiles" / "two4090.env"
    return {
        **os.environ,
        "FAKE_NVML": os.fspath(profile),
        "LD_LIBRARY_PATH": os.fspath(tmp_path),
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "GPURULES": os.fspath(program),
        "PYTHON": sys.executable,
    }


def run(environ: dict[str, str], folder: Path, limit_s: int) -> tuple[int, dict[str, Any]]:
    command = ["bash", os.fspath(SCRIPT), "record.json"]
    done = subprocess.run(
        command, env={**environ, "LIMIT_S": str(limit_s)}, cwd=folder, capture_output=True, text=True, timeout=300
    )
    record: dict[str, Any] = json.loads((folder / "record.json").read_text(encoding="utf-8"))
    return done.returncode, record


@pytest.mark.slow
def test_a_whole_record(machine: dict[str, str], tmp_path: Path) -> None:
    status, record = run(machine, tmp_path, 200)
    assert (record["schema"], list(record["steps"])) == (
        "gpurules.gpu-run/1",
        ["snapshot", "diagnose_alone", "cuda_0", "cuda_1", "diagnose", "recommend", "cpu"],
    )
    steps = record["steps"]
    names = [fact["gpu"]["name"] for fact in steps["snapshot"]["output"]["facts"] if "gpu" in fact]
    assert names == ["NVIDIA GeForce RTX 4090"] * 2
    assert steps["diagnose"]["output"]["schema"].startswith("gpurules.report/")
    assert steps["recommend"]["output"]["torch"]
    # There is no GPU, and the record says so.
    assert status == steps["cuda_0"]["status"] != 0


def test_a_record_without_time(machine: dict[str, str], tmp_path: Path) -> None:
    status, record = run(machine, tmp_path, 0)
    assert status == 1
    assert {step["status"] for step in record["steps"].values()} == {"no_time_left"}
    assert list(record["steps"])[:3] == ["snapshot", "diagnose_alone", "cuda_0"]
