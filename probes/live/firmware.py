"""Live probes of the firmware: Secure Boot, and the power supplies that the SMBIOS tables name.

May live here: EFI variables and SMBIOS structures. Must not: what either means for a driver or a card.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ...facts import Fact
from .source import Machine, Stating

_FIRMWARE = Stating("firmware")
_EFI = "/sys/firmware/efi"
# The variable of the UEFI specification: four bytes of attributes, then one byte.
_SECURE_BOOT = f"{_EFI}/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
_ENTRIES = "/sys/firmware/dmi/entries"
_SUPPLY = "39-"
# Offsets in the SMBIOS structure "System Power Supply" (type 39).
_MAX_POWER = slice(0x0C, 0x0E)
_TRAITS = slice(0x0E, 0x10)
_UNKNOWN_POWER = 0x8000
_PRESENT = 0b10


def probe_firmware(machine: Machine) -> list[Fact]:
    """Whether the firmware is UEFI, and whether Secure Boot is on."""
    if not machine.path("/sys/firmware").is_dir():
        return []
    if not machine.path(_EFI).is_dir():
        # Without UEFI there is no Secure Boot; a container may hide the folder, so this only says what was seen.
        return [_FIRMWARE.coverage("firmware", _EFI, complete=False)]
    value = _bytes(machine.path(_SECURE_BOOT))
    on = bool(value[4]) if value is not None and len(value) == 5 else None
    known = [] if on is None else [_FIRMWARE.fact("firmware", _SECURE_BOOT, uefi=True, secure_boot=on)]
    return [*known, _FIRMWARE.coverage("firmware", _SECURE_BOOT, complete=on is not None)]


def probe_power_supplies(machine: Machine) -> list[Fact]:
    """The power supplies with their greatest output; most desktop boards name none, and only root may read."""
    folder = machine.path(_ENTRIES)
    try:
        names = sorted(name for name in os.listdir(folder) if name.startswith(_SUPPLY))
    except OSError:
        return []
    tables = [(name, _bytes(folder / name / "raw")) for name in names]
    facts = list(_supplies(tables))
    complete = all(table is not None for _, table in tables)
    return [*facts, _FIRMWARE.coverage("power_supplies", _ENTRIES, complete=complete)]


def _supplies(tables: list[tuple[str, bytes | None]]) -> Iterator[Fact]:
    for number, (name, table) in enumerate(tables):
        if table is None or len(table) < _TRAITS.stop:
            continue
        watts = int.from_bytes(table[_MAX_POWER], "little")
        present = bool(int.from_bytes(table[_TRAITS], "little") & _PRESENT)
        known = watts if 0 < watts < _UNKNOWN_POWER else None
        yield _FIRMWARE.fact("power_supply", f"{_ENTRIES}/{name}", index=number, max_w=known, present=present)


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()[:4096]
    except OSError:
        return None
