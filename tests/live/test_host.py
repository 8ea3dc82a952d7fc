"""The probes of the host, over folders that stand for machines."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from gpurules.facts import Fact, Scalar
from gpurules.probes.live.environment import probe_environment
from gpurules.probes.live.host import probe_container, probe_hardware, probe_os
from gpurules.probes.live.modules import probe_device_nodes, probe_modules
from gpurules.probes.live.pci import probe_pci
from gpurules.probes.live.source import Machine, ProbeError

Build = Callable[..., Path]
Machines = Callable[..., Machine]
Said = Callable[[list[Fact]], list[tuple[str, dict[str, Scalar]]]]

UBUNTU = 'PRETTY_NAME="Ubuntu 24.04.1 LTS"\nNAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu\nID_LIKE=debian\n'


def seen(domain: str, complete: bool = True) -> tuple[str, dict[str, Scalar]]:
    return ("coverage", {"domain": domain, "complete": complete})


# --- operating system ------------------------------------------------------------------------------------------------


def test_linux(build: Build, machine: Machines, said: Said) -> None:
    root = build(
        {
            "etc/os-release": UBUNTU,
            "proc/sys/kernel/osrelease": "6.8.0-51-generic\n",
            "proc/sys/kernel/arch": "x86_64\n",
        }
    )
    assert said(probe_os(machine(root))) == [
        (
            "os",
            {
                "family": "linux",
                "name": "Ubuntu 24.04.1 LTS (x86_64)",
                "machine": "x86_64",
                "distro": "ubuntu",
                "distro_version": "24.04",
                "wsl": False,
                "jetson": False,
            },
        ),
        ("kernel", {"release": "6.8.0-51-generic", "version": "6.8.0"}),
        seen("os"),
    ]


@pytest.mark.parametrize(
    ("release", "files", "wsl"),
    [
        ("5.15.167.4-microsoft-standard-WSL2", {"dev/dxg": ""}, {"version": 2, "kernel": "5.15.167.4", "dxg": True}),
        ("5.10.16.3-microsoft-standard-WSL2", {}, {"version": 2, "kernel": "5.10.16.3", "dxg": False}),
        ("4.4.0-19041-Microsoft", {}, {"version": 1, "kernel": "4.4.0", "dxg": False}),
        ("6.6.1-own", {"dev/dxg": "", "run/WSL/1_interop": ""}, {"version": 2, "kernel": "6.6.1", "dxg": True}),
    ],
)
def test_wsl(build: Build, machine: Machines, release: str, files: dict[str, str], wsl: Mapping[str, Scalar]) -> None:
    facts = probe_os(machine(build({"proc/sys/kernel/osrelease": release, **files})))
    assert [fact.get("wsl") for fact in facts if fact.type == "os"] == [True]
    assert [dict(fact.fields) for fact in facts if fact.type == "wsl"] == [wsl]


@pytest.mark.parametrize(
    "files",
    [
        {"proc/sys/kernel/osrelease": "5.15.148-tegra"},
        {"proc/sys/kernel/osrelease": "6.8.12", "etc/nv_tegra_release": "# R38 (release)"},
    ],
)
def test_jetson(build: Build, machine: Machines, files: dict[str, str]) -> None:
    assert probe_os(machine(build(files)))[0].get("jetson") is True


def test_musl_and_link_to_usr_lib(build: Build, machine: Machines) -> None:
    root = build(
        {
            "usr/lib/os-release": "ID=alpine\nVERSION_ID=3.21.0\n",
            "etc/os-release": Path("../usr/lib/os-release"),
            "lib/ld-musl-aarch64.so.1": "",
        }
    )
    facts = probe_os(machine(root))
    assert facts[0].fields == {
        "family": "linux", "distro": "alpine", "distro_version": "3.21.0", "wsl": False, "jetson": False,
    }  # fmt: skip
    assert [dict(fact.fields) for fact in facts if fact.type == "libc"] == [{"text": "musl"}]


def test_nothing_to_read(build: Build, machine: Machines) -> None:
    root = build({"empty": ""})
    for probe in (probe_os, probe_hardware, probe_container, probe_pci, probe_modules, probe_device_nodes):
        with pytest.raises(ProbeError) as caught:
            probe(machine(root))
        assert caught.value.reason == "missing"


# --- processor and memory --------------------------------------------------------------------------------------------


def test_processor_and_memory(build: Build, machine: Machines, said: Said) -> None:
    core = "processor\t: {}\nmodel name\t: AMD Ryzen 9 7950X\nphysical id\t: 0\ncore id\t\t: {}\n\n"
    root = build(
        {
            "proc/cpuinfo": "".join(core.format(thread, thread % 2) for thread in range(4)),
            "proc/meminfo": "MemTotal: 65536000 kB\nMemFree: 1 kB\nMemAvailable: 32768000 kB\nHugePages_Total: 0\n",
            "proc/mounts": "proc /proc proc rw 0 0\nshm /dev/shm tmpfs rw,nosuid,size=65536k,inode64 0 0\n",
        }
    )
    assert said(probe_hardware(machine(root))) == [
        ("cpu", {"name": "AMD Ryzen 9 7950X", "cores": 2, "threads": 4}),
        seen("cpu"),
        ("memory", {"total_mib": 64000, "available_mib": 32000, "shm_mib": 64}),
        seen("memory"),
    ]


@pytest.mark.parametrize(
    ("files", "usable"),
    [
        ({"proc/self/status": "Cpus_allowed_list:\t0-3,6\n"}, 5),
        ({"proc/self/status": "Cpus_allowed_list:\t0-7\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 8),
        ({"proc/self/status": "Cpus_allowed_list:\t0-7\n", "sys/fs/cgroup/cpu.max": "250000 100000\n"}, 2),
        ({"sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "400000\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, 4),
        ({"sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n", "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"proc/self/status": "Cpus_allowed_list:\tjunk,9-3,0-99999999\n"}, None),
    ],
)
def test_how_many_threads_may_be_used(
    build: Build, machine: Machines, said: Said, files: dict[str, str], usable: int | None
) -> None:
    root = build({"proc/cpuinfo": "processor\t: 0\n", **files})
    expected = {"threads": 1, **({"usable": usable} if usable else {})}
    assert said(probe_hardware(machine(root))) == [("cpu", expected), seen("cpu")]


def test_arm_processor_has_no_name(build: Build, machine: Machines, said: Said) -> None:
    root = build({"proc/cpuinfo": "processor\t: 0\nCPU part\t: 0xd4f\n\nprocessor\t: 1\n"})
    assert said(probe_hardware(machine(root))) == [("cpu", {"threads": 2}), seen("cpu")]


# --- container -------------------------------------------------------------------------------------------------------

HOST = {"proc/1/cgroup": "0::/init.scope\n", "proc/self/cgroup": "0::/user.slice/user-1000.slice/session-3.scope\n"}
OVERLAY = "731 659 0:57 / / rw,relatime - overlay overlay rw,upperdir={}\n"


@pytest.mark.parametrize(
    ("files", "environ", "runtime"),
    [
        ({".dockerenv": ""}, {}, "docker"),
        ({"run/.containerenv": 'engine="podman-5.2"'}, {}, "podman"),
        ({"proc/1/cgroup": "12:devices:/docker/0123456789abcdef0123\n"}, {}, "docker"),
        ({"proc/self/cgroup": "0::/system.slice/docker-0123456789abcdef.scope\n"}, {}, "docker"),
        ({"proc/1/cgroup": "5:cpu:/kubepods/besteffort/pod1/2\n", ".dockerenv": ""}, {}, "docker"),
        ({".dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({"proc/1/cgroup": "0::/lxc.payload.box/init.scope\n"}, {}, "lxc"),
        ({".singularity.d/runscript": ""}, {}, "apptainer"),
        ({}, {"APPTAINER_CONTAINER": "/x.sif"}, "apptainer"),
        ({"proc/self/mountinfo": OVERLAY.format("/var/lib/docker/overlay2/0a/diff")}, {}, "docker"),
        ({"run/systemd/container": "systemd-nspawn"}, {}, "systemd-nspawn"),
        ({}, {"container": "oci"}, None),
    ],
)
def test_container(
    build: Build, machine: Machines, files: dict[str, str], environ: dict[str, str], runtime: str | None
) -> None:
    facts = probe_container(machine(build(HOST | files), environ))
    expected: dict[str, Scalar] = {"present": True} | ({"runtime": runtime} if runtime else {})
    assert facts[0].fields == expected
    assert facts[1].fields == {"domain": "container", "complete": True}


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"proc/self/cgroup": "0::/system.slice/docker.service\n"},
        {"proc/self/mountinfo": OVERLAY.format("/cow/upper")},
        {"run/systemd/container": "wsl"},
    ],
)
def test_no_container(build: Build, machine: Machines, files: dict[str, str]) -> None:
    assert probe_container(machine(build(HOST | files)))[0].fields == {"present": False}


# --- PCI -------------------------------------------------------------------------------------------------------------


def pci(bus: str, class_code: str, vendor: str, device: str, driver: str = "", **more: str) -> dict[str, str | Path]:
    """The files of one function; Linux keeps the driver as a link."""
    folder = f"sys/bus/pci/devices/{bus}"
    values = {"class": f"0x{class_code}00", "vendor": f"0x{vendor}", "device": f"0x{device}", **more}
    files: dict[str, str | Path] = {f"{folder}/{name}": f"{value}\n" for name, value in values.items()}
    if driver:
        files[f"{folder}/driver"] = Path(f"../../../bus/pci/drivers/{driver}")
    return files


def test_pci_with_and_without_drivers(build: Build, machine: Machines, said: Said) -> None:
    link = {"max_link_speed": "16.0 GT/s PCIe", "max_link_width": "16"}
    link |= {"current_link_speed": "2.5 GT/s PCIe", "current_link_width": "8"}
    dark = {"max_link_speed": "Unknown", "max_link_width": "255"}
    root = build(
        pci("0000:00:00.0", "0600", "8086", "a700")
        | pci("0000:01:00.0", "0300", "10de", "2684", "nvidia", **link)
        | pci("0000:01:00.1", "0403", "10de", "22ba", "snd_hda_intel")
        | pci("0000:02:00.0", "0302", "10de", "1db6", **dark)
        | pci("0000:03:00.0", "0680", "10de", "22a3", "nvidia-nvswitch")
        | pci("0000:04:00.0", "1200", "1002", "74a1", "amdgpu")
        | pci("0000:05:00.0", "0207", "15b3", "1021", "mlx5_core")
    )
    nvidia = {"vendor": "nvidia"}
    vga = {"class": "VGA compatible controller", "class_code": "0300", "display": True, "device_id": "10de:2684"}
    vga |= {"link_cap": "Speed 16GT/s, Width x16", "link_now": "Speed 2.5GT/s, Width x8", "driver_in_use": "nvidia"}
    three_d = {"class": "3D controller", "class_code": "0302", "display": True, "device_id": "10de:1db6"}
    switch = {"class": "Bridge", "class_code": "0680", "display": False, "device_id": "10de:22a3"}
    instinct = {"class": "Processing accelerators", "class_code": "1200", "display": False, "device_id": "1002:74a1"}
    network = {"class": "Infiniband controller", "class_code": "0207", "display": False, "device_id": "15b3:1021"}
    assert said(probe_pci(machine(root))) == [
        ("pci_device", {"bus_id": "0000:01:00.0", **nvidia, **vga}),
        ("pci_device", {"bus_id": "0000:02:00.0", **nvidia, **three_d}),
        ("pci_device", {"bus_id": "0000:03:00.0", **nvidia, **switch, "driver_in_use": "nvidia-nvswitch"}),
        ("pci_device", {"bus_id": "0000:04:00.0", "vendor": "amd", **instinct, "driver_in_use": "amdgpu"}),
        ("pci_device", {"bus_id": "0000:05:00.0", "vendor": "mellanox", **network, "driver_in_use": "mlx5_core"}),
        seen("pci"),
    ]


def test_unreadable_function_leaves_coverage_open(build: Build, machine: Machines, said: Said) -> None:
    root = build({"sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n"})
    assert said(probe_pci(machine(root))) == [seen("pci", complete=False)]


def test_wsl_hides_pci(build: Build, machine: Machines, said: Said) -> None:
    root = build(
        {"proc/sys/kernel/osrelease": "5.15.1-microsoft-standard-WSL2"} | pci("0000:00:00.0", "0600", "8086", "1")
    )
    assert said(probe_pci(machine(root))) == [seen("pci", complete=False)]


def test_kernel_without_pci(build: Build, machine: Machines, said: Said) -> None:
    assert said(probe_pci(machine(build({"sys/bus/cpu/uevent": ""})))) == [seen("pci")]


# --- kernel modules --------------------------------------------------------------------------------------------------

PROPRIETARY = (
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.163.01  Tue Apr  8 12:41:17 UTC 2025\nGCC version: 12\n"
)
OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder@U22)\n"
KERNEL = {"proc/sys/kernel/osrelease": "6.8.0-51-generic\n"}
TREE = "lib/modules/6.8.0-51-generic"


@pytest.mark.parametrize(
    ("text", "running"), [(PROPRIETARY, ("550.163.01", "proprietary")), (OPEN, ("580.95.05", "open"))]
)
def test_loaded_driver(build: Build, machine: Machines, said: Said, text: str, running: tuple[str, str]) -> None:
    version, flavour = running
    loaded = "nvidia_uvm 4911104 2 - Live 0x0\nnvidia 54906880 40 nvidia_uvm, Live 0x0\nsnd 1 0 - Live 0x0\n"
    root = build(
        {
            "proc/modules": loaded,
            "proc/driver/nvidia/version": text,
            "sys/module/nvidia/version": version + "\n",
            f"{TREE}/updates/dkms/nvidia.ko.zst": "",
            **KERNEL,
        }
    )
    assert said(probe_modules(machine(root))) == [
        ("module", {"name": "nvidia_uvm", "loaded": True}),
        (
            "module",
            {"name": "nvidia", "loaded": True, "version": version, "flavour": flavour, "built_for_kernel": True},
        ),
        ("driver_part", {"part": "kernel_module", "version": version, "flavour": flavour}),
        seen("modules"),
    ]


@pytest.mark.parametrize(
    ("files", "built"),
    [
        ({f"{TREE}/modules.dep": "updates/dkms/nvidia-modeset.ko: updates/dkms/nvidia.ko\n"}, False),
        ({f"{TREE}/modules.dep": "extra/x.ko:\nupdates/dkms/nvidia.ko.xz: kernel/drivers/acpi/video.ko\n"}, True),
        ({f"{TREE}/kernel/nvidia-550/nvidia.ko": ""}, True),
        ({f"{TREE}/updates/dkms/nvidia-current.ko": ""}, True),
        ({f"{TREE}/kernel/drivers/platform/x86/nvidia-wmi-ec-backlight.ko": ""}, False),
        ({"lib/modules/6.8.0-40-generic/updates/dkms/nvidia.ko": ""}, None),
    ],
)
def test_module_files_of_the_running_kernel(
    build: Build, machine: Machines, files: dict[str, str], built: bool | None
) -> None:
    root = build({"proc/modules": "nouveau 2 0 - Live 0x0\n", **KERNEL, **files})
    facts = probe_modules(machine(root))
    assert facts[0].fields == {"name": "nouveau", "loaded": True}
    expected: dict[str, Scalar] = {"name": "nvidia", "loaded": False}
    assert facts[1].fields == (expected if built is None else expected | {"built_for_kernel": built})


def test_no_module_is_loaded(build: Build, machine: Machines, said: Said) -> None:
    root = build({"proc/modules": ""})
    assert said(probe_modules(machine(root))) == [("module", {"name": "nvidia", "loaded": False}), seen("modules")]


# --- device files ----------------------------------------------------------------------------------------------------


def test_device_files(build: Build, machine: Machines, said: Said) -> None:
    names = ("nvidia0", "nvidiactl", "nvidia-uvm", "dri/renderD128", "dri/card0", "null", "nvidia-caps/nvidia-cap1")
    root = build({f"dev/{name}": "" for name in names})
    present = {"present": True, "accessible": True}
    assert said(probe_device_nodes(machine(root))) == [
        ("device_node", {"path": "/dev/nvidia-uvm", **present}),
        ("device_node", {"path": "/dev/nvidia0", **present}),
        ("device_node", {"path": "/dev/nvidiactl", **present}),
        ("device_node", {"path": "/dev/dri/renderD128", **present}),
        ("device_node", {"path": "/dev/kfd", "present": False}),
        ("device_node", {"path": "/dev/dxg", "present": False}),
        seen("device_nodes"),
    ]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may open everything")
def test_device_file_of_another_group(build: Build, machine: Machines) -> None:
    root = build({"dev/kfd": ""})
    (root / "dev/kfd").chmod(0)
    assert probe_device_nodes(machine(root))[0].fields == {"path": "/dev/kfd", "present": True, "accessible": False}


# --- environment -----------------------------------------------------------------------------------------------------


def test_environment_is_an_allow_list(machine: Machines, said: Said) -> None:
    environ = {
        "CUDA_VISIBLE_DEVICES": "",
        "HF_TOKEN": "hf_private",
        "HOME": "/home/someone",
        "LD_LIBRARY_PATH": "/usr/local/cuda/lib64",
        "NCCL_P2P_DISABLE": "1",
        "PIP_INDEX_URL": "https://me:word@mirror.example.org/simple",
        "PYTORCH_API_KEY": "private",
        "VLLM_API_KEY": "private",
    }
    assert said(probe_environment(machine(environ=environ))) == [
        ("env_var", {"name": "CUDA_VISIBLE_DEVICES", "value": ""}),
        ("env_var", {"name": "LD_LIBRARY_PATH", "value": "/usr/local/cuda/lib64"}),
        ("env_var", {"name": "NCCL_P2P_DISABLE", "value": "1"}),
        ("env_var", {"name": "PIP_INDEX_URL", "value": "https://<credentials>@mirror.example.org/simple"}),
        seen("environment"),
    ]
