"""The probes that need no driver, over folders that stand for machines."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from gpurules.facts import Fact, Scalar
from gpurules.probes.live.account import probe_account, probe_storage
from gpurules.probes.live.dkms import probe_dkms
from gpurules.probes.live.firmware import probe_firmware, probe_power_supplies
from gpurules.probes.live.kfd import probe_kfd
from gpurules.probes.live.services import probe_services
from gpurules.probes.live.source import Machine, ProbeError
from gpurules.probes.live.toolkits import probe_libraries, probe_toolkits
from gpurules.probes.live.wiring import probe_iommu, probe_network, probe_numa
from gpurules.probes.runner import Result

Build = Callable[..., Path]
Machines = Callable[..., Machine]
Said = Callable[[list[Fact]], list[tuple[str, dict[str, Scalar]]]]

BOOT_VARIABLE = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
KERNEL = "6.8.0-52-generic"
HOST = {"proc/sys/kernel/osrelease": f"{KERNEL}\n", f"lib/modules/{KERNEL}/modules.dep": ""}


def seen(domain: str, complete: bool = True) -> tuple[str, dict[str, Scalar]]:
    return ("coverage", {"domain": domain, "complete": complete})


def put(root: Path, name: str, data: bytes) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


class Printing:
    """A machine whose commands print given texts."""

    def __init__(self, results: Mapping[str, Result]) -> None:
        self._results = results

    def run(self, argv: Sequence[str], *, limit_s: float, max_bytes: int = 0) -> Result:
        return self._results.get(argv[0], Result("missing"))


def running(root: Path, **results: Result) -> Machine:
    return Machine(root=root, runner=Printing(results), environ={}, system="linux")


# --- firmware --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("byte", "on"), [(b"\x01", True), (b"\x00", False)])
def test_secure_boot(tmp_path: Path, machine: Machines, said: Said, byte: bytes, on: bool) -> None:
    put(tmp_path, BOOT_VARIABLE, b"\x06\0\0\0" + byte)
    assert said(probe_firmware(machine(tmp_path))) == [
        ("firmware", {"uefi": True, "secure_boot": on}),
        seen("firmware"),
    ]


def test_secure_boot_is_unknown(tmp_path: Path, machine: Machines, said: Said) -> None:
    assert probe_firmware(machine(tmp_path)) == []
    put(tmp_path, "sys/firmware/acpi/x", b"")
    assert said(probe_firmware(machine(tmp_path))) == [seen("firmware", complete=False)]
    put(tmp_path, BOOT_VARIABLE, b"\x06\0")
    assert said(probe_firmware(machine(tmp_path))) == [seen("firmware", complete=False)]


def supply(watts: int, traits: int) -> bytes:
    return bytes([39, 22, 0, 0, *[0] * 8]) + watts.to_bytes(2, "little") + traits.to_bytes(2, "little") + b"\xff" * 6


def test_power_supplies(tmp_path: Path, machine: Machines, said: Said) -> None:
    entries = "sys/firmware/dmi/entries"
    put(tmp_path, f"{entries}/1-0/raw", b"")
    put(tmp_path, f"{entries}/39-0/raw", supply(2000, 0b10))
    put(tmp_path, f"{entries}/39-1/raw", supply(0x8000, 0b00))
    assert said(probe_power_supplies(machine(tmp_path))) == [
        ("power_supply", {"index": 0, "max_w": 2000, "present": True}),
        ("power_supply", {"index": 1, "present": False}),
        seen("power_supplies"),
    ]
    assert probe_power_supplies(machine(tmp_path / "empty")) == []


# --- modules and services --------------------------------------------------------------------------------------------


def test_dkms_states(build: Build, machine: Machines, said: Said) -> None:
    tree = "var/lib/dkms/nvidia/570.133.07"
    root = build(
        HOST
        | {f"{tree}/6.8.0-51-generic/x86_64/module/nvidia.ko.zst": "", f"{tree}/source/dkms.conf": ""}
        | {"var/lib/dkms/zfs/2.2/6.8.0-51-generic/x86_64/module/zfs.ko": ""}
        | {"var/lib/dkms/nvidia/kernel-6.8.0-51-generic-x86_64": Path("570.133.07/6.8.0-51-generic/x86_64")}
    )
    module = {"name": "nvidia", "version": "570.133.07"}
    assert said(probe_dkms(machine(root))) == [
        ("dkms_module", {**module, "kernel": "6.8.0-51-generic", "state": "built", "for_running": False}),
        ("dkms_module", {**module, "kernel": KERNEL, "state": "added", "for_running": True}),
        seen("dkms"),
    ]
    put(root, f"{tree}/build/make.log", b"error")
    assert probe_dkms(machine(root))[1].get("state") == "failed"


def test_dkms_in_a_container_says_nothing_of_the_host(build: Build, machine: Machines, said: Said) -> None:
    root = build({"proc/sys/kernel/osrelease": f"{KERNEL}\n", "var/lib/dpkg/status": ""})
    assert said(probe_dkms(machine(root))) == [seen("dkms", complete=False)]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("nvidia.ko", b"license=Dual MIT/GPL\0code~Module signature appended~\n", {"flavour": "open", "signed": True}),
        ("nvidia.ko", b"\0license=NVIDIA\0code", {"flavour": "proprietary", "signed": False}),
        ("nvidia.ko.gz", gzip.compress(b"license=NVIDIA\0", mtime=0), {"flavour": "proprietary", "signed": False}),
        ("nvidia.ko.gz", b"no archive", {}),
        ("nvidia.ko.zst", b"license=NVIDIA\0", {}),
    ],
)
def test_module_file(build: Build, machine: Machines, name: str, data: bytes, expected: Mapping[str, Scalar]) -> None:
    root = build(HOST)
    put(root, f"lib/modules/{KERNEL}/updates/dkms/{name}", data)
    (fact,) = (f for f in probe_dkms(machine(root)) if f.type == "module_file")
    assert fact.fields == {"name": "nvidia", **expected}
    assert fact.provenance[0].reader == f"/lib/modules/{KERNEL}/updates/dkms/{name}"


SHOWN = """Id=nvidia-fabricmanager.service
LoadState=loaded
ActiveState=failed

Id=nvidia-persistenced.service
LoadState=not-found
ActiveState=inactive
"""


def test_services(build: Build, said: Said) -> None:
    root = build({"run/systemd/system/x": ""})
    assert said(probe_services(running(root, systemctl=Result("ok", SHOWN, "", 0)), 1.0)) == [
        ("service", {"name": "nvidia-fabricmanager", "state": "failed"}),
        ("service", {"name": "nvidia-persistenced", "state": "missing"}),
        seen("services"),
    ]
    with pytest.raises(ProbeError, match="systemctl"):
        probe_services(running(root, systemctl=Result("timeout")), 1.0)


def test_no_systemd_no_services(build: Build, said: Said) -> None:
    assert said(probe_services(running(build({"x": ""})), 1.0)) == [seen("services", complete=False)]


# --- toolkits and libraries ------------------------------------------------------------------------------------------


def test_several_toolkits(build: Build, said: Said) -> None:
    root = build(
        {
            "usr/local/cuda-12.4/version.json": '{"cuda": {"name": "CUDA SDK", "version": "12.4.131"}}',
            "usr/local/cuda-10.2/version.txt": "CUDA Version 10.2.89\n",
            "usr/local/cuda-11.8/version.json": "{broken",
            "usr/local/cuda": Path("/etc/alternatives/cuda"),
            "etc/alternatives/cuda": Path("/usr/local/cuda-12.4"),
        }
    )
    old = {"path": "/usr/local/cuda-10.2", "version": "10.2.89", "release": "10.2", "default": False}
    new = {"path": "/usr/local/cuda-12.4", "version": "12.4.131", "release": "12.4", "default": True}
    assert said(probe_toolkits(running(root, gcc=Result("ok", "13.3.0\n", "", 0)), 1.0)) == [
        ("cuda_toolkit", old),
        ("cuda_toolkit", new),
        seen("toolkit", complete=False),
        ("compiler", {"name": "gcc", "version": "13.3.0"}),
    ]


def test_a_toolkit_without_a_version_in_its_name(build: Build) -> None:
    root = build({"opt/cuda/version.txt": "CUDA Version 13.0.1\n"})
    (fact,) = probe_toolkits(running(root), 1.0)
    assert (fact.get("path"), fact.get("release"), fact.get("default")) == ("/opt/cuda", "13.0", True)


def test_cuda_libraries_in_the_search_path(build: Build, machine: Machines, said: Said) -> None:
    folder = "usr/local/cuda/lib64"
    names = ("libcudart.so", "libcudart.so.12", "libnvJitLink.so.12", "libcuda.so.1", "libz.so.1")
    root = build({f"{folder}/{name}": "" for name in names})
    environ = {"LD_LIBRARY_PATH": "relative::/nowhere:/usr/local/cuda/lib64/"}
    place = {"position": 1, "role": "search_path"}
    assert said(probe_libraries(machine(root, environ))) == [
        ("library_file", {"name": "libcudart", "path": f"/{folder}/libcudart.so", **place}),
        ("library_file", {"name": "libnvJitLink", "path": f"/{folder}/libnvJitLink.so.12", **place}),
        seen("libraries"),
    ]


def test_libcuda_of_linux_inside_wsl(build: Build, machine: Machines, said: Said) -> None:
    wsl = {"proc/sys/kernel/osrelease": "5.15.167.4-microsoft-standard-WSL2"}
    root = build(
        wsl
        | {"usr/lib/x86_64-linux-gnu/libcuda.so.1": Path("libcuda.so.570.133.07")}
        | {"usr/lib64/libcuda.so.1": Path("/usr/lib/wsl/lib/libcuda.so.1")}
    )
    path = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"
    shadow = ("library_file", {"name": "libcuda", "path": path, "role": "shadows_wsl"})
    assert said(probe_libraries(machine(root))) == [shadow, seen("libraries")]


# --- account and storage ---------------------------------------------------------------------------------------------

LIMITS = (
    "Limit                     Soft Limit           Hard Limit\n"
    "Max open files            1024                 1048576              files\n"
    "Max locked memory         {} 8388608 bytes\n"
)


@pytest.mark.parametrize(
    ("soft", "limit"),
    [("8388608", {"soft_kib": 8192, "unlimited": False}), ("unlimited", {"unlimited": True})],
)
def test_groups_and_limits(build: Build, machine: Machines, said: Said, soft: str, limit: Mapping[str, Scalar]) -> None:
    root = build(
        {
            "proc/self/status": "Name:\tx\nGid:\t1000\t44\t44\t44\nGroups:\t4 27 1000 \n",
            "etc/group": "root:x:0:\nvideo:x:44:someone\nrender:x:993:\n",
            "proc/self/limits": LIMITS.format(soft),
        }
    )
    assert said(probe_account(machine(root))) == [
        ("user_group", {"name": "render", "exists": True, "member": False}),
        ("user_group", {"name": "video", "exists": True, "member": True}),
        seen("groups"),
        ("limit", {"name": "memlock", **limit}),
        ("limit", {"name": "nofile", "soft": 1024, "unlimited": False}),
        seen("limits"),
    ]


MOUNTS = """22 1 259:2 / / rw - ext4 /dev/nvme0n1p2 rw
30 22 0:40 / /home/me/my\\040data rw - nfs4 server:/x rw
31 22 0:41 / /dev/shm rw - tmpfs tmpfs rw
32 22 8:17 / /mnt/big rw - xfs /dev/sdb1 rw
33 22 0:50 / /mnt/odd rw - fuse.x x rw
"""


@pytest.mark.parametrize(
    ("folder", "expected"),
    [
        ("/home/me", {"filesystem": "ext4", "medium": "nvme"}),
        ("/home/me/my data/set", {"filesystem": "nfs4", "medium": "network"}),
        ("/home/me/my data2", {"filesystem": "ext4", "medium": "nvme"}),
        ("/dev/shm", {"filesystem": "tmpfs", "medium": "memory"}),
        ("/mnt/big/x", {"filesystem": "xfs", "medium": "disk"}),
        ("/mnt/odd", {"filesystem": "fuse.x"}),
    ],
)
def test_storage_of_the_folder(
    build: Build, machine: Machines, said: Said, folder: str, expected: Mapping[str, Scalar]
) -> None:
    root = build(
        {
            "proc/self/mountinfo": MOUNTS,
            "sys/devices/nvme/nvme0n1/queue/rotational": "0\n",
            "sys/devices/nvme/nvme0n1/nvme0n1p2/dev": "259:2",
            "sys/devices/ata/sdb/queue/rotational": "1\n",
            "sys/devices/ata/sdb/sdb1/dev": "8:17",
            "sys/dev/block/259:2": Path("../../devices/nvme/nvme0n1/nvme0n1p2"),
            "sys/dev/block/8:17": Path("../../devices/ata/sdb/sdb1"),
        }
    )
    assert said(probe_storage(machine(root, {"PWD": folder}))) == [("storage", dict(expected)), seen("storage")]


# --- wiring ----------------------------------------------------------------------------------------------------------


def config(control: int | None, size: int = 4096) -> bytes:
    """The configuration space of a bridge: an empty first capability, then ACS."""
    space = bytearray(size)
    if size == 4096:
        space[0x100:0x104] = (0x1 | 0x148 << 20).to_bytes(4, "little")
        if control is not None:
            space[0x148:0x14C] = (0xD).to_bytes(4, "little")
            space[0x14E:0x150] = control.to_bytes(2, "little")
    return bytes(space)


def test_acs_of_bridges(tmp_path: Path, machine: Machines, said: Said) -> None:
    for number, space in enumerate([config(0x1D), config(0x01), config(None), config(None, 256)]):
        put(tmp_path, f"sys/bus/pci/devices/0000:00:0{number}.0/class", b"0x060400\n")
        put(tmp_path, f"sys/bus/pci/devices/0000:00:0{number}.0/config", space)
    put(tmp_path, "sys/kernel/iommu_groups/0/type", b"identity\n")
    put(tmp_path, "sys/kernel/iommu_groups/1/type", b"identity\n")
    assert said(probe_iommu(machine(tmp_path))) == [
        ("iommu", {"groups": 2, "active": True, "passthrough": True}),
        seen("iommu"),
        ("acs", {"bridges": 4, "redirecting": 1}),
        seen("acs"),
    ]
    # What another account than root is given.
    put(tmp_path, "sys/bus/pci/devices/0000:00:00.0/config", config(None, 64))
    assert said(probe_iommu(machine(tmp_path)))[2:] == [seen("acs", complete=False)]


def test_network_and_rdma(build: Build, machine: Machines, said: Said) -> None:
    net, port = "sys/class/net", "sys/class/infiniband/mlx5_0/ports/1"
    root = build(
        {
            f"{net}/lo/type": "772\n",
            f"{net}/lo/operstate": "unknown\n",
            f"{net}/eth0/type": "1\n",
            f"{net}/eth0/device/vendor": "0x8086",
            f"{net}/eth0/operstate": "up\n",
            f"{net}/eth0/speed": "25000\n",
            f"{net}/eth0/address": "aa:bb:cc:dd:ee:ff\n",
            f"{net}/docker0/type": "1\n",
            f"{net}/docker0/operstate": "down\n",
            f"{net}/docker0/speed": "-1\n",
            f"{net}/bonding_masters": "",
            f"{port}/link_layer": "InfiniBand\n",
            f"{port}/state": "4: ACTIVE\n",
            f"{port}/rate": "400 Gb/sec (4X NDR)\n",
        }
    )
    ib = {"device": "mlx5_0", "port": 1, "link_layer": "infiniband", "active": True, "rate_gbps": 400}
    facts = probe_network(machine(root))
    assert said(facts) == [
        ("net_interface", {"name": "docker0", "kind": "virtual", "up": False}),
        ("net_interface", {"name": "eth0", "kind": "ethernet", "up": True, "speed_mbps": 25000}),
        ("net_interface", {"name": "lo", "kind": "loopback"}),
        seen("network"),
        ("rdma_port", ib),
        seen("rdma"),
    ]
    assert "aa:bb" not in repr(facts)


def test_numa(build: Build, machine: Machines, said: Said) -> None:
    root = build({f"sys/devices/system/node/{name}/x": "" for name in ("node0", "node1", "power")})
    assert said(probe_numa(machine(root))) == [("numa", {"nodes": 2}), seen("numa")]


@pytest.mark.parametrize(("processors", "bound"), [("0-3", {"bound": 0}), ("5", {"bound": 1}), ("2-5", {})])
def test_the_node_that_a_process_is_confined_to(
    build: Build, machine: Machines, said: Said, processors: str, bound: Mapping[str, Scalar]
) -> None:
    nodes = "sys/devices/system/node"
    root = build(
        {
            f"{nodes}/node0/cpulist": "0-3\n",
            f"{nodes}/node1/cpulist": "4-7\n",
            f"{nodes}/node0/meminfo": "Node 0 MemTotal:       65780000 kB\n",
            f"{nodes}/node1/meminfo": "Node 1 MemTotal:       0 kB\n",
            "proc/self/status": f"Name:\tx\nCpus_allowed_list:\t{processors}\n",
        }
    )
    assert said(probe_numa(machine(root))) == [("numa", {"nodes": 2, "empty": 1, **bound}), seen("numa")]


def test_kfd_nodes(build: Build, machine: Machines, said: Said) -> None:
    nodes = "sys/class/kfd/kfd/topology/nodes"
    gpu = "cpu_cores_count 0\nsimd_count 1216\ngfx_target_version {}\nvendor_id 4098\ndevice_id 29857\nlocation_id {}\n"
    root = build(
        {
            f"{nodes}/0/properties": "cpu_cores_count 64\nsimd_count 0\n",
            f"{nodes}/1/properties": gpu.format(90402, 0xC100) + "domain 1\n",
            f"{nodes}/10/properties": gpu.format(100306, 0x0328),
            f"{nodes}/2/properties": gpu.format(90010, 0x0400),
        }
    )
    device = {"device_id": "1002:74a1"}
    assert said(probe_kfd(machine(root))) == [
        ("kfd_node", {"node": 1, "gfx": "gfx942", "bus_id": "0001:c1:00.0", **device}),
        ("kfd_node", {"node": 2, "gfx": "gfx90a", "bus_id": "0000:04:00.0", **device}),
        ("kfd_node", {"node": 10, "gfx": "gfx1036", "bus_id": "0000:03:05.0", **device}),
        seen("kfd"),
    ]
    assert probe_kfd(machine(root / "dev")) == []
