"""Live probe of PCI through sysfs: works with no driver at all.

May live here: display, network and NVIDIA functions of /sys/bus/pci. Must not: names of products (a catalog has them).
"""

from __future__ import annotations

import os
from pathlib import Path

from ...facts import Fact
from ..readers.common import PCI_VENDORS
from .host import is_wsl
from .source import Machine, ProbeError, Stating, number, read_text

_PCI = Stating("pci")
_DEVICES = "/sys/bus/pci/devices"
_VENDORS = {**PCI_VENDORS, "15b3": "mellanox"}
_DISPLAY = frozenset({"0300", "0302", "0380"})
# Display, network, processing accelerators; of NVIDIA also bridges (NVSwitch).
_BASE_CLASSES = frozenset({"02", "03", "12"})
_CLASSES = {
    "0200": "Ethernet controller",
    "0207": "Infiniband controller",
    "0280": "Network controller",
    "0300": "VGA compatible controller",
    "0302": "3D controller",
    "0380": "Display controller",
    "0604": "PCI bridge",
    "0680": "Bridge",
    "1200": "Processing accelerators",
}


def probe_pci(machine: Machine) -> list[Fact]:
    """The PCI functions that matter to a GPU machine."""
    folder = machine.path(_DEVICES)
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        if not machine.path("/sys/bus").is_dir():
            raise ProbeError("missing", _DEVICES) from None
        # A kernel without PCI has no such folder.
        names = []
    except PermissionError:
        raise ProbeError("permission", _DEVICES) from None
    facts = []
    complete = not is_wsl(machine)
    for name in names:
        class_code = _hexadecimal(folder / name / "class", 4)
        if class_code is None:
            complete = False
        elif (fact := _device(folder / name, class_code)) is not None:
            facts.append(fact)
    return [*facts, _PCI.coverage("pci", _DEVICES, complete=complete)]


def _device(folder: Path, class_code: str) -> Fact | None:
    vendor, device = _hexadecimal(folder / "vendor", 4), _hexadecimal(folder / "device", 4)
    is_bridge = vendor == "10de" and class_code[:2] == "06"
    if vendor is None or device is None or not (class_code[:2] in _BASE_CLASSES or is_bridge):
        return None
    return _PCI.fact(
        "pci_device",
        f"{_DEVICES}/{folder.name}",
        bus_id=folder.name,
        class_=_CLASSES.get(class_code),
        class_code=class_code,
        display=class_code in _DISPLAY,
        vendor=_VENDORS.get(vendor, "other"),
        device_id=f"{vendor}:{device}",
        driver_in_use=_driver(folder),
        link_cap=_link(folder, "max"),
        link_now=_link(folder, "current"),
        numa_node=number(read_text(folder / "numa_node")),  # -1 where the firmware does not say
    )


def _hexadecimal(path: Path, digits: int) -> str | None:
    """The leading digits of a sysfs value such as 0x030000."""
    text = read_text(path)
    if text is None or not text.startswith("0x") or len(text) < 2 + digits:
        return None
    return text[2 : 2 + digits].lower()


def _driver(folder: Path) -> str | None:
    try:
        return Path(os.readlink(folder / "driver")).name
    except OSError:
        return None


def _link(folder: Path, prefix: str) -> str | None:
    """The PCIe link in the form of lspci: `Speed 16GT/s, Width x16`."""
    speed, width = read_text(folder / f"{prefix}_link_speed"), read_text(folder / f"{prefix}_link_width")
    # Without a link the kernel says Unknown, or a width of 0 or 255.
    if speed is None or width in (None, "0", "255") or not speed[0].isdigit():
        return None
    return f"Speed {speed.split()[0].removesuffix('.0')}GT/s, Width x{width}"
