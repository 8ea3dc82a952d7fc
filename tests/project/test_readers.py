"""The readers of project files: what each kind of file asks for."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest
from gpurules.facts import Scalar
from gpurules.probes.project import project_files, read_project
from gpurules.probes.project.markers import applies
from gpurules.probes.project.specs import parse

NEEDS_TOML = pytest.mark.skipif(sys.version_info < (3, 11), reason="the standard library reads no TOML")
INDEX = "https://download.pytorch.org/whl"
ANY = {"at_least": "0", "below": "9999", "pinned": False}

Fields = dict[str, Scalar]


def said(
    files: dict[str, str], kind: str, *without: str, system: str = "linux", python: str = "3.11.9"
) -> list[Fields]:
    project = read_project({name: text.encode() for name, text in files.items()}, system, "x86_64", python)
    dropped = {"file", *without}
    return [{k: v for k, v in f.fields.items() if k not in dropped} for f in project.facts if f.type == kind]


def asked(files: dict[str, str], *, system: str = "linux", python: str = "3.11.9") -> list[tuple[Scalar, ...]]:
    """Package, version or range, variant and line of each requirement."""
    found = said(files, "requirement", system=system, python=python)
    return [
        (f["package"], f.get("version", f"{f.get('at_least')}..{f.get('below')}"), f.get("variant", "-"), f["line"])
        for f in found
    ]


# --- requirements ----------------------------------------------------------------------------------------------------


def test_requirements() -> None:
    text = """# pinned
--extra-index-url https://me:word@mirror.example.org/whl/cu124
-r other.txt
torch==2.6
Flash_Attn >= 2.5 ; sys_platform == "linux"  # fast
pywin32>=300 ; sys_platform == "win32"
uvicorn[standard] \\
    ==0.30.1
git+https://example.org/x.git
torchvision==0.21.0+cu121
"""
    assert asked({"requirements.txt": text}) == [
        ("torch", "2.6.0", "cu124", 4),
        ("flash-attn", "2.5..9999", "cu124", 5),
        ("uvicorn", "0.30.1", "cu124", 7),
        ("torchvision", "0.21.0", "cu121", 10),
    ]
    assert said({"requirements.txt": text}, "requirement")[0] == {
        "package": "torch", "spec": "==2.6", "version": "2.6.0", "pinned": True, "line": 4, "variant": "cu124",
        "text": "torch==2.6", "manager": "pip", "role": "asked", "beside_default": True,
    }  # fmt: skip
    assert said({"requirements.txt": text}, "project_index") == [
        {"url": "https://mirror.example.org/whl/cu124", "variant": "cu124", "line": 2}
    ]


def test_no_index_is_the_default_one_and_several_are_none() -> None:
    assert said({"requirements.txt": "torch==2.6.0"}, "requirement")[0]["default_index"] is True
    two = f"-i {INDEX}/cu124\n--extra-index-url {INDEX}/cpu\ntorch==2.6.0\n"
    (found,) = said({"requirements.txt": two}, "requirement")
    assert {"variant", "default_index"} & set(found) == set()


def test_conditions() -> None:
    text = """torch==2.6.0 ; sys_platform == "linux" and python_version < "3.13"
torch==2.9.0 ; sys_platform == "linux" and python_version >= "3.13"
torch==2.8.0 ; sys_platform == "win32"
numpy<2 ; extra == "old"
"""
    assert [row[:2] for row in asked({"requirements.txt": text})] == [("torch", "2.6.0"), ("numpy", "0..2")]
    assert next(row[:2] for row in asked({"requirements.txt": text}, python="3.13.1")) == ("torch", "2.9.0")
    assert next(row[:2] for row in asked({"requirements.txt": text}, system="windows")) == ("torch", "2.8.0")
    assert [f.get("conditional") for f in said({"requirements.txt": text}, "requirement")] == [None, True]


def test_included_files_share_the_index_and_constraints_are_told(tmp_path: Path) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements.txt").write_text(f"--index-url {INDEX}/cu126\n-r requirements/gpu.txt\n-c pins.txt\n")
    (tmp_path / "requirements" / "gpu.txt").write_text("torch\n-r ../../outside.txt\n")
    (tmp_path / "pins.txt").write_text("torch==2.7.1\n")
    (tmp_path.parent / "outside.txt").write_text("torch==1.0\n")
    files = project_files(tmp_path)
    assert sorted(files) == ["pins.txt", "requirements.txt", "requirements/gpu.txt"]
    found = {f["package"]: (f["role"], f["variant"]) for f in said(
        {name: data.decode() for name, data in files.items() if name != "requirements.txt"}
        | {"requirements.txt": files["requirements.txt"].decode()}, "requirement") if f["pinned"]}  # fmt: skip
    assert found == {"torch": ("constraint", "cu126")}


def test_only_known_files_of_the_folder_are_read(tmp_path: Path) -> None:
    for name in ("requirements-dev.txt", "app.Dockerfile", "main.py", "notes.txt"):
        (tmp_path / name).write_text("torch==2.6.0\n")
    assert list(project_files(tmp_path)) == ["app.Dockerfile", "requirements-dev.txt"]
    assert list(project_files(tmp_path / "notes.txt")) == ["notes.txt"]


@pytest.mark.parametrize(
    ("text", "version", "low", "high"),
    [
        ("==2.6", "2.6.0", None, None),
        ("==2.6.*", None, "2.6", "2.7"),
        ("", None, "0", "9999"),
        (">=2.4,<2.7,!=2.5.0", None, "2.4", "2.7"),
        ("<=2.6", None, "0", "2.6.0.1"),
        ("~=2.6", None, "2.6", "3"),
        ("~=2.6.1", None, "2.6.1", "2.7"),
        ("^2.6.0", None, "2.6.0", "3"),
        ("^0.15.2", None, "0.15.2", "0.16"),
        ("~2.6", None, "2.6", "2.7"),
        ("rubbish", None, "0", "9999"),
    ],
)
def test_ranges(text: str, version: str | None, low: str | None, high: str | None) -> None:
    found = parse(text)
    assert (found.version, found.at_least, found.below) == (version, low, high)


@pytest.mark.parametrize(
    ("marker", "holds"),
    [
        (None, True),
        ("sys_platform == 'linux'", True),
        ("sys_platform != 'linux'", False),
        ("platform_system == 'Windows' or os_name == 'posix'", True),
        ("(sys_platform == 'linux' and platform_machine == 'aarch64') or python_version >= '3.10'", True),
        ("python_version < '3.9'", False),
        ("python_full_version ~= '3.11.0'", True),
        ("sys_platform in 'linux darwin'", True),
        ("'win' not in sys_platform", True),
        ("extra == 'gpu'", None),
        ("extra == 'gpu' and sys_platform == 'win32'", False),
        ("extra == 'gpu' or sys_platform == 'linux'", True),
        ("sys_platform ==", None),
        ("(" * 100 + "sys_platform == 'linux'", None),
    ],
)
def test_markers(marker: str | None, holds: bool | None) -> None:
    assert applies(marker, "linux", "x86_64", "3.11.9") is holds


# --- pyproject, locks ------------------------------------------------------------------------------------------------

UV = f"""[project]
dependencies = ["torch==2.8.0", "numpy"]
[tool.uv.sources]
torch = [
  {{ index = "cpu", marker = "sys_platform == 'darwin'" }},
  {{ index = "gpu", marker = "sys_platform != 'darwin'" }},
]
[[tool.uv.index]]
name = "cpu"
url = "{INDEX}/cpu"
explicit = true
[[tool.uv.index]]
name = "gpu"
url = "{INDEX}/cu128"
explicit = true
"""


@NEEDS_TOML
def test_uv_sources() -> None:
    assert asked({"pyproject.toml": UV}) == [("torch", "2.8.0", "cu128", 2), ("numpy", "0..9999", "-", 2)]
    assert asked({"pyproject.toml": UV}, system="macos")[0] == ("torch", "2.8.0", "cpu", 2)
    assert read_project({"pyproject.toml": b"[broken"}).unread == ("pyproject.toml",)


@NEEDS_TOML
def test_poetry() -> None:
    text = f"""[tool.poetry.dependencies]
python = "^3.11"
torch = {{version = "^2.6.0", source = "gpu"}}
numpy = "*"
[tool.poetry.group.dev.dependencies]
torchvision = {{version = "0.21.0", markers = "sys_platform == 'linux'"}}
pywin32 = {{version = "*", platform = "win32"}}
[[tool.poetry.source]]
name = "gpu"
url = "{INDEX}/cu124"
priority = "explicit"
"""
    assert asked({"pyproject.toml": text}) == [
        ("torch", "2.6.0..3", "cu124", 3), ("numpy", "0..9999", "-", 4), ("torchvision", "0.21.0", "-", 6),
    ]  # fmt: skip


@NEEDS_TOML
def test_lock_of_uv() -> None:
    text = f"""version = 1
[[package]]
name = "requests"
version = "2.32.0"
[[package]]
name = "torch"
version = "2.7.1"
source = {{ registry = "https://pypi.org/simple" }}
resolution-markers = ["sys_platform == 'darwin'"]
[[package]]
name = "torch"
version = "2.7.1+cu126"
source = {{ registry = "{INDEX}/cu126" }}
resolution-markers = ["sys_platform == 'linux'", "sys_platform == 'win32'"]
"""
    assert asked({"uv.lock": text}) == [("torch", "2.7.1", "cu126", 11)]
    assert said({"uv.lock": text}, "requirement", system="macos")[0]["default_index"] is True
    assert {f["role"] for f in said({"uv.lock": text}, "requirement")} == {"locked"}


# --- conda, images ---------------------------------------------------------------------------------------------------


def test_conda_environment() -> None:
    text = f"""channels: [pytorch, nvidia]
dependencies:
- python=3.11
- pytorch::pytorch=2.5.1
- pytorch-cuda=12.4
- torchvision 0.20
- libtorch=2.5.1=cpu_generic*
- pip:
  - --index-url {INDEX}/cpu
  - torch==2.6.0
"""
    rows = [(f["package"], f["manager"], f.get("version"), f.get("at_least"), f.get("build"), f.get("cuda"))
            for f in said({"environment.yml": text}, "requirement")]  # fmt: skip
    assert rows == [
        ("python", "conda", None, "3.11", "any", "3.11"),
        ("pytorch", "conda", "2.5.1", None, "any", "2.5"),
        ("pytorch-cuda", "conda", None, "12.4", "any", "12.4"),
        ("torchvision", "conda", None, "0.20", "any", "0.20"),
        ("libtorch", "conda", "2.5.1", None, "cpu_generic*", "2.5"),
        ("torch", "pip", "2.6.0", None, None, None),
    ]
    assert [f["name"] for f in said({"environment.yml": text}, "conda_channel")] == ["pytorch", "nvidia"]
    assert read_project({"environment.yml": b"a: b"}).unread == ("environment.yml",)


def test_dockerfile() -> None:
    text = f"""ARG TAG=2.6.0-cuda12.4-cudnn9-runtime
FROM --platform=linux/amd64 nvidia/cuda:12.8.1-cudnn-devel-ubuntu22.04 AS base
FROM pytorch/pytorch:${{TAG}}
FROM nvcr.io/nvidia/pytorch:25.01-py3
FROM base
RUN pip install -r requirements.txt && pip install torch==2.6.0 \\
    --index-url {INDEX}/cu124 && echo done
"""
    assert said({"Dockerfile": text}, "base_image") == [
        {"image": "nvidia/cuda:12.8.1-cudnn-devel-ubuntu22.04", "repository": "nvidia/cuda", "cuda": "12.8", "line": 2},
        {"image": "pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime", "repository": "pytorch/pytorch", "cuda": "12.4",
         "torch": "2.6.0", "line": 3},
        {"image": "nvcr.io/nvidia/pytorch:25.01-py3", "repository": "nvcr.io/nvidia/pytorch", "release": "25.01",
         "line": 4},
    ]  # fmt: skip
    assert asked({"Dockerfile": text}) == [("torch", "2.6.0", "cu124", 6)]


COMPOSE = """services:
  train: {build: ., deploy: {resources: {reservations: {devices: [{driver: nvidia, count: all, capabilities: [gpu]}]}}}}
  infer: {image: "nvidia/cuda:12.8.1-base-ubuntu22.04"}
  cdi: {build: ., devices: ["nvidia.com/gpu=all"], shm_size: 8gb}
  old: {build: ., runtime: nvidia, ipc: host}
  new: {build: ., gpus: all, shm_size: "512m"}
  db: {image: "postgres:16"}
"""


def test_compose_services() -> None:
    files = {"docker-compose.yml": COMPOSE, "Dockerfile": "FROM nvidia/cuda:12.8.1-base-ubuntu22.04\n"}
    found = {
        f["name"]: (f["gpu"], f["wants_gpu"], f["shm_mib"], f["shared_ipc"]) for f in said(files, "compose_service")
    }
    assert found == {
        "train": (True, True, 64, False), "infer": (False, True, 64, False), "cdi": (True, True, 8192, False),
        "old": (True, True, 64, True), "new": (True, True, 512, False), "db": (False, False, 64, False),
    }  # fmt: skip
    assert read_project({"compose.yaml": b"a: [b"}).unread == ("compose.yaml",)


# --- hostile files ---------------------------------------------------------------------------------------------------

BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{last}'] * 10)}]\n" for last, name in zip("abcdefghi", "bcdefghij", strict=True)
)


@pytest.mark.parametrize(
    "files",
    [
        {"environment.yml": f"{BOMB}channels: *j\ndependencies: [*j, {{pip: *j}}]\n"},
        {"compose.yaml": f"{BOMB}services: {{x: {{devices: *j, shm_size: *j, image: *j, ipc: *j}}}}\n"},
        {"requirements.txt": "torch" + "[" * 100_000 + "\n" + "=" * 100_000 + "\n" + "torch ; " + "(" * 100_000 + "\n"},
        {"Dockerfile": "FROM " + "${A:-" * 50_000 + "\nRUN pip install " + "a==" * 50_000 + "\n"},
        {"environment.yml": "dependencies:\n- " + "a" * 100_000 + "=" * 1000 + "\n"},
    ],
)
def test_hostile_files_are_read_in_no_time(files: dict[str, str]) -> None:
    begin = time.process_time()
    read_project({name: text.encode() for name, text in files.items()})
    assert time.process_time() - begin < 2.0
