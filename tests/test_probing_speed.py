"""A diagnosis of this machine is fast with many GPUs, and ends where the driver never answers.

Processor time for the work, and wall time only for the waiting, with room for a busy machine; the bars themselves are
those of `bench/probing.py`.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from .benches import bench as load

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a compiled library for Linux")


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    return load("probing")


@pytest.fixture(scope="module")
def folder(bench: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("probing")
    bench.prepare(folder, compiler)
    return folder


def test_eight_gpus(bench: ModuleType, folder: Path) -> None:
    bench.start("eight_gpus", folder)
    # The bar, with room for slower machines; what the children use counts as well.
    assert min(bench.start("eight_gpus", folder)[1] for _ in range(3)) < 2 * bench.MACHINES["eight_gpus"][1]


@pytest.mark.parametrize("machine", ["nvml_hangs", "smi_hangs", "both_hang"])
def test_a_driver_that_never_answers_is_told_in_time(machine: str, bench: ModuleType, folder: Path) -> None:
    seconds, cpu_s, causes = bench.start(machine, folder)
    _, bar_s, wanted = bench.MACHINES[machine]
    assert set(wanted) <= set(causes)
    assert cpu_s < 3.0
    # Half as much again for starting processes on a machine with other work.
    assert seconds < 1.5 * bar_s
