"""The NVML probe through the real pynvml over a compiled fake library."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from gpurules.facts import Fact, Scalar
from gpurules.probes.live import collect
from gpurules.probes.live.nvml import probe_nvml
from gpurules.probes.live.source import Machine, ProbeError

Environ = Callable[..., dict[str, str]]
Machines = Callable[..., Machine]
Build = Callable[..., Path]
Said = Callable[[list[Fact]], list[tuple[str, dict[str, Scalar]]]]

# A container, whose list of processes proves nothing.
CONTAINER = {
    ".dockerenv": "",
    "proc/sys/kernel/osrelease": "6.8.0-51-generic",
    "proc/self/mountinfo": "22 1 0:40 / / rw - overlay o rw",
}
HOST = {"proc/sys/kernel/osrelease": "6.8.0-51-generic", "proc/self/mountinfo": "22 1 8:2 / / rw - ext4 /dev/sda2 rw"}
STATE_OK = ("nvml", {"state": "ok", "code": 0, "name": "NVML_SUCCESS"})
NVML_SEEN = ("coverage", {"domain": "nvml", "complete": True})


def seen(domain: str, complete: bool = True) -> tuple[str, dict[str, Scalar]]:
    return ("coverage", {"domain": domain, "complete": complete})


def of_type(facts: list[Fact], kind: str) -> list[dict[str, Scalar]]:
    return [dict(fact.fields) for fact in facts if fact.type == kind]


def test_rtx3060_says_everything(nvml_environ: Environ, machine: Machines, said: Said, build: Build) -> None:
    facts = probe_nvml(machine(build(CONTAINER), nvml_environ("rtx3060")), 5.0)
    assert said(facts) == [
        STATE_OK,
        NVML_SEEN,
        ("driver", {"vendor": "nvidia", "version": "550.163.01", "cuda_max": "12.4", "cuda_level": 12040}),
        ("driver_part", {"part": "userspace", "version": "550.163.01"}),
        (
            "gpu",
            {
                "index": 0,
                "vendor": "nvidia",
                "name": "NVIDIA GeForce RTX 3060",
                "sm": 86,
                "bus_id": "00000000:01:00.0",
                "device_id": "10de:2503",
                "uuid": "GPU-11111111-aaaa-4bbb-8ccc-000000000001",
                "vram_mib": 12288,
                "vram_used_mib": 431,
                "bar1_mib": 16384,
                "bar1_used_mib": 22,
                "vbios": "94.06.14.00.3a",
                "pcie_gen_current": 1,
                "pcie_gen_max": 4,
                "pcie_width_current": 16,
                "pcie_width_max": 16,
                "pcie_replays": 0,
                "utilization_pct": 3,
                "temperature_c": 41,
                "temperature_slowdown_c": 95,
                "power_w": 17,
                "power_limit_w": 170,
                "power_default_w": 170,
                "power_min_w": 100,
                "power_max_w": 212,
                "performance_state": 8,
                "clock_mhz": 210,
                "clock_max_mhz": 2130,
                "persistence": "disabled",
                "compute_mode": "default",
                "display_active": True,
                "unsupported": "ecc, mig, nvlink",
            },
        ),
        ("throttle_reason", {"gpu": 0, "name": "Idle", "active": True}),
        ("process", {"gpu": 0, "pid": 1520, "name": "/usr/lib/xorg/Xorg", "type": "G", "mem_mib": 118}),
        ("process", {"gpu": 0, "pid": 1702, "name": "/usr/bin/gnome-shell", "type": "G", "mem_mib": 41}),
        seen("driver"),
        seen("gpus"),
        seen("throttling"),
    ]
    places = {(place.kind, place.source) for fact in facts for place in fact.provenance}
    assert places == {("probe", "nvml")}


def test_two_4090(nvml_environ: Environ, machine: Machines) -> None:
    facts = probe_nvml(machine(environ=nvml_environ("two4090")), 5.0)
    common = {"vendor": "nvidia", "name": "NVIDIA GeForce RTX 4090", "sm": 89, "device_id": "10de:2684"}
    common |= {"vram_mib": 24564, "vram_used_mib": 15, "ecc": "disabled", "persistence": "enabled"}
    common |= {"power_limit_w": 450, "power_max_w": 600, "pcie_gen_max": 4, "unsupported": "mig, nvlink"}
    uuid = "GPU-22222222-aaaa-4bbb-8ccc-00000000000"
    first, second = of_type(facts, "gpu")
    assert first.items() >= {"index": 0, "bus_id": "00000000:17:00.0", "uuid": f"{uuid}0", **common}.items()
    assert second.items() >= {"index": 1, "bus_id": "00000000:65:00.0", "uuid": f"{uuid}1", **common}.items()
    assert (first["pcie_width_current"], second["pcie_width_current"]) == (16, 8)
    assert of_type(facts, "topology_link") == [{"machine": 0, "a": "GPU0", "b": "GPU1", "link": "SYS"}]
    refused = "chipset_not_supported"
    assert of_type(facts, "peer_access") == [{"a": 0, "b": 1, "read": refused, "write": refused}]
    assert seen("topology") in [(fact.type, dict(fact.fields)) for fact in facts]
    assert of_type(facts, "driver") == [
        {"vendor": "nvidia", "version": "580.95.05", "cuda_max": "13.0", "cuda_level": 13000}
    ]


def test_eight_h100_with_mig_and_ecc(nvml_environ: Environ, machine: Machines) -> None:
    facts = probe_nvml(machine(environ=nvml_environ("eight_h100")), 5.0)
    gpus = of_type(facts, "gpu")
    assert [gpu["index"] for gpu in gpus] == list(range(8))
    assert [gpu["mig"] for gpu in gpus] == ["disabled"] * 7 + ["enabled"]
    assert [gpu["ecc_uncorrected"] for gpu in gpus] == [0, 0, 0, 0, 0, 2, 0, 0]
    assert {(gpu["sm"], gpu["vram_mib"], gpu["ecc"]) for gpu in gpus} == {(90, 81559, "enabled")}
    assert {(gpu["nvlinks_up"], gpu["nvlinks_down"], gpu["nvlink_version"], gpu["fabric"]) for gpu in gpus} == {
        (18, 0, 4, "completed")
    }
    links = of_type(facts, "topology_link")
    assert len(links) == len(of_type(facts, "peer_access")) == 28
    assert {link["link"] for link in links} == {"NV18"}
    assert of_type(facts, "process") == [
        {"gpu": 0, "pid": 41000, "name": "/opt/env/bin/python3", "type": "C", "mem_mib": 70212},
        {"gpu": 0, "pid": 41001, "type": "C", "mem_mib": 512},
    ]
    mig = {"gpu": 7, "ci": 0, "name": "NVIDIA H100 80GB HBM3 MIG 3g.40gb", "mem_total_mib": 40448}
    assert of_type(facts, "mig_device") == [{**mig, "gi": 7, "dev": 0}, {**mig, "gi": 8, "dev": 1}]
    assert of_type(facts, "nvml_call_error") == []


def test_gb10_has_no_memory_of_its_own(nvml_environ: Environ, machine: Machines) -> None:
    facts = probe_nvml(machine(environ=nvml_environ("gb10")), 5.0)
    assert of_type(facts, "gpu") == [
        {
            "index": 0,
            "vendor": "nvidia",
            "name": "NVIDIA GB10",
            "sm": 121,
            "bus_id": "0000000F:01:00.0",
            "device_id": "10de:2e12",
            "uuid": "GPU-33333333-aaaa-4bbb-8ccc-000000000001",
            "utilization_pct": 0,
            "temperature_c": 44,
            "power_w": 11,
            "performance_state": 0,
            "clock_mhz": 2405,
            "clock_max_mhz": 3003,
            "persistence": "enabled",
            "compute_mode": "default",
            "display_active": False,
            "unsupported": "ecc, memory, mig, nvlink, pcie",
        }
    ]
    assert of_type(facts, "driver")[0]["version"] == "580.142"


def test_links_between_two_cards(nvml_environ: Environ, machine: Machines) -> None:
    facts = probe_nvml(machine(environ=nvml_environ("v100", "1.nvlink_errors=4")), 5.0)
    links = [(gpu["nvlinks_up"], gpu["nvlinks_down"], gpu["nvlink_errors"]) for gpu in of_type(facts, "gpu")]
    assert links == [(4, 2, 0), (4, 2, 4)]
    assert of_type(facts, "topology_link") == [{"machine": 0, "a": "GPU0", "b": "GPU1", "link": "NV4"}]
    assert of_type(facts, "peer_access") == [{"a": 0, "b": 1, "read": "ok", "write": "ok"}]


def test_mig_instances_of_an_a100(nvml_environ: Environ, machine: Machines) -> None:
    facts = probe_nvml(machine(environ=nvml_environ("a100_mig")), 5.0)
    gpu = of_type(facts, "gpu")[0]
    assert (gpu["mig"], gpu["remapped_rows"], gpu["remap_pending"], gpu["remap_failed"]) == ("enabled", 0, False, False)
    assert [(mig["dev"], mig["gi"], mig["mem_total_mib"]) for mig in of_type(facts, "mig_device")] == [
        (0, 7, 19968), (1, 8, 19968), (2, 9, 19968)
    ]  # fmt: skip


def test_processes_of_a_host_are_all_there(nvml_environ: Environ, machine: Machines, build: Build, said: Said) -> None:
    lines = ("procs=1520:900,77:N/A", "gprocs=1520:118")
    facts = probe_nvml(machine(build(HOST), nvml_environ("rtx3060", *lines)), 5.0)
    # One that computes and draws is one process; the figure of its computing side is the later one's.
    assert of_type(facts, "process") == [
        {"gpu": 0, "pid": 1520, "name": "/usr/lib/xorg/Xorg", "type": "C+G", "mem_mib": 118},
        {"gpu": 0, "pid": 77, "type": "C"},
    ]
    assert seen("processes") in said(facts)


def test_driver_model_of_windows(nvml_environ: Environ, machine: Machines) -> None:
    facts = probe_nvml(machine(environ=nvml_environ("rtx3060", "driver_model=1,1")), 5.0)
    assert of_type(facts, "driver")[0]["model"] == "TCC"


@pytest.mark.parametrize(
    ("mask", "names"),
    [
        ("0x0", []),
        ("0x4", ["SW Power Cap"]),
        ("0x48", ["HW Slowdown", "HW Thermal Slowdown"]),
        ("0x88", ["HW Slowdown", "HW Power Brake Slowdown"]),
        ("0x132", ["Applications Clocks Setting", "Sync Boost", "SW Thermal Slowdown", "Display Clock Setting"]),
    ],
)
def test_what_holds_the_clocks_back(nvml_environ: Environ, machine: Machines, mask: str, names: list[str]) -> None:
    facts = probe_nvml(machine(environ=nvml_environ("rtx3060", f"throttle={mask}")), 5.0)
    assert [(reason["name"], reason["active"]) for reason in of_type(facts, "throttle_reason")] == [
        (name, True) for name in names
    ]


def test_state_of_fabric_rows_and_modes(nvml_environ: Environ, machine: Machines) -> None:
    lines = (
        "0.fabric=2,0",
        "1.fabric=3,27",
        "0.remapped=2 1 1 0",
        "1.remapped=0 4 0 1",
        "0.compute_mode=3",
        "2.fabric=0,0",
    )
    gpus = of_type(probe_nvml(machine(environ=nvml_environ("eight_h100", *lines)), 5.0), "gpu")
    assert [(gpu.get("fabric"), gpu.get("fabric_code")) for gpu in gpus[:3]] == [
        ("in_progress", 0), ("completed", 27), (None, None)
    ]  # fmt: skip
    assert [(gpu["remapped_rows"], gpu["remap_pending"], gpu["remap_failed"]) for gpu in gpus[:2]] == [
        (3, True, False), (4, False, True)
    ]  # fmt: skip
    assert gpus[0]["compute_mode"] == "exclusive_process"


def test_driver_without_gpus(nvml_environ: Environ, machine: Machines, said: Said) -> None:
    facts = probe_nvml(machine(environ=nvml_environ("none")), 5.0)
    assert said(facts) == [
        STATE_OK,
        NVML_SEEN,
        ("driver", {"vendor": "nvidia", "version": "535.261.03", "cuda_max": "12.2", "cuda_level": 12020}),
        ("driver_part", {"part": "userspace", "version": "535.261.03"}),
        seen("driver"),
        seen("gpus"),
    ]


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (4, "NO_PERMISSION"),
        (9, "DRIVER_NOT_LOADED"),
        (12, "LIBRARY_NOT_FOUND"),
        (15, "GPU_IS_LOST"),
        (17, "OPERATING_SYSTEM"),
        (18, "LIB_RM_VERSION_MISMATCH"),
        (999, "UNKNOWN"),
    ],
)
def test_initialisation_fails(nvml_environ: Environ, machine: Machines, said: Said, code: int, name: str) -> None:
    facts = probe_nvml(machine(environ=nvml_environ("rtx3060", f"fail.nvmlInit={code}")), 5.0)
    state = ("nvml", {"state": "failed", "code": code, "name": f"NVML_ERROR_{name}"})
    # The library tells its own version even then, which is half of a mismatch.
    library = [("driver_part", {"part": "userspace", "version": "550.163.01"})] if code != 12 else []
    assert said(facts) == [state, NVML_SEEN, *library]


def test_code_without_a_name(nvml_environ: Environ, machine: Machines) -> None:
    facts = probe_nvml(machine(environ=nvml_environ("rtx3060", "fail.nvmlInit=777")), 5.0)
    assert of_type(facts, "nvml") == [{"state": "failed", "code": 777}]


def test_no_library(machine: Machines, said: Said, tmp_path: Path) -> None:
    facts = probe_nvml(machine(environ={"LD_LIBRARY_PATH": os.fspath(tmp_path)}), 5.0)
    missing = ("nvml", {"state": "missing", "code": 12, "name": "NVML_ERROR_LIBRARY_NOT_FOUND"})
    if of_type(facts, "nvml")[0]["state"] == "ok":
        pytest.skip("this machine has an NVIDIA driver")
    assert said(facts) == [missing, NVML_SEEN, seen("driver")]


def test_hang_in_initialisation(nvml_environ: Environ, machine: Machines, said: Said) -> None:
    begin = time.monotonic()
    facts = probe_nvml(machine(environ=nvml_environ("rtx3060", "hang.nvmlInit=1")), 0.5)
    assert said(facts) == [("nvml", {"state": "timeout"}), NVML_SEEN]
    assert time.monotonic() - begin < 2.0


def test_crash_in_initialisation(nvml_environ: Environ, machine: Machines, said: Said) -> None:
    facts = probe_nvml(machine(environ=nvml_environ("rtx3060", "crash.nvmlInit=1")), 5.0)
    assert said(facts) == [("nvml", {"state": "crashed"}), NVML_SEEN]


def test_hang_later_keeps_what_was_read(nvml_environ: Environ, machine: Machines) -> None:
    environ = nvml_environ("two4090", "hang.nvmlDeviceGetName.0=1")
    facts = probe_nvml(machine(environ=environ), 2.0)
    assert of_type(facts, "nvml") == [dict(STATE_OK[1])]
    assert of_type(facts, "probe_failure") == [
        {"probe": "nvml", "reason": "timeout", "detail": "nvmlDeviceGetName on GPU 0"}
    ]
    assert of_type(facts, "nvml_call_error") == [
        {"function": "nvmlDeviceGetName", "gpu": 0, "state": "timeout", "group": "identity"}
    ]
    # The GPU that does not answer hides no other.
    assert [gpu.get("name") for gpu in of_type(facts, "gpu")] == [None, "NVIDIA GeForce RTX 4090"]
    assert seen("gpus", complete=False) in [(fact.type, dict(fact.fields)) for fact in facts]


def test_crash_later_keeps_what_was_read(nvml_environ: Environ, machine: Machines) -> None:
    facts = probe_nvml(machine(environ=nvml_environ("rtx3060", "crash.nvmlDeviceGetMemoryInfo=1")), 5.0)
    assert of_type(facts, "probe_failure") == [
        {"probe": "nvml", "reason": "crashed", "detail": "nvmlDeviceGetMemoryInfo on GPU 0"}
    ]
    gpu = of_type(facts, "gpu")[0]
    assert (gpu["sm"], gpu.get("vram_mib"), gpu["power_limit_w"]) == (86, None, 170)


def test_lost_gpu_is_one_failed_call(nvml_environ: Environ, machine: Machines, said: Said) -> None:
    facts = probe_nvml(machine(environ=nvml_environ("two4090", "fail.nvmlDeviceGetHandleByIndex.1=15")), 5.0)
    assert [gpu["index"] for gpu in of_type(facts, "gpu")] == [0]
    failed = {"function": "nvmlDeviceGetHandleByIndex", "gpu": 1, "code": 15, "name": "NVML_ERROR_GPU_IS_LOST"}
    assert of_type(facts, "nvml_call_error") == [{**failed, "state": "failed", "group": "handle"}]
    assert seen("gpus", complete=False) in said(facts)


def test_gpu_lost_between_calls(nvml_environ: Environ, machine: Machines) -> None:
    facts = probe_nvml(machine(environ=nvml_environ("rtx3060", "fail.nvmlDeviceGetUUID=15")), 5.0)
    assert of_type(facts, "gpu") == [{"index": 0, "vendor": "nvidia", "name": "NVIDIA GeForce RTX 3060"}]
    assert of_type(facts, "nvml_call_error") == [
        {
            "function": "nvmlDeviceGetUUID",
            "gpu": 0,
            "code": 15,
            "name": "NVML_ERROR_GPU_IS_LOST",
            "state": "failed",
            "group": "identity",
        }
    ]


@pytest.mark.parametrize(("code", "errors"), [(3, 0), (13, 0), (4, 1), (14, 1), (999, 1)])
def test_failed_call_is_told_unless_not_supported(
    nvml_environ: Environ, machine: Machines, code: int, errors: int
) -> None:
    facts = probe_nvml(machine(environ=nvml_environ("rtx3060", f"fail.nvmlDeviceGetTemperature={code}")), 5.0)
    assert "temperature_c" not in of_type(facts, "gpu")[0]
    assert len(of_type(facts, "nvml_call_error")) == errors
    assert seen("gpus") in [(fact.type, dict(fact.fields)) for fact in facts]


def test_old_driver_lacks_newer_calls(nvml_environ: Environ, old_nvml_folder: Path, machine: Machines) -> None:
    facts = probe_nvml(machine(environ=nvml_environ("rtx3060", folder=old_nvml_folder)), 5.0)
    assert (of_type(facts, "gpu")[0]["vram_mib"], of_type(facts, "gpu")[0]["vram_used_mib"]) == (12288, 431)
    assert [reason["name"] for reason in of_type(facts, "throttle_reason")] == ["Idle"]
    assert [process["pid"] for process in of_type(facts, "process")] == [1520, 1702]
    assert of_type(facts, "nvml_call_error") == []


def test_another_module_of_that_name(machine: Machines, tmp_path: Path) -> None:
    (tmp_path / "pynvml.py").write_text("answer = 42\n")
    with pytest.raises(ProbeError) as caught:
        probe_nvml(machine(environ={"PYTHONPATH": os.fspath(tmp_path)}), 5.0)
    assert caught.value.reason == "missing"
    assert caught.value.detail.startswith(f"no usable module pynvml: {tmp_path}")


def test_collect_turns_to_nvidia_smi(nvml_environ: Environ, program: Callable[[str, str], Path]) -> None:
    message = "Failed to initialize NVML: Driver/library version mismatch"
    folder = program("nvidia-smi", f"echo '{message}'; exit 18")
    environ = nvml_environ("rtx3060", "fail.nvmlInit=18") | {"PATH": f"{folder}:/usr/bin:/bin"}
    facts = collect(environ=environ)
    assert of_type(facts, "nvml") == [{"state": "failed", "code": 18, "name": "NVML_ERROR_LIB_RM_VERSION_MISMATCH"}]
    (smi,) = of_type(facts, "nvidia_smi")
    assert (smi["state"], smi["return_code"]) == ("failed", 18)
