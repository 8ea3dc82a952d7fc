"""Live probe of AMD's compute nodes through the topology of the kernel driver: works without ROCm.

May live here: /sys/class/kfd. Must not: names of products, which targets a build has code for.
"""

from __future__ import annotations

import os

from ...facts import Fact
from .source import Machine, Stating, number

_KFD = Stating("kfd")
_NODES = "/sys/class/kfd/kfd/topology/nodes"


def probe_kfd(machine: Machine) -> list[Fact]:
    """The GPU nodes with their compute target."""
    try:
        names = sorted(os.listdir(machine.path(_NODES)), key=lambda name: number(name) or 0)
    except OSError:
        return []
    nodes = [(name, _properties(machine, name)) for name in names]
    facts = [_node(name, values) for name, values in nodes if values and values.get("simd_count", 0) > 0]
    return [*facts, _KFD.coverage("kfd", _NODES, complete=all(values for _, values in nodes))]


def _properties(machine: Machine, name: str) -> dict[str, int]:
    pairs = (line.split() for line in (machine.text(f"{_NODES}/{name}/properties") or "").splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and number(pair[1]) is not None}


def _node(name: str, values: dict[str, int]) -> Fact:
    version, place = values.get("gfx_target_version", 0), values.get("location_id")
    # 90402 is 9.4.2: a decimal major, then two hexadecimal digits of the name.
    gfx = f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}" if version else None
    bus_id = None
    if place is not None:
        bus_id = f"{values.get('domain', 0):04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7:x}"
    device = f"{values.get('vendor_id', 0):04x}:{values['device_id']:04x}" if values.get("device_id") else None
    return _KFD.fact("kfd_node", f"{_NODES}/{name}", node=number(name), gfx=gfx, bus_id=bus_id, device_id=device)
