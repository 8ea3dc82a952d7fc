"""The command line starts fast and light.

Processor time instead of wall time, and twice the bars of `bench/cli.py`: a busy machine is no defect.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the resource usage of one child needs wait4")


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    path = Path(__file__).resolve().parents[1] / "bench" / "cli.py"
    spec = importlib.util.spec_from_file_location("bench_cli", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


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
