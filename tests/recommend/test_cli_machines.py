"""Sampled machines through the command line: Linux ones played by a fake NVML, others as pasted nvidia-smi tables."""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from gpurules.report.model import RecommendResult

from . import judge, machines
from .oracle import Machine, best, branch_of, rows

ROOT = Path(__file__).parents[2]
KIT = Path(os.environ.get("GPURULES_CORPUS", ROOT.parent / "shared")) / "tools" / "fakegpu"
NEUTRAL = "NVIDIA Graphics Device"
CUDA_OF = {int(r["branch"]): r["cuda_max"] for r in rows("driver_branches")}
# What the table's name column holds without cutting.
NAME_WIDTH = 26

TABLE = """\
+-----------------------------------------------------------------------------------------+
| {version:<87} |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 {mode:>13} | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  {name:<26} {state:>5}  |   00000000:01:00.0 Off |                  N/A |
| 30%   38C    P8             15W /  200W |     310MiB /   8192MiB |      2%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
"""


@dataclass(frozen=True)
class Fake:
    """A compiled fake driver and how machines are described to it."""

    folder: Path
    kit: bool

    def environ(self, machine: Machine, place: Path) -> dict[str, str]:
        """The variables under which NVML tells of this machine."""
        path = os.environ.get("PATH", os.defpath)
        config = place / "machine.conf"
        config.write_text(self._config(machine), encoding="utf-8")
        found = {"LD_LIBRARY_PATH": os.fspath(self.folder)}
        if self.kit:
            return {**found, "FAKEGPU_CONFIG": os.fspath(config), "PATH": f"{KIT / 'bin'}{os.pathsep}{path}"}
        return {**found, "FAKE_NVML": os.fspath(config)}

    def _config(self, machine: Machine) -> str:
        (sm,), driver = machine.sms, machine.driver or ""
        name, cuda = name_of(machine), CUDA_OF[branch_of(driver)]
        if self.kit:
            card = {"name": name, "cc": f"{sm // 10}.{sm % 10}", "pci_device": "ffff", "pci_name": "Device"}
            settings = {"driver": driver, "cuda": cuda, "gpus": 1, **{f"gpu.{k}": v for k, v in card.items()}}
        else:
            major, _, minor = cuda.partition(".")
            level = int(major) * 1000 + int(minor) * 10
            settings = {"driver": driver, "cuda": level, "gpus": 1, "name": name, "sm": f"{sm // 10},{sm % 10}"}
        return "".join(f"{key}={value}\n" for key, value in settings.items())


@pytest.fixture(scope="module")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Fake:
    """The fake GPU kit where it lies beside the checkout, else the fake NVML of these tests."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler on Linux")
    if importlib.util.find_spec("torch"):
        pytest.skip("the torch of this environment would be part of the machines")
    folder = tmp_path_factory.mktemp("fake")
    kit = (KIT / "build.sh").exists()
    library = folder / "libnvidia-ml.so.1"
    own = [compiler, "-shared", "-fPIC", "-o", os.fspath(library), os.fspath(ROOT / "tests" / "fakes" / "nvml.c")]
    build = ["sh", os.fspath(KIT / "build.sh"), os.fspath(folder)] if kit else own
    subprocess.run(build, check=True, env={**os.environ, "PYTHON": sys.executable}, stdout=subprocess.DEVNULL)
    return Fake(folder, kit)


def names() -> dict[tuple[int, bool], str]:
    """A product name by compute capability and whether it exists in Arm systems only."""
    found: dict[tuple[int, bool], str] = {}
    for group in rows("gpus"):
        for model in group["models"]:
            sm = model.get("sm", group.get("sm"))
            arm = "platform" in model or "platform" in group
            name = f"NVIDIA {model['product']}"
            if sm and group["vendor"] == "nvidia" and len(name) <= NAME_WIDTH:
                found.setdefault((int(sm), arm), name)
    return found


NAMES = names()


def name_of(machine: Machine) -> str:
    """A fitting product; where there is none, a name that tells nothing."""
    (sm,) = machine.sms
    arm = NAMES.get((sm, True), NEUTRAL) if machine.system == "aarch64" else NEUTRAL
    return NAMES.get((sm, False), arm)


def table(machine: Machine) -> str:
    """What nvidia-smi prints on the machine, in the layout of its driver."""
    driver = machine.driver or ""
    branch, windows = branch_of(driver), machine.system == "windows"
    numbers = (driver, driver, CUDA_OF[branch])
    header = "NVIDIA-SMI {:<21} Driver Version: {:<14} CUDA Version: {}"
    if branch >= 600:
        header = "NVIDIA-SMI {:<21} KMD Version: {:<17} CUDA UMD Version: {}"
    mode, state = ("Driver-Model", "WDDM") if windows else ("Persistence-M", "Off")
    return TABLE.format(version=header.format(*numbers), name=name_of(machine), mode=mode, state=state)


def sample(systems: Sequence[str], size: int) -> list[Machine]:
    """Machines of the grid that can be shown (a table needs a name that tells the GPU), most of them with a build."""
    found = [m for m in machines.grid() if m.system in systems]
    if "windows" in systems:
        found = [m for m in found if name_of(m) != NEUTRAL]
    drawn = random.Random(450).sample(found, 6 * size)
    served = [m for m in drawn if best(m)][: 2 * size // 3]
    return [*served, *(m for m in drawn if not best(m))][:size]


def answer(machine: Machine, args: Sequence[str], place: Path, environ: dict[str, str]) -> list[str]:
    """What is wrong with the answer of a process of its own."""
    python = (machine.python or "").rpartition(".")[0]
    line = [sys.executable, "-m", "gpurules", "recommend", "--json", "--lang", "en", *args]
    line += ["--os", machine.system, "--python", python]
    kept = {**os.environ, "XDG_STATE_HOME": os.fspath(place), "PYTHONIOENCODING": "utf-8", **environ}
    done = subprocess.run(line, capture_output=True, encoding="utf-8", cwd=place, env=kept, timeout=120)
    if done.stderr or done.returncode not in (0, 1):
        return [f"{machine}: status {done.returncode}: {done.stderr}"]
    result = RecommendResult.model_validate_json(done.stdout)
    found = judge.faults(machine, result)
    if done.returncode != (1 if result.none else 0):
        found.append(f"status {done.returncode}")
    return [f"{machine}: {fault}" for fault in found]


def played(fake: Fake, size: int, place: Path) -> list[str]:
    """What is wrong with Linux machines as NVML shows them."""

    def one(job: tuple[int, Machine]) -> list[str]:
        number, machine = job
        folder = place / f"played{number}"
        folder.mkdir()
        return answer(machine, ["--probe"], folder, fake.environ(machine, folder))

    with ThreadPoolExecutor(2) as pool:
        some = enumerate(sample(("linux", "aarch64"), size))
        return [fault for faults in pool.map(one, some) for fault in faults]


def pasted(size: int, place: Path) -> list[str]:
    """What is wrong with Windows and WSL machines as their nvidia-smi shows them."""

    def one(job: tuple[int, Machine]) -> list[str]:
        number, machine = job
        report = place / f"smi{number}.txt"
        report.write_text(table(machine), encoding="utf-8")
        return answer(machine, ["--report", report.name], place, {})

    with ThreadPoolExecutor(2) as pool:
        some = enumerate(sample(("windows", "wsl"), size))
        return [fault for faults in pool.map(one, some) for fault in faults]


def test_some_machines_that_nvml_shows(fake: Fake, tmp_path: Path) -> None:
    assert played(fake, 6, tmp_path) == []


def test_some_machines_that_a_table_shows(tmp_path: Path) -> None:
    assert pasted(6, tmp_path) == []


@pytest.mark.slow
def test_a_hundred_machines_that_nvml_shows(fake: Fake, tmp_path: Path) -> None:
    assert played(fake, 100, tmp_path) == []


@pytest.mark.slow
def test_a_hundred_machines_that_a_table_shows(tmp_path: Path) -> None:
    assert pasted(100, tmp_path) == []
