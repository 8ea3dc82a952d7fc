"""Live probes of what joins GPUs and machines: IOMMU and ACS, network and RDMA devices, NUMA nodes.

May live here: sysfs of PCI bridges, IOMMU, network and InfiniBand. Must not: addresses of any kind, advice.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ...facts import Fact
from .host import allowed, allowed_processors
from .source import Machine, Stating, number, read_text

_WIRING = Stating("wiring")
_PCI = "/sys/bus/pci/devices"
_IOMMU = "/sys/kernel/iommu_groups"
_NET = "/sys/class/net"
_RDMA = "/sys/class/infiniband"
_NODES = "/sys/devices/system/node"
_ACS_CAPABILITY = 0x000D
_FIRST_EXTENDED = 0x100
_CONFIG_SIZE = 0x1000
# P2P request redirect, P2P completion redirect and upstream forwarding in the ACS control register.
_REDIRECTS = 0b0001_1100
_TOTAL = re.compile(r"MemTotal: +([0-9]+) kB")
_ETHERNET, _INFINIBAND, _LOOPBACK = "1", "32", "772"


def probe_iommu(machine: Machine) -> list[Fact]:
    """The IOMMU, and how many PCI bridges redirect transfers between devices (ACS); that needs root."""
    facts: list[Fact] = []
    if machine.path("/sys/kernel").is_dir():
        groups = _listed(machine.path(_IOMMU))
        kinds = {machine.text(f"{_IOMMU}/{group}/type") for group in groups} - {None}
        passing = kinds == {"identity"} if kinds else None
        facts.append(_WIRING.fact("iommu", _IOMMU, groups=len(groups), active=bool(groups), passthrough=passing))
        facts.append(_WIRING.coverage("iommu", _IOMMU))
    bridges = [_control(machine.path(f"{_PCI}/{name}")) for name in _listed(machine.path(_PCI))
               if (machine.text(f"{_PCI}/{name}/class") or "").startswith("0x0604")]  # fmt: skip
    read = [control for control in bridges if control is not None]
    if bridges and len(read) == len(bridges):
        redirecting = sum(bool(control & _REDIRECTS) for control in read)
        facts.append(_WIRING.fact("acs", _PCI, bridges=len(read), redirecting=redirecting))
    if bridges:
        facts.append(_WIRING.coverage("acs", _PCI, complete=len(read) == len(bridges)))
    return facts


def probe_network(machine: Machine) -> list[Fact]:
    """The network interfaces and RDMA devices: names, kind and state, no addresses."""
    facts = []
    if machine.path(_NET).is_dir():
        facts += [_interface(machine, name) for name in _listed(machine.path(_NET)) if _is_interface(machine, name)]
        facts.append(_WIRING.coverage("network", _NET))
        for name in _listed(machine.path(_RDMA)):
            facts += [_port(machine, name, port) for port in _listed(machine.path(f"{_RDMA}/{name}/ports"))]
        facts.append(_WIRING.coverage("rdma", _RDMA))
    return facts


def probe_numa(machine: Machine) -> list[Fact]:
    """How many NUMA nodes the machine has, which have no memory, and whether this process is confined to one."""
    nodes = [name for name in _listed(machine.path(_NODES)) if name[:4] == "node" and number(name[4:]) is not None]
    if not nodes:
        return []
    memory = [found[1] for name in nodes if (found := _TOTAL.search(machine.text(f"{_NODES}/{name}/meminfo") or ""))]
    mine = allowed_processors(machine)
    own = [name for name in nodes if mine & allowed(machine.text(f"{_NODES}/{name}/cpulist"))]
    fact = _WIRING.fact(
        "numa", _NODES, nodes=len(nodes),
        empty=sum(total == "0" for total in memory) if len(memory) == len(nodes) else None,
        bound=number(own[0][4:]) if len(own) == 1 and len(nodes) > 1 else None,
    )  # fmt: skip
    return [fact, _WIRING.coverage("numa", _NODES)]


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _control(folder: Path) -> int | None:
    """The ACS control register of a bridge, 0 where it has none; None where the register cannot be read."""
    try:
        config = (folder / "config").read_bytes()
    except OSError:
        return None
    if len(config) < _CONFIG_SIZE:
        # Others than root are given 64 bytes; a conventional bridge has 256 and no ACS.
        return 0 if len(config) == _FIRST_EXTENDED else None
    place, seen = _FIRST_EXTENDED, set[int]()
    while _FIRST_EXTENDED <= place <= _CONFIG_SIZE - 8 and place not in seen:
        seen.add(place)
        header = int.from_bytes(config[place : place + 4], "little")
        if header & 0xFFFF == _ACS_CAPABILITY:
            return int.from_bytes(config[place + 6 : place + 8], "little")
        place = header >> 20
    return 0


def _is_interface(machine: Machine, name: str) -> bool:
    return machine.path(f"{_NET}/{name}/type").is_file()


def _interface(machine: Machine, name: str) -> Fact:
    place = f"{_NET}/{name}"
    type_ = machine.text(f"{place}/type")
    physical = machine.path(f"{place}/device").exists()
    if type_ == _LOOPBACK:
        kind = "loopback"
    elif type_ == _INFINIBAND:
        kind = "infiniband"
    elif machine.path(f"{place}/wireless").exists():
        kind = "wireless"
    else:
        kind = "ethernet" if type_ == _ETHERNET and physical else "virtual"
    speed = number(read_text(machine.path(f"{place}/speed")))
    state = machine.text(f"{place}/operstate")
    up = None if state in (None, "unknown") else state == "up"
    return _WIRING.fact("net_interface", place, name=name, kind_=kind, up=up, speed_mbps=speed or None)


def _port(machine: Machine, name: str, port: str) -> Fact:
    place = f"{_RDMA}/{name}/ports/{port}"
    layer = machine.text(f"{place}/link_layer")
    state = machine.text(f"{place}/state") or ""
    rate = (machine.text(f"{place}/rate") or "").split()
    return _WIRING.fact(
        "rdma_port", place, device=name, port=number(port),
        link_layer={"InfiniBand": "infiniband", "Ethernet": "ethernet"}.get(layer or ""),
        active=state.endswith("ACTIVE") if state else None, rate_gbps=number(rate[0]) if rate else None,
    )  # fmt: skip
