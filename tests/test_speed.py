"""The command line starts fast and light.

Processor time instead of wall time, and twice the bars of `bench/cli.py`: a busy machine is no defect.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from .benches import bench as load

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the resource usage of one child needs wait4")


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return load("cli")


@pytest.fixture
def folder(bench: ModuleType, tmp_path: Path) -> Path:
    (tmp_path / "report.txt").write_text(bench.REPORT, encoding="utf-8")
    (tmp_path / "facts.yaml").write_text(bench.FACTS, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("command", ["version", "help", "diagnose", "recommend"])
def test_a_command_is_fast_light_and_imports_no_torch(command: str, bench: ModuleType, folder: Path) -> None:
    measured = bench.measure(command, 3, folder)
    assert measured.unwanted == ()
    assert measured.peak_mib < bench.MEMORY_MIB
    assert measured.cpu_s < 2 * measured.bar_s
