"""`gpurules check`: what the files of a project ask for, and whether it works on a machine."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from gpurules.cli import cli

NEEDS_TOML = pytest.mark.skipif(sys.version_info < (3, 11), reason="the standard library reads no TOML")
INPUTS = Path(__file__).parent / "inputs"
INDEX = "https://download.pytorch.org/whl"


COMPOSE = """services:
  train: {build: ., deploy: {resources: {reservations: {devices: [{driver: nvidia, count: all, capabilities: [gpu]}]}}}}
  infer: {image: "nvidia/cuda:12.8.1-base-ubuntu22.04"}
  cdi: {build: ., devices: ["nvidia.com/gpu=all"]}
  old: {build: ., runtime: nvidia}
  new: {build: ., gpus: all}
  db: {image: "postgres:16"}
"""


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


ERRORS = (
    "project_build_lacks_gpu", "project_build_missing", "project_needs_newer_driver", "project_pins_conflict",
    "project_service_without_gpu", "project_extension_unfit",
)  # fmt: skip


@pytest.mark.parametrize(
    ("files", "gpu", "driver", "causes"),
    [
        ({"requirements.txt": "torch==2.6.0\n"}, "NVIDIA GeForce RTX 5090", "580.95.05", ["project_build_lacks_gpu"]),
        ({"requirements.txt": f"-i {INDEX}/cu128\ntorch==2.8.0\n"}, "NVIDIA GeForce RTX 5090", "580.95.05",
         ["none_project_fits"]),
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
        ({"requirements.txt": "numpy\n"}, "Tesla T4", "580.95.05", ["none_project_fits"]),
        ({"Dockerfile": "FROM nvcr.io/nvidia/pytorch:25.10-py3\n"}, "Tesla T4", "535.104.05",
         ["project_needs_newer_driver"]),
        ({"Dockerfile": "FROM pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime\n", "requirements.txt": "torch==2.7.1\n"},
         "Tesla T4", "580.95.05", ["project_files_disagree"]),
        ({"environment.yml": "dependencies: [pytorch=2.5.1, pytorch-cuda=12.4]\n"}, "NVIDIA GeForce RTX 5090",
         "580.95.05", ["project_build_lacks_gpu"]),
        ({"environment.yml": "dependencies: [pytorch, cpuonly]\n"}, "Tesla T4", "580.95.05",
         ["project_asks_for_cpu_build"]),
        ({"environment.yml": "dependencies: [pytorch=2.7.0, pytorch-cuda=12.4]\n"}, "Tesla T4", "580.95.05",
         ["project_build_missing"]),
        ({"requirements.txt": "torch>=2.7\ntorchvision==0.21.0\n"}, "Tesla T4", "580.95.05",
         ["project_pins_conflict"]),
        ({"requirements.txt": f"torch==2.6.0\n--extra-index-url {INDEX}/cpu\n"}, "Tesla T4", "580.95.05",
         ["project_asks_for_cpu_build"]),
        ({"requirements.txt": f"torch\n--extra-index-url {INDEX}/cu121\n"}, "Tesla T4", "535.104.05",
         ["project_needs_newer_driver"]),
        ({"requirements.txt": f"torch\n--index-url {INDEX}/cu121\n"}, "Tesla T4", "535.104.05",
         ["none_project_fits"]),
        ({"requirements.txt": f"torch<2.6\n--extra-index-url {INDEX}/cu121\n"}, "Tesla T4", "535.104.05",
         ["none_project_fits"]),
        ({"requirements.txt": f"torch==2.9.0\n--extra-index-url {INDEX}/cu121\n"}, "Tesla T4", "535.104.05",
         ["none_project_fits"]),
        ({"requirements.txt": f"torch==2.9.0\n--index-url {INDEX}/cu121\n"}, "Tesla T4", "535.104.05",
         ["project_build_missing"]),
        ({"Dockerfile": f"FROM ubuntu:22.04\nRUN pip install torch --extra-index-url {INDEX}/cu121\n"}, "Tesla T4",
         "535.104.05", ["project_needs_newer_driver"]),
        ({"Dockerfile": f"FROM ubuntu:22.04\nRUN uv pip install torch --extra-index-url {INDEX}/cu121\n"}, "Tesla T4",
         "535.104.05", ["none_project_fits"]),
        ({"requirements.txt": "flash-attn==2.8.3\n"}, "Tesla T4", "580.95.05", ["project_extension_unfit"]),
        ({"requirements.txt": "flash-attn==2.8.3\n"}, "NVIDIA L4", "580.95.05", ["none_project_fits"]),
    ],
)  # fmt: skip
def test_causes(tmp_path: Path, files: dict[str, str], gpu: str, driver: str, causes: list[str]) -> None:
    status, found, _ = checked(tmp_path, files, gpu, driver)
    assert found == causes
    assert status == int(causes[0] in ERRORS)


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
    assert "requirements.txt 要求 torch 2.6.0+cu124，它只含" in output


def test_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("")
    result = CliRunner().invoke(cli, ["check", str(tmp_path), "--no-probe"])
    assert result.exit_code != 0
    assert "no project file" in str(result.output) + str(result.exception)


# --- whole projects, as their owner sees them -----------------------------------------------------------------------

NEW = """gpus: rtx 5090
driver: 580.95.05
os: Ubuntu 24.04 (x86_64)
python: 3.12
"""
OLD = """gpus: 2x rtx 3090
driver: 535.183.01
os: Ubuntu 22.04 (x86_64)
python: 3.11
"""


def report_of(tmp_path: Path, name: str, machine: str, *options: str) -> dict[str, Any]:
    facts = tmp_path / "machine.yaml"
    facts.write_text(machine)
    result = CliRunner().invoke(cli, ["check", str(INPUTS / name), "--facts", str(facts), "--json", *options])
    report: dict[str, Any] = json.loads(result.output)
    return report


@NEEDS_TOML
@pytest.mark.parametrize(
    ("name", "machine", "causes", "steps"),
    [
        ("fine-tuning", NEW, ["project_build_lacks_gpu"], [
            "constraints.txt, line 1: replace `torch==2.5.1` by `torch==2.15.0+cu132`",
            "constraints.txt: take torch from the index https://download.pytorch.org/whl/cu132 (in a requirements file "
            "the line `--extra-index-url https://download.pytorch.org/whl/cu132`)"]),
        ("fine-tuning", OLD, ["none_project_fits"], []),
        ("image-generation", NEW, ["none_project_fits"], []),
        # pip takes the newest torch of both indexes, which is the default one's.
        ("image-generation", OLD, ["project_needs_newer_driver"], [
            "requirements.txt, line 2: replace `torch` by `torch==2.14.1+cu126`",
            "requirements.txt, line 1: replace `https://download.pytorch.org/whl/cu121` by "
            "`https://download.pytorch.org/whl/cu126`"]),
        ("conda", OLD, ["project_conda_may_pick_cpu"], [
            "environment.yml, line 7: replace `pytorch=2.6` by `pytorch-gpu` (keep the version) and list the channel "
            "conda-forge; where the file is solved without a driver, set CONDA_OVERRIDE_CUDA to the driver's CUDA"]),
        ("uv", NEW, ["project_build_lacks_gpu"], [
            "pyproject.toml, line 5: replace `torch>=2.6` by `torch==2.7.1+cu128`",
            "pyproject.toml, line 14: replace `https://download.pytorch.org/whl/cu126` by "
            "`https://download.pytorch.org/whl/cu128`",
            "Then lock anew (uv lock, or poetry lock): uv.lock, line 22, holds `torch 2.7.1+cu126`"]),
        ("uv", OLD, ["none_project_fits"], []),
        ("docker", NEW, ["project_build_lacks_gpu", "project_image_lacks_gpu", "project_service_without_gpu",
                         "project_files_disagree"], [
            "requirements.txt, line 1: replace `torch==2.6.0` by `torch==2.15.0+cu132`",
            "requirements.txt: take torch from the index https://download.pytorch.org/whl/cu132 (in a requirements "
            "file the line `--extra-index-url https://download.pytorch.org/whl/cu132`)"]),
        ("docker", OLD, ["project_service_without_gpu", "project_files_disagree"], [
            "docker-compose.yml, service api (line 2): add `deploy: {resources: {reservations: {devices: [{driver: "
            "nvidia, count: all, capabilities: [gpu]}]}}}`"]),
        ("poetry", OLD, ["project_pins_conflict"], [
            "pyproject.toml, line 8: ask for torchvision 0.21.0 in place of `torchvision = {version = \"0.20.1\", "
            "source = \"pytorch-gpu\"}`"]),
    ],
)  # fmt: skip
def test_projects(tmp_path: Path, name: str, machine: str, causes: list[str], steps: list[str]) -> None:
    report = report_of(tmp_path, name, machine)
    assert [finding["cause"] for finding in report["findings"]] == causes
    first = [step["text"] for fix in report["fixes"][:1] for step in fix["steps"]]
    assert first == steps
    assert not any(item["id"] == "torch" for item in report["not_checked"])


def test_fits_in_words(tmp_path: Path) -> None:
    report = report_of(tmp_path, "image-generation", NEW)
    assert report["verdict"] == "ok"
    assert report["summary"] == "torch 2.15.0+cu132, which requirements.txt asks for, works on this machine."
    assert report["notes"][-1] == "Not looked at: what other packages bring, and the program itself"
    assert report_of(tmp_path, "image-generation", NEW, "--lang", "zh")["summary"] == (
        "requirements.txt 要求的 torch 2.15.0+cu132 可在此机器上运行。"
    )


@pytest.mark.parametrize(
    ("machine", "summary", "questions"),
    [
        ("os: Ubuntu 24.04 (x86_64)\n", "The files were read; to judge them, the GPU and the driver must be known.",
         ["nvidia_smi", "python_version"]),
        ("gpus: rtx 4090\nos: Ubuntu 24.04 (x86_64)\npython: 3.12\n",
         "The files were read; to judge them, the driver must be known.", ["nvidia_smi"]),
    ],
)  # fmt: skip
def test_what_is_missing_to_judge(tmp_path: Path, machine: str, summary: str, questions: list[str]) -> None:
    report = report_of(tmp_path, "image-generation", machine)
    assert (report["verdict"], report["summary"]) == ("unknown", summary)
    assert [question["id"] for question in report["questions"]] == questions


def test_what_is_installed_here_says_nothing_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "installed.txt").write_text("PyTorch version: 1.13.1+cpu\nIs CUDA available: False\n")
    report = report_of(tmp_path, "image-generation", NEW, "--report", str(tmp_path / "installed.txt"))
    assert [finding["cause"] for finding in report["findings"]] == ["none_project_fits"]
