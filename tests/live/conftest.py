"""Machines made for tests: a compiled fake NVML, folders that stand for /, stub programs, stub environments."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from gpurules.facts import Fact, Scalar
from gpurules.probes.live.source import Machine
from gpurules.probes.runner import SystemRunner

FAKES = Path(__file__).parents[1] / "fakes"

Said = list[tuple[str, dict[str, Scalar]]]
Build = Callable[..., Path]


@pytest.fixture(scope="session")
def nvml_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_nvml(tmp_path_factory.mktemp("nvml"))


@pytest.fixture(scope="session")
def old_nvml_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An NVML without the calls that came with newer drivers."""
    return compile_nvml(tmp_path_factory.mktemp("old_nvml"), "-DOLD_DRIVER")


def compile_nvml(folder: Path, *options: str) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler on Linux")
    library = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", *options, "-o", library, FAKES / "nvml.c"], check=True)
    return folder


@pytest.fixture
def nvml_environ(nvml_folder: Path, tmp_path: Path) -> Callable[..., dict[str, str]]:
    """The environment of a machine with the named profile, and lines that change it."""

    def make(profile: str, *lines: str, folder: Path = nvml_folder) -> dict[str, str]:
        text = (FAKES / "profiles" / f"{profile}.env").read_text()
        # The first line of a key counts, so changes go first.
        config = tmp_path / "nvml.env"
        config.write_text("".join(f"{line}\n" for line in lines) + text)
        return {"LD_LIBRARY_PATH": os.fspath(folder), "FAKE_NVML": os.fspath(config), "PATH": "/usr/bin:/bin"}

    return make


@pytest.fixture(scope="session")
def smi_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a stand-in for nvidia-smi that prints the profile of the fake NVML."""
    folder = tmp_path_factory.mktemp("smi")
    path = folder / "nvidia-smi"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {FAKES / "nvidia_smi.py"} "$@"\n')
    path.chmod(0o755)
    return folder


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Make a folder that stands for /: texts by path, and symbolic links for values that are paths."""

    def make(files: Mapping[str, str | Path], name: str = "root") -> Path:
        root = tmp_path / name
        for path, content in files.items():
            place = root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Path):
                place.symlink_to(content)
            else:
                place.write_text(content)
        return root

    return make


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str, str], Path]:
    """Make an executable shell script and return its folder, for PATH."""

    def make(name: str, script: str) -> Path:
        folder = tmp_path / "bin"
        folder.mkdir(exist_ok=True)
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return folder

    return make


@pytest.fixture
def machine() -> Callable[..., Machine]:
    def make(root: Path = Path("/"), environ: Mapping[str, str] | None = None, python: str | None = None) -> Machine:
        variables = dict(environ or {})
        return Machine(root=root, runner=SystemRunner(variables), environ=variables, system="linux", python=python)

    return make


@pytest.fixture
def said() -> Callable[[list[Fact]], Said]:
    """What facts say, without where it was read."""
    return lambda facts: [(fact.type, dict(fact.fields)) for fact in facts]
