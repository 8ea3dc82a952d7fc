"""Reader of lspci listings: -n, -nn, -nnk, -v and -vvv, with and without PCI domains.

May live here: the layout of lspci. Must not: what a device id or a link width means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...facts import Fact, Scalar
from .common import PCI_VENDORS
from .emit import coverage, make
from .line import Line

READER = "lspci"

_BUS = r"((?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])"
_NAMED = re.compile(r"^\s{0,8}" + _BUS + r" ([A-Z0-9][\w ./()-]{2,60}?)(?: \[([0-9a-f]{4})\])?: (\S.{0,400})$")
_NUMERIC = re.compile(r"^\s{0,8}" + _BUS + r" (?:Class )?([0-9a-f]{4}): ([0-9a-f]{4}):([0-9a-f]{4})\b")
_ROW_START = re.compile(r"^\s{0,8}" + _BUS + r"(?:\s|$)")
_TAIL = re.compile(r" \((?:rev|prog-if) [^()]{1,60}\)$")
_IDS = re.compile(r" ?\[([0-9a-f]{4}):([0-9a-f]{4})\]$")
_BRACKETS = re.compile(r"^([^\[\]]{0,200}?) ?\[([^\[\]]{1,120})\]$")
_UNNAMED = re.compile(r"^Device(?: ([0-9a-f]{4}))?$")
_LINK_CAP = re.compile(r"\bLnkCap:\s{0,8}.{0,40}?\b(Speed [\d.]{1,6}GT/s, Width x\d{1,2})\b")
_LINK_NOW = re.compile(r"\bLnkSta:\s{0,8}(Speed [\d.]{1,6}GT/s(?: \(\w{1,20}\))?, Width x\d{1,2}(?: \(\w{1,20}\))?)")
_IN_USE = re.compile(r"^\s{0,40}Kernel driver in use: ([\w-]{1,60})\s*$")
_MODULES = re.compile(r"^\s{0,40}Kernel modules: (\w[\w, -]{0,200}?)\s*$")
_FILTERED = re.compile(r"\blspci\b.{0,80}(?:\||\s-[a-z]{0,4}[ds]\b)")
_DISPLAY_CODES = frozenset({"0300", "0302", "0380"})
_DISPLAY_NAMES = frozenset({"VGA compatible controller", "3D controller", "Display controller"})
_VENDORS = (
    ("NVIDIA Corporation", "nvidia", "10de"),
    ("nVidia Corporation", "nvidia", "10de"),
    ("Advanced Micro Devices, Inc. [AMD/ATI]", "amd", "1002"),
    ("Advanced Micro Devices, Inc. [AMD]", "amd", "1022"),
    ("Advanced Micro Devices [AMD/ATI]", "amd", "1002"),
    ("Intel Corporation", "intel", "8086"),
    ("Mellanox Technologies", "mellanox", "15b3"),
)
_VENDOR_CODES = {**PCI_VENDORS, "1022": "amd", "15b3": "mellanox"}


@dataclass
class _Listing:
    """Rows by bus id, in the order of the text."""

    rows: dict[str, tuple[int, dict[str, Scalar | None]]] = field(default_factory=dict)
    current: dict[str, Scalar | None] | None = None
    from_start: int | None = None
    cut: bool = False
    filtered: bool = False
    last_row: int = 0


def read(lines: Sequence[Line], source: str) -> list[Fact]:
    """Facts of every lspci row; the domain is covered where a listing begins at the host bridge and is not cut."""
    listing = _Listing()
    for line in lines:
        _feed(listing, line)
    return list(_facts(listing, source))


def _feed(listing: _Listing, line: Line) -> None:
    text = line.text
    if "lspci" in text and _FILTERED.search(text):
        listing.filtered = True
    fields = _row(text)
    if fields is not None:
        _add(listing, line, fields)
    elif _ROW_START.match(text) or (text.strip() == "..." and line.number - listing.last_row < 3):
        listing.cut = True
        listing.current = None
    elif listing.current is not None:
        _detail(listing.current, text)


def _add(listing: _Listing, line: Line, fields: dict[str, Scalar | None]) -> None:
    bus_id = str(fields["bus_id"])
    if bus_id.endswith("00:00.0") and fields.get("class") in {"Host bridge", None} and not listing.rows:
        listing.from_start = line.number
    number, known = listing.rows.get(bus_id, (line.number, {}))
    known.update({name: value for name, value in fields.items() if value is not None})
    listing.rows[bus_id] = number, known
    listing.current = known
    listing.last_row = line.number


def _row(text: str) -> dict[str, Scalar | None] | None:
    numeric = _NUMERIC.match(text)
    if numeric:
        bus_id, code, vendor, device = numeric.groups()
        return {
            "bus_id": bus_id,
            "class_code": code,
            "display": code in _DISPLAY_CODES,
            "vendor": _VENDOR_CODES.get(vendor, "other"),
            "device_id": f"{vendor}:{device}",
        }
    named = _NAMED.match(text)
    if named is None:
        return None
    bus_id, name, code, rest = named.groups()
    fields: dict[str, Scalar | None] = {"bus_id": bus_id, "class": name, "class_code": code}
    fields["display"] = code in _DISPLAY_CODES or name in _DISPLAY_NAMES
    fields.update(_device(rest.strip()))
    return fields


def _device(rest: str) -> Iterator[tuple[str, Scalar | None]]:
    """Vendor, ids, marketing name and chip out of the text after the class."""
    while True:
        shorter = _TAIL.sub("", rest)
        if shorter == rest:
            break
        rest = shorter
    ids = _IDS.search(rest)
    if ids:
        rest = rest[: ids.start()]
    vendor, code, device = next(
        ((known, number, rest[len(prefix) :].strip()) for prefix, known, number in _VENDORS if rest.startswith(prefix)),
        ("other", "", rest),
    )
    if ids:
        yield "vendor", _VENDOR_CODES.get(ids.group(1), "other")
        yield "device_id", f"{ids.group(1)}:{ids.group(2)}"
    else:
        yield "vendor", vendor
    unnamed = _UNNAMED.match(device)
    if unnamed:
        if unnamed.group(1) and code and not ids:
            yield "device_id", f"{code}:{unnamed.group(1)}"
        return
    brackets = _BRACKETS.match(device)
    if not device.endswith(" Device"):
        yield "name", brackets.group(2) if brackets else device or None
    yield "chip", (brackets.group(1) or None) if brackets and vendor != "other" else None


def _detail(fields: dict[str, Scalar | None], text: str) -> None:
    for name, pattern in (
        ("link_cap", _LINK_CAP),
        ("link_now", _LINK_NOW),
        ("driver_in_use", _IN_USE),
        ("kernel_modules", _MODULES),
    ):
        found = pattern.search(text)
        if found:
            fields[name] = found.group(1)


def _facts(listing: _Listing, source: str) -> Iterator[Fact]:
    for number, fields in listing.rows.values():
        yield make("pci_device", READER, source, number, fields)
    if listing.from_start is not None and not listing.cut and not listing.filtered and len(listing.rows) > 3:
        yield coverage("pci", READER, source, listing.from_start)
