"""`gpurules check`: what the files of a project ask for, and whether it works on a machine."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from gpurules.cli import cli
from gpurules.facts import Scalar
from gpurules.probes.project import project_files, read_project

NEEDS_TOML = pytest.mark.skipif(sys.version_info < (3, 11), reason="the standard library reads no TOML")
INDEX = "https://download.pytorch.org/whl"


def said(files: dict[str, str], kind: str) -> list[dict[str, Scalar]]:
    facts = read_project({name: text.encode() for name, text in files.items()}).facts
    return [{k: v for k, v in fact.fields.items() if k != "file"} for fact in facts if fact.type == kind]


# --- readers ---------------------------------------------------------------------------------------------------------


def test_requirements() -> None:
    text = """# pinned
--extra-index-url https://me:word@mirror.example.org/whl/cu124
-r other.txt
torch==2.6
Flash_Attn >= 2.5 ; sys_platform == "linux"  # fast
uvicorn[standard] \\
    ==0.30.1
git+https://example.org/x.git
torchvision==0.21.0+cu121
"""
    assert said({"requirements.txt": text}, "requirement") == [
        {"package": "torch", "spec": "==2.6", "version": "2.6.0", "line": 4, "variant": "cu124"},
        {"package": "flash-attn", "spec": ">= 2.5", "line": 5, "variant": "cu124"},
        {"package": "uvicorn", "spec": "==0.30.1", "version": "0.30.1", "line": 6, "variant": "cu124"},
        {"package": "torchvision", "spec": "==0.21.0+cu121", "version": "0.21.0", "line": 9, "variant": "cu121"},
    ]
    assert said({"requirements.txt": text}, "project_index") == [
        {"url": "https://mirror.example.org/whl/cu124", "variant": "cu124"}
    ]


def test_no_index_is_the_default_one_and_several_are_none() -> None:
    assert said({"requirements.txt": "torch==2.6.0"}, "requirement")[0]["default_index"] is True
    two = f"-i {INDEX}/cu124\n--extra-index-url {INDEX}/cpu\ntorch==2.6.0\n"
    assert said({"requirements.txt": two}, "requirement") == [
        {"package": "torch", "spec": "==2.6.0", "version": "2.6.0", "line": 3}
    ]


@NEEDS_TOML
def test_uv_sources() -> None:
    text = f"""[project]
dependencies = ["torch==2.8.0", "numpy"]
[tool.uv.sources]
torch = {{ index = "gpu" }}
[[tool.uv.index]]
name = "gpu"
url = "{INDEX}/cu128"
explicit = true
"""
    assert said({"pyproject.toml": text}, "requirement") == [
        {"package": "torch", "spec": "==2.8.0", "version": "2.8.0", "line": 2, "variant": "cu128"},
        {"package": "numpy", "line": 2},
    ]
    assert read_project({"pyproject.toml": b"[broken"}).unread == ("pyproject.toml",)


def test_conda_environment() -> None:
    text = f"dependencies:\n- python=3.11\n- pip:\n  - --index-url {INDEX}/cpu\n  - torch==2.6.0\n"
    assert said({"environment.yml": text}, "requirement") == [
        {"package": "torch", "spec": "==2.6.0", "version": "2.6.0", "line": 5, "variant": "cpu"}
    ]


def test_dockerfile() -> None:
    text = f"""FROM --platform=linux/amd64 nvidia/cuda:12.8.1-cudnn-devel-ubuntu22.04 AS base
FROM pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime
FROM base
RUN pip install -r requirements.txt && pip install torch==2.6.0 \\
    --index-url {INDEX}/cu124 && echo done
"""
    assert said({"Dockerfile": text}, "base_image") == [
        {"image": "nvidia/cuda:12.8.1-cudnn-devel-ubuntu22.04", "cuda": "12.8"},
        {"image": "pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime", "cuda": "12.4"},
        {"image": "base"},
    ]
    assert said({"Dockerfile": text}, "requirement") == [
        {"package": "torch", "spec": "==2.6.0", "version": "2.6.0", "line": 4, "variant": "cu124"}
    ]


COMPOSE = """services:
  train: {build: ., deploy: {resources: {reservations: {devices: [{driver: nvidia, count: all, capabilities: [gpu]}]}}}}
  infer: {image: "nvidia/cuda:12.8.1-base-ubuntu22.04"}
  cdi: {build: ., devices: ["nvidia.com/gpu=all"]}
  old: {build: ., runtime: nvidia}
  new: {build: ., gpus: all}
  db: {image: "postgres:16"}
"""


def test_compose_services() -> None:
    files = {"docker-compose.yml": COMPOSE, "Dockerfile": "FROM nvidia/cuda:12.8.1-base-ubuntu22.04\n"}
    found = {fact["name"]: (fact["gpu"], fact["wants_gpu"]) for fact in said(files, "compose_service")}
    assert found == {
        "train": (True, True), "infer": (False, True), "cdi": (True, True), "old": (True, True), "new": (True, True),
        "db": (False, False),
    }  # fmt: skip
    assert read_project({"compose.yaml": b"a: [b"}).unread == ("compose.yaml",)


def test_only_known_files_of_the_folder_are_read(tmp_path: Path) -> None:
    for name in ("requirements-dev.txt", "app.Dockerfile", "main.py", "notes.txt"):
        (tmp_path / name).write_text("torch==2.6.0\n")
    assert list(project_files(tmp_path)) == ["app.Dockerfile", "requirements-dev.txt"]
    assert list(project_files(tmp_path / "notes.txt")) == ["notes.txt"]


# --- the command -----------------------------------------------------------------------------------------------------

MACHINE = """facts:
- gpu: {index: 0, name: %s}
- driver: {vendor: nvidia, version: "%s"}
- os: {family: linux, machine: x86_64}
"""


def checked(tmp_path: Path, files: dict[str, str], gpu: str, driver: str, *options: str) -> tuple[int, list[str], str]:
    """Exit status, causes and output."""
    project = tmp_path / "project"
    project.mkdir()
    for name, text in files.items():
        (project / name).write_text(text)
    facts = tmp_path / "machine.yaml"
    facts.write_text(MACHINE % (gpu, driver))
    result = CliRunner().invoke(cli, ["check", str(project), "--facts", str(facts), "--json", *options])
    report = json.loads(result.output)
    return result.exit_code, [finding["cause"] for finding in report["findings"]], result.output


@pytest.mark.parametrize(
    ("files", "gpu", "driver", "causes"),
    [
        ({"requirements.txt": "torch==2.6.0\n"}, "NVIDIA GeForce RTX 5090", "580.95.05", ["project_build_lacks_gpu"]),
        ({"requirements.txt": f"-i {INDEX}/cu128\ntorch==2.8.0\n"}, "NVIDIA GeForce RTX 5090", "580.95.05", []),
        ({"requirements.txt": "torch==2.6.0+cu117\n"}, "Tesla T4", "580.95.05", ["project_build_missing"]),
        (
            {"requirements.txt": f"-i {INDEX}/cu130\ntorch==2.11.0\n"},
            "Tesla T4",
            "570.133.07",
            ["project_needs_newer_driver"],
        ),
        ({"Dockerfile": "FROM nvidia/cuda:13.0.1-base-ubuntu24.04\n"}, "Tesla T4", "570.133.07",
         ["project_needs_newer_driver"]),
        ({"compose.yaml": COMPOSE}, "Tesla T4", "580.95.05", ["project_service_without_gpu"]),
        ({"requirements.txt": "torch==2.6.0\ntorchvision==0.16.0\n"}, "Tesla T4", "580.95.05",
         ["project_pins_conflict"]),
        ({"requirements.txt": "numpy\n"}, "Tesla T4", "580.95.05", []),
        ({"requirements.txt": "flash-attn==2.8.3\n"}, "Tesla T4", "580.95.05", ["project_extension_unfit"]),
        ({"requirements.txt": "flash-attn==2.8.3\n"}, "NVIDIA L4", "580.95.05", []),
    ],
)  # fmt: skip
def test_causes(tmp_path: Path, files: dict[str, str], gpu: str, driver: str, causes: list[str]) -> None:
    status, found, _ = checked(tmp_path, files, gpu, driver)
    assert (found, status) == (causes, int(bool(causes)))


def test_every_package_of_another_torch_is_named_with_the_release_that_belongs(tmp_path: Path) -> None:
    pins = "torch==2.6.0\nxformers==0.0.30\nvllm==0.9.1\nbitsandbytes==0.50.0\ngptqmodel==7.0.0\n"
    _, causes, output = checked(tmp_path, {"requirements.txt": pins}, "NVIDIA L4", "580.95.05")
    assert causes == ["project_pins_conflict"]
    assert json.loads(output)["fixes"][0]["packages"] == {
        "xformers": "==0.0.29.post3",
        "vllm": "==0.8.5",
        "gptqmodel": "==2.2.0",
    }


def test_in_chinese_with_the_place(tmp_path: Path) -> None:
    _, _, output = checked(tmp_path, {"requirements.txt": "torch==2.6.0\n"}, "RTX 5090", "580.95.05", "--lang", "zh")
    assert "requirements.txt 要求 2.6.0+cu124@linux-x86_64" in output


def test_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("")
    result = CliRunner().invoke(cli, ["check", str(tmp_path), "--no-probe"])
    assert result.exit_code != 0
    assert "no project file" in str(result.output) + str(result.exception)
