"""Reader of what macOS says of itself: sw_vers, sysctl, system_profiler, uname.

May live here: these layouts. Must not: what a value means for GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...facts import Fact, Scalar
from .common import PCI_VENDORS, FactList, vendor_of
from .line import Line

READER = "macos"

_PAIR = re.compile(
    r"[ \t]{0,20}(?P<label>[A-Za-z][A-Za-z0-9 ._()]{1,60}?)[ \t]{0,8}[:=][ \t]{0,40}(?P<value>.{1,300}?)[ \t]{0,20}$"
)
_UNAME = re.compile(r"[ \t]{0,8}Darwin .{0,400} (?P<machine>arm64|x86_64)[ \t]*$")
_ONLY = re.compile(r"[ \t]{0,4}Darwin[ \t]*$")
_CORES = re.compile(r"(?P<cores>[0-9]{1,3})(?: \(|$)")
_SIZE = re.compile(r"(?P<number>[0-9]{1,5}) (?P<unit>MB|GB|TB)\b")
_VENDOR_ID = re.compile(r"\(0x(?P<id>[0-9a-fA-F]{4})\)")
_DEVICE = re.compile(r"0x(?P<id>[0-9a-fA-F]{4})$")
_VENDORS = {**PCI_VENDORS, "106b": "apple"}
_SCALES = {"MB": 1, "GB": 1024, "TB": 1 << 20}
_LABELS = frozenset(
    {
        "productname", "productversion", "buildversion", "system version", "chip", "processor name", "memory",
        "total number of cores", "chipset model", "type", "vendor", "device id", "vram (total)",
        "vram (dynamic, max)", "hw.memsize", "hw.physicalcpu", "hw.logicalcpu", "hw.ncpu", "hw.machine",
        "hw.optional.arm64", "machdep.cpu.brand_string", "sysctl.proc_translated", "metal support", "metal family",
    }
)  # fmt: skip


def read(lines: Sequence[Line], source: str) -> list[Fact]:
    """Facts of every such output in the text."""
    out = FactList(source, READER)
    said: dict[str, tuple[str, Line]] = {}
    cards: list[dict[str, tuple[str, Line]]] = []
    machine: tuple[str, Line] | None = None
    for line in lines:
        if found := _UNAME.match(line.text):
            machine = found["machine"], line
            continue
        pair = _PAIR.match(line.text)
        label = pair["label"].lower() if pair else ""
        if pair is None or label not in _LABELS or (label == "chip" and not pair["value"].startswith("Apple")):
            continue
        if label == "chipset model":
            cards.append({})
        # After a card's first line the same labels speak of the card.
        of_card = bool(cards) and label in ("chipset model", "total number of cores", "vendor", "device id", "type",
                                            "vram (total)", "vram (dynamic, max)")  # fmt: skip
        (cards[-1] if of_card else said).setdefault(label, (pair["value"], line))
    _os(said, machine, bool(cards), out)
    _cpu(said, out)
    for index, card in enumerate(cards):
        _card(index, card, out)
    return out.facts


def _os(said: Mapping[str, tuple[str, Line]], machine: tuple[str, Line] | None, has_cards: bool, out: FactList) -> None:
    product = said.get("productname", said.get("system version"))
    mac = product is not None and product[0].lower().startswith(("macos", "mac os"))
    if not mac and machine is None and not (has_cards and "chip" in said):
        return
    version: str | None = None
    line = product[1] if mac and product is not None else machine[1] if machine else said["chip"][1]
    if mac and "productversion" in said:
        version, line = said["productversion"]
    elif mac and product is not None:
        version = next((word for word in product[0].split() if word[:1].isdigit()), None)
    processor = machine[0] if machine else _processor(said)
    name = f"macOS {version}" if version else None
    if name and processor:
        name += f" ({processor})"
    fields: dict[str, Scalar | None] = {"family": "macos", "name": name, "machine": processor,
                                        "distro_version": version, "wsl": False, "jetson": False}  # fmt: skip
    out.add("os", fields, line)


def _processor(said: Mapping[str, tuple[str, Line]]) -> str | None:
    """What the processor is; a program under Rosetta is told of another by uname."""
    if said.get("hw.optional.arm64", ("0",))[0] == "1" or said.get("hw.machine", ("",))[0] == "arm64":
        return "arm64"
    name = said.get("chip", said.get("machdep.cpu.brand_string", said.get("processor name", ("",))))[0]
    return "arm64" if name.startswith("Apple") else "x86_64" if "Intel" in name else None


def _cpu(said: Mapping[str, tuple[str, Line]], out: FactList) -> None:
    place = said.get("chip", said.get("machdep.cpu.brand_string", said.get("processor name")))
    cores = said.get("total number of cores", said.get("hw.physicalcpu"))
    threads = said.get("hw.logicalcpu", said.get("hw.ncpu"))
    if place is not None:
        out.add("cpu", {"name": place[0], "cores": _count(cores), "threads": _count(threads)}, place[1])
    if "hw.memsize" in said and said["hw.memsize"][0].isdigit() and len(said["hw.memsize"][0]) < 18:
        out.add("memory", {"total_mib": int(said["hw.memsize"][0]) >> 20}, said["hw.memsize"][1])
    elif "memory" in said and place is not None and (size := _SIZE.match(said["memory"][0])):
        out.add("memory", {"total_mib": int(size["number"]) * _SCALES[size["unit"]]}, said["memory"][1])


def _count(said: tuple[str, Line] | None) -> int | None:
    found = _CORES.match(said[0]) if said is not None else None
    return int(found["cores"]) if found else None


def _card(index: int, card: Mapping[str, tuple[str, Line]], out: FactList) -> None:
    name, line = card["chipset model"]
    maker = card.get("vendor", ("",))[0]
    code = _VENDOR_ID.search(maker)
    vendor = _VENDORS.get(code["id"].lower()) if code else vendor_of(maker) or vendor_of(name)
    device = _DEVICE.match(card.get("device id", ("",))[0])
    size = _SIZE.match(card.get("vram (total)", ("",))[0])
    out.add(
        "gpu",
        {"index": index, "name": name, "vendor": vendor,
         "device_id": f"{code['id']}:{device['id']}".lower() if code and device else None,
         "vram_mib": int(size["number"]) * _SCALES[size["unit"]] if size else None},
        line,
    )  # fmt: skip
