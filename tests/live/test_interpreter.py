"""The interpreter probe over environments made of files, run by this Python."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable
from pathlib import Path

import gpurules.probes.live
import pytest
from gpurules.facts import Fact, Scalar
from gpurules.probes.live import collect
from gpurules.probes.live.env_files import torch_values
from gpurules.probes.live.interpreter import probe_interpreter
from gpurules.probes.live.source import Machine, ProbeError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the environments are made of symbolic links")

Machines = Callable[..., Machine]
VERSION = "{}.{}.{}".format(*sys.version_info[:3])
CUDA_WHEEL = """\
from typing import Optional

__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']
__version__ = '2.11.0+cu128'
debug = False
cuda: Optional[str] = '12.8'
git_version = '0123456789abcdef'
hip: Optional[str] = None
xpu: Optional[str] = None
"""


class Environment:
    """A virtual environment without pip, so that it is made in no time."""

    def __init__(self, prefix: Path, *config: str) -> None:
        self.prefix = prefix
        self.python = prefix / "bin" / "python"
        self.packages = prefix / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
        self.python.parent.mkdir(parents=True)
        self.packages.mkdir(parents=True)
        base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
        self.python.symlink_to(base)
        lines = [f"home = {base.parent}", "include-system-site-packages = false", *config]
        (prefix / "pyvenv.cfg").write_text("\n".join(lines) + "\n")

    def install(self, folder: str, metadata: str = "", name: str = "METADATA") -> None:
        (self.packages / folder).mkdir()
        if metadata:
            (self.packages / folder / name).write_text(metadata)

    def torch(self, text: str) -> None:
        (self.packages / "torch").mkdir()
        (self.packages / "torch" / "version.py").write_text(text)
        (self.packages / "torch" / "__init__.py").write_text("raise SystemExit('torch was imported')\n")


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "env")


def of_type(facts: list[Fact], kind: str) -> list[dict[str, Scalar]]:
    return [dict(fact.fields) for fact in facts if fact.type == kind]


def covered(facts: list[Fact]) -> dict[Scalar, Scalar]:
    return {fact.fields["domain"]: fact.fields["complete"] for fact in facts if fact.type == "coverage"}


def test_packages_and_torch(environment: Environment, machine: Machines) -> None:
    environment.install("torch-2.11.0+cu128.dist-info", "Metadata-Version: 2.4\nName: torch\nVersion: 2.11.0+cu128\n")
    environment.install("nvidia_cudnn_cu12-9.19.0.56.dist-info")
    environment.install(
        "Flash_Attn.egg-info", "Name: Flash_Attn\r\nVersion: 2.8.3\r\n\r\nName: not a header\n", "PKG-INFO"
    )
    environment.install("broken.dist-info")
    environment.torch(CUDA_WHEEL)
    facts = probe_interpreter(machine(python=os.fspath(environment.python)), 10.0)
    location = os.fspath(environment.packages)
    assert of_type(facts, "python") == [
        {
            "version": VERSION,
            "executable": os.fspath(environment.python),
            "environment": "venv",
            "bits": 64 if sys.maxsize > 2**32 else 32,
        }
    ]
    assert of_type(facts, "package") == [
        {"name": "flash-attn", "version": "2.8.3", "manager": "pip", "location": location},
        {"name": "nvidia-cudnn-cu12", "version": "9.19.0.56", "manager": "pip", "location": location},
        {"name": "torch", "version": "2.11.0+cu128", "manager": "pip", "location": location},
    ]
    assert of_type(facts, "torch") == [
        {"version": "2.11.0+cu128", "debug": False, "cuda": "12.8", "cuda_built": True, "hip_built": False}
    ]
    assert covered(facts) == {"python": True, "packages": True, "torch": True}
    (torch,) = [fact for fact in facts if fact.type == "torch"]
    assert torch.provenance[0].reader == f"{location}/torch/version.py"


def test_environment_without_torch(environment: Environment, machine: Machines) -> None:
    facts = probe_interpreter(machine(environ={"VIRTUAL_ENV": os.fspath(environment.prefix)}), 10.0)
    assert (of_type(facts, "torch"), of_type(facts, "package")) == ([], [])
    assert covered(facts) == {"python": True, "packages": True, "torch": True}


def test_editable_torch_is_not_absent(environment: Environment, machine: Machines) -> None:
    environment.install("torch-2.12.0a0+git0123456.dist-info")
    facts = probe_interpreter(machine(python=os.fspath(environment.prefix)), 10.0)
    assert of_type(facts, "package")[0]["version"] == "2.12.0a0+git0123456"
    assert covered(facts)["torch"] is False


def test_same_package_twice_in_one_folder_and_hidden_by_the_path(
    environment: Environment, machine: Machines, tmp_path: Path
) -> None:
    environment.install("triton-3.4.0.dist-info")
    environment.install("triton-3.6.0.dist-info")
    (tmp_path / "first" / "numpy-2.2.0.dist-info").mkdir(parents=True)
    environment.install("numpy-1.26.4.dist-info")
    environ = {"PYTHONPATH": os.fspath(tmp_path / "first")}
    facts = probe_interpreter(machine(environ=environ, python=os.fspath(environment.python)), 10.0)
    versions = [(package["name"], package["version"]) for package in of_type(facts, "package")]
    assert versions == [("numpy", "2.2.0"), ("triton", "3.4.0"), ("triton", "3.6.0")]


def test_conda_environment(environment: Environment, machine: Machines) -> None:
    (environment.prefix / "pyvenv.cfg").unlink()
    records = environment.prefix / "conda-meta"
    records.mkdir()
    (records / "pytorch-2.5.1-py3.12_cuda12.4_cudnn9.1.0_0.json").write_text("{}")
    (records / "history").write_text("")
    # Without pyvenv.cfg only a real copy of Python has this prefix, so the child is told its prefix by a hook.
    environment.python.unlink()
    environment.python.write_text(
        f'#!/bin/sh\nexec {sys.executable} -c \'import runpy, sys; sys.prefix = "{environment.prefix}"; '
        f'sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[-1], run_name="__main__")\' "$@"\n'
    )
    environment.python.chmod(0o755)
    facts = probe_interpreter(machine(environ={"CONDA_PREFIX": os.fspath(environment.prefix)}), 10.0)
    assert of_type(facts, "python")[0]["environment"] == "conda"
    assert [package for package in of_type(facts, "package") if package["manager"] == "conda"] == [
        {"name": "pytorch", "version": "2.5.1", "manager": "conda", "build": "py3.12_cuda12.4_cudnn9.1.0_0"}
    ]


@pytest.mark.parametrize(
    ("folder", "config", "kind"),
    [("env", ("uv = 0.9.5",), "uv"), ("pypoetry/virtualenvs/env", (), "poetry"), ("env", (), "venv")],
)
def test_kind_of_environment(
    tmp_path: Path, machine: Machines, folder: str, config: tuple[str, ...], kind: str
) -> None:
    made = Environment(tmp_path / folder, *config)
    facts = probe_interpreter(machine(python=os.fspath(made.python)), 10.0)
    assert of_type(facts, "python")[0]["environment"] == kind


def test_environment_of_pipenv(environment: Environment, machine: Machines) -> None:
    (environment.prefix / ".project").write_text("/data/project\n")
    facts = probe_interpreter(machine(python=os.fspath(environment.python)), 10.0)
    assert of_type(facts, "python")[0]["environment"] == "pipenv"


def test_start_up_hook_that_prints(environment: Environment, machine: Machines) -> None:
    (environment.packages / "noise.pth").write_text("import sys; print('hello from a hook')\n")
    assert of_type(probe_interpreter(machine(python=os.fspath(environment.python)), 10.0), "python")


@pytest.mark.parametrize(
    ("script", "reason"),
    [("echo no python; echo oops >&2; exit 1", "error"), ("kill -SEGV $$", "crashed"), ("sleep 30", "timeout")],
)
def test_interpreter_that_fails(
    program: Callable[[str, str], Path], machine: Machines, script: str, reason: str
) -> None:
    path = program("python3", script) / "python3"
    with pytest.raises(ProbeError) as caught:
        probe_interpreter(machine(python=os.fspath(path), environ={"PATH": "/usr/bin:/bin"}), 0.5)
    assert caught.value.reason == reason


def test_interpreter_that_is_not_there() -> None:
    facts = collect(python="/no/such/python", environ={})
    failures = [fact for fact in of_type(facts, "probe_failure") if fact["probe"] == "python"]
    assert failures == [{"probe": "python", "reason": "missing", "detail": "/no/such/python"}]
    assert "packages" not in covered(facts)


def test_child_is_valid_in_old_pythons() -> None:
    child = Path(gpurules.probes.live.__file__).with_name("_interpreter_child.py")
    ast.parse(child.read_text(), feature_version=(3, 6))


@pytest.mark.parametrize(
    ("text", "values"),
    [
        (
            "__version__ = '2.11.0+cpu'\ndebug = False\ncuda: Optional[str] = None\nhip: Optional[str] = None\n",
            {
                "version": "2.11.0+cpu",
                "debug": False,
                "cuda_built": False,
                "cuda": None,
                "hip_built": False,
                "hip": None,
            },
        ),
        (
            "__version__ = '2.10.0+rocm7.0'\ncuda = None\nhip = '7.0.51831'  # HIP\n",
            {"version": "2.10.0+rocm7.0", "cuda_built": False, "cuda": None, "hip_built": True, "hip": "7.0.51831"},
        ),
        ("__version__ = '1.0.0'\ncuda = '9.0.176'\n", {"version": "1.0.0", "cuda_built": True, "cuda": "9.0.176"}),
        ("__version__ = get_version()\ncuda = [\n", {}),
        ("", {}),
    ],
)
def test_text_of_torch_version(text: str, values: dict[str, Scalar | None]) -> None:
    assert torch_values(text) == values
