"""The nvidia-smi probe where NVML cannot be asked, over a stand-in that prints the same profiles in its words."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from gpurules.facts import Fact, Scalar
from gpurules.gathering import knowledge_in, signatures_of
from gpurules.probes.live import collect
from gpurules.probes.live.nvml import probe_nvml
from gpurules.probes.live.smi import probe_nvidia_smi
from gpurules.probes.live.source import Machine, ProbeError

Environ = Callable[..., dict[str, str]]
Machines = Callable[..., Machine]

PROFILES = ("rtx3060", "rtx5090", "gtx1080ti", "two4090", "v100", "t4", "a100_mig", "eight_h100")
# What nvidia-smi does not print, or prints elsewhere.
ONLY_NVML = {"sm", "unsupported", "nvlinks_up", "nvlinks_down", "nvlink_version", "nvlink_errors", "fabric_code"}
ONLY_SMI = {"reset_required"}


def gpus(facts: list[Fact]) -> dict[Scalar, dict[str, Scalar]]:
    left_out = ONLY_NVML | ONLY_SMI
    return {
        fact.fields["index"]: {name: value for name, value in fact.fields.items() if name not in left_out}
        for fact in facts
        if fact.type == "gpu"
    }


@pytest.mark.parametrize("profile", PROFILES)
def test_nvidia_smi_tells_the_same_as_nvml(
    profile: str, nvml_environ: Environ, smi_folder: Path, machine: Machines
) -> None:
    environ = nvml_environ(profile)
    told = probe_nvml(machine(environ=environ), 5.0)
    printed = probe_nvidia_smi(machine(environ={**environ, "PATH": f"{smi_folder}:/usr/bin:/bin"}), 5.0)
    assert gpus(printed) == gpus(told)
    for kind in ("topology_link", "process"):
        assert {fact.key() for fact in printed if fact.type == kind} == {f.key() for f in told if f.type == kind}
    slowed = {(f.get("gpu"), f.get("name")) for f in printed if f.type == "throttle_reason" and f.get("active")}
    assert slowed == {(f.get("gpu"), f.get("name")) for f in told if f.type == "throttle_reason"}
    (smi,) = [fact for fact in printed if fact.type == "nvidia_smi"]
    assert (smi.get("state"), smi.get("return_code")) == ("ok", 0)
    assert {place.source for fact in printed for place in fact.provenance} == {"nvidia_smi"}


def test_without_the_binding_the_words_of_nvidia_smi_count(
    nvml_environ: Environ, smi_folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "pynvml.py").write_text("raise RuntimeError('not this one')\n")
    environ = {**nvml_environ("two4090"), "PATH": f"{smi_folder}:/usr/bin:/bin", "PYTHONPATH": os.fspath(tmp_path)}
    facts = collect(environ=environ)
    assert [f.get("name") for f in facts if f.type == "gpu"] == ["NVIDIA GeForce RTX 4090"] * 2
    (failure,) = [f for f in facts if f.type == "probe_failure" and f.get("probe") == "nvml"]
    assert (failure.get("reason"), failure.get("detail")) == ("missing", "no usable module pynvml: not this one")


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (4, "nvml_no_permission"),
        (9, "nvml_driver_not_loaded"),
        (17, "nvml_gpu_blocked"),
        (18, "nvml_mismatch"),
        (999, "nvml_unknown"),
    ],
)
def test_the_error_that_it_prints_is_known(nvml_environ: Environ, smi_folder: Path, code: int, kind: str) -> None:
    environ = nvml_environ("rtx3060", f"fail.nvmlInit={code}") | {"PATH": f"{smi_folder}:/usr/bin:/bin"}
    facts = collect(environ=environ, signatures=signatures_of(knowledge_in(None)))
    assert [f.get("code") for f in facts if f.type == "nvml"] == [code]
    assert [f.get("kind") for f in facts if f.type == "error" and f.provenance[0].source == "nvidia_smi"] == [kind]


def test_lines_of_stderr_count_too(program: Callable[[str, str], Path], machine: Machines) -> None:
    folder = program("nvidia-smi", "echo 'No devices were found' >&2; exit 255")
    facts = probe_nvidia_smi(machine(environ={"PATH": f"{folder}:/usr/bin:/bin"}), 5.0)
    (smi,) = [fact for fact in facts if fact.type == "nvidia_smi"]
    assert (smi.get("state"), smi.get("return_code")) == ("failed", 255)


def test_success_that_says_nothing(program: Callable[[str, str], Path], machine: Machines) -> None:
    folder = program("nvidia-smi", "echo something on stderr >&2; exit 0")
    facts = probe_nvidia_smi(machine(environ={"PATH": f"{folder}:/usr/bin:/bin"}), 5.0)
    assert [(f.type, dict(f.fields)) for f in facts if f.type != "coverage"] == [
        ("nvidia_smi", {"state": "ok", "return_code": 0, "scope": facts[0].fields["scope"]})
    ]


def test_endless_output_is_cut_and_told(program: Callable[[str, str], Path], machine: Machines) -> None:
    folder = program("nvidia-smi", "exec yes 'NVIDIA-SMI has failed'")
    begin = time.monotonic()
    facts = probe_nvidia_smi(machine(environ={"PATH": f"{folder}:/usr/bin:/bin"}), 5.0)
    assert time.monotonic() - begin < 4.0
    assert [(f.type, f.get("reason")) for f in facts if f.type != "coverage"] == [("probe_failure", "too_large")]


def test_one_that_never_ends_after_the_table(
    nvml_environ: Environ, program: Callable[[str, str], Path], machine: Machines, smi_folder: Path
) -> None:
    folder = program("nvidia-smi", f"[ $# -gt 0 ] && exec sleep 30\nexec {smi_folder}/nvidia-smi")
    begin = time.monotonic()
    facts = probe_nvidia_smi(machine(environ=nvml_environ("two4090") | {"PATH": f"{folder}:/usr/bin:/bin"}), 1.5)
    assert time.monotonic() - begin < 3.0
    assert [f.get("vram_mib") for f in facts if f.type == "gpu"] == [24564, 24564]


def test_a_file_that_may_not_be_executed(machine: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nvidia-smi").write_text("")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ProbeError) as caught:
        probe_nvidia_smi(machine(environ={"PATH": "/nowhere"}), 5.0)
    assert caught.value.reason == "permission"


def test_escapes_in_names_are_no_escapes(program: Callable[[str, str], Path], machine: Machines) -> None:
    folder = program("nvidia-smi", r"printf 'GPU 0: Evil\033[2J\033]0;x\007 Card (UUID: GPU-1)\n'")
    facts = probe_nvidia_smi(machine(environ={"PATH": f"{folder}:/usr/bin:/bin"}), 5.0)
    (gpu,) = [fact for fact in facts if fact.type == "gpu"]
    assert str(gpu.get("name")).isprintable()
