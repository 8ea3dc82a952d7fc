"""Reader of kernel messages: dmesg, journalctl and /proc/driver/nvidia/version, in any time format and locale.

May live here: what single kernel lines state. Must not: error signatures (a catalog's) and what an Xid number means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ...facts import Fact, Scalar
from .common import PCI_VENDORS
from .emit import make, printed
from .line import Line

READER = "kernel_log"

_PCI = r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?"
_XID = re.compile(r"\bXid \((?:PCI:)?(" + _PCI + r")\): (\d{1,4})\b")
_XID_PROCESS = re.compile(r", pid='?(<unknown>|\d{1,10})'?(?:, name=([^,]{1,80}))?")
_SXID = re.compile(r"\bSXid \((?:PCI:)?(" + _PCI + r")\): (\d{1,6})\b")
_LINUX_VERSION = re.compile(r"\bLinux version (\d[\w.+~-]{2,120})")
_TAINT = re.compile(r"\bComm: .{1,200}ainted.{1,80}? (\d{1,3}\.\d{1,3}[\w.+~-]{0,100}) #")
_HARDWARE = re.compile(r"\b(?:Hardware name|DMI): (\S.{0,200}?)(?:, BIOS .{0,100})?$")
_MODULE_VERSION = re.compile(
    r"\bNVRM(?: version)?: (?:loading )?NVIDIA UNIX (Open )?(?:\w{1,12} )?Kernel Module"
    r"(?: for \w{1,12})?\s{1,8}(\d{2,4}(?:\.\d{1,4}){1,3})\b"
)
_CLIENT_SIDE = re.compile(r"\b(?:client|driver component) has (?:the )?version (\d{2,4}(?:\.\d{1,4}){1,3})")
_KERNEL_SIDE = re.compile(r"\bkernel module has (?:the )?version (\d{2,4}(?:\.\d{1,4}){1,3})")
_MODULE_SAYS = re.compile(
    r"(?:^|[\s\]])(nvidia(?:-nvlink|-modeset|-uvm|-drm|_uvm|_drm|_modeset)?|nouveau|amdgpu): "
    r"(?:loading out-of-tree|module license|module verification|Nvlink Core is|Loading |Loaded |unknown parameter)"
)
_DRM_MODULE = re.compile(
    r"\[(nvidia-drm)\] |\[drm\] (amdgpu) kernel modesetting enabled|\b(nvidia-drm) \d\S{0,20} \d{8} for "
)
_BOUND = re.compile(r"(?:^|[\s\]])(nvidia|nouveau|amdgpu|i915|xe) (" + _PCI + r"): \S")
_UNLOADED = re.compile(
    r"\bUnregistered the Nvlink Core\b|\bNVRM: None of the NVIDIA \S{1,20}(?: \w{1,20}){0,2} were initialized"
)
_NOT_INSERTED = re.compile(r"could not insert '?\"?([\w-]{1,60})'?\"?: ")
_NO_SUCH_MODULE = re.compile(
    r"\bModule (nvidia[\w-]{0,40}|amdgpu|nouveau) not found in directory /lib/modules/([\w.+~-]{3,120})"
)
_PCI_ID = re.compile(r"\bNVIDIA GPU (" + _PCI + r") \(PCI ID: (10de:[0-9a-f]{4})\)")
_ENUMERATED = re.compile(
    r"\bpci (" + _PCI + r"): \[(1002|10de|8086):([0-9a-f]{4})\] type \d\d class 0x(030[0-9a-f])[0-9a-f]{2}\b"
)
_BOUND_VENDORS = {"nvidia": "nvidia", "nouveau": "nvidia", "amdgpu": "amd", "i915": "intel", "xe": "intel"}
_COMPANY_END = re.compile(
    r"^.{0,80}?\b(?:Inc\.|INC\.|Corp\.|Corporation|Co\., Ltd\.?|Ltd\.|LTD\.?|Limited|GmbH)\s{1,4}(\S.*)$"
)
_MAX_NAMES = 32  # of processes kept for one event
_FILLER = ("system product name", "to be filled by o.e.m.", "default string", "all series")


@dataclass
class _Event:
    """All lines of one code on one device."""

    line: int
    count: int = 0
    pids: list[int] = field(default_factory=list)
    processes: list[str] = field(default_factory=list)


@dataclass
class _Log:
    """What the lines so far state; later lines of a log describe the present better than earlier ones."""

    xids: dict[tuple[int, str], _Event] = field(default_factory=dict)
    sxids: dict[tuple[int, str], _Event] = field(default_factory=dict)
    kernel: tuple[int, str] | None = None
    board: tuple[int, str] | None = None
    parts: dict[str, tuple[int, dict[str, Scalar | None]]] = field(default_factory=dict)
    modules: dict[str, tuple[int, dict[str, Scalar | None]]] = field(default_factory=dict)
    devices: dict[str, tuple[int, dict[str, Scalar | None]]] = field(default_factory=dict)
    mismatch_line: int = -10

    def part(self, line: Line, part: str, **fields: Scalar | None) -> None:
        """One side of the driver."""
        known = self.parts.get(part, (0, {}))[1]
        self.parts[part] = line.number, {**known, "part": part, **fields}

    def module(self, line: Line, name: str, **fields: Scalar | None) -> None:
        """A kernel module; its name is written with _ as lsmod does."""
        name = name.replace("-", "_")
        first, known = self.modules.get(name, (line.number, {}))
        self.modules[name] = first, {**known, "name": name, **fields}

    def device(self, line: Line, bus_id: str, **fields: Scalar | None) -> None:
        """A PCI function."""
        first, known = self.devices.get(bus_id, (line.number, {}))
        self.devices[bus_id] = first, {**known, "bus_id": bus_id, **fields}


def read(lines: Sequence[Line], source: str) -> list[Fact]:
    """Facts of every kernel line in the text; covers nothing, since a log is always an excerpt."""
    log = _Log()
    for line in lines:
        for look in _LOOKS:
            look(log, line)
    return list(_facts(log, source))


def _xid(log: _Log, line: Line) -> None:
    for pattern, events in ((_XID, log.xids), (_SXID, log.sxids)):
        found = pattern.search(line.text)
        if found is None:
            continue
        event = events.setdefault((int(found.group(2)), found.group(1)), _Event(line.number))
        event.count += 1
        process = _XID_PROCESS.match(line.text, found.end())
        if process is None:
            continue
        pid, name = process.group(1), printed(process.group(2))
        if len(event.pids) > _MAX_NAMES or len(event.processes) > _MAX_NAMES:
            continue
        if pid.isdigit() and int(pid) not in event.pids:
            event.pids.append(int(pid))
        if name is not None and name not in event.processes:
            event.processes.append(name)


def _machine(log: _Log, line: Line) -> None:
    found = _LINUX_VERSION.search(line.text) or _TAINT.search(line.text)
    if found:
        log.kernel = line.number, found.group(1)
    hardware = _HARDWARE.search(line.text)
    if hardware:
        name = _board(hardware.group(1))
        log.board = (line.number, name) if name else log.board


def _board(text: str) -> str | None:
    """`Dell Inc. PowerEdge XE9680/0KK0RG` as `PowerEdge XE9680`; the board where the product is a filler text."""
    company = _COMPANY_END.match(text)
    product, _, board = (company.group(1) if company else text).partition("/")
    for name in (product, board):
        if name.strip() and not name.strip().lower().endswith(_FILLER):
            return name.strip()
    return None


def _driver(log: _Log, line: Line) -> None:
    text = line.text
    found = _MODULE_VERSION.search(text)
    if found:
        flavour, version = "open" if found.group(1) else "proprietary", found.group(2)
        log.part(line, "kernel_module", version=version, flavour=flavour)
        log.module(line, "nvidia", loaded=True, version=version, flavour=flavour)
    if "API mismatch" in text:
        log.mismatch_line = line.number
    if line.number - log.mismatch_line > 4:
        return
    client, kernel = _CLIENT_SIDE.search(text), _KERNEL_SIDE.search(text)
    if client:
        log.part(line, "userspace", version=client.group(1))
    if kernel:
        log.part(line, "kernel_module", version=kernel.group(1))
        log.module(line, "nvidia", loaded=True, version=kernel.group(1))


def _modules(log: _Log, line: Line) -> None:
    text = line.text
    if _UNLOADED.search(text):
        log.module(line, "nvidia", loaded=False)
        return
    refused, absent = _NOT_INSERTED.search(text), _NO_SUCH_MODULE.search(text)
    if refused:
        log.module(line, refused.group(1), loaded=False)
    elif absent:
        log.module(line, absent.group(1), loaded=False, built_for_kernel=False)
        log.kernel = log.kernel or (line.number, absent.group(2))
    else:
        says, drm = _MODULE_SAYS.search(text), _DRM_MODULE.search(text)
        bound = _BOUND.search(text)
        for name in (
            says.group(1) if says else None,
            drm.group(1) or drm.group(2) or drm.group(3) if drm else None,
            bound.group(1) if bound else None,
        ):
            if name is not None:
                log.module(line, name, loaded=True)


def _devices(log: _Log, line: Line) -> None:
    text = line.text
    named = _PCI_ID.search(text)
    if named:
        log.device(line, named.group(1), device_id=named.group(2), vendor="nvidia")
    enumerated = _ENUMERATED.search(text)
    if enumerated:
        bus_id, vendor, device, code = enumerated.groups()
        display = code in {"0300", "0302", "0380"}
        identity = f"{vendor}:{device}"
        log.device(line, bus_id, device_id=identity, vendor=PCI_VENDORS[vendor], class_code=code, display=display)
    bound = _BOUND.search(text)
    if bound and "probe" not in text and "failed" not in text:
        driver, bus_id = bound.groups()
        log.device(line, bus_id, vendor=_BOUND_VENDORS[driver], driver_in_use=driver)


_LOOKS: tuple[Callable[[_Log, Line], None], ...] = (_xid, _machine, _driver, _modules, _devices)


def _facts(log: _Log, source: str) -> Iterator[Fact]:
    for (code, bus_id), event in log.xids.items():
        fields: dict[str, Scalar | None] = {"code": code, "bus_id": bus_id, "count": event.count}
        fields["pid"] = event.pids[0] if len(event.pids) == 1 else None
        fields["process"] = event.processes[0] if len(event.processes) == 1 else None
        fields["processes"] = ",".join(event.processes) or None
        yield make("xid", READER, source, event.line, fields)
    for (code, bus_id), event in log.sxids.items():
        yield make("sxid", READER, source, event.line, {"code": code, "bus_id": bus_id, "count": event.count})
    if log.kernel is not None:
        number, release = log.kernel
        yield make("kernel", READER, source, number, {"release": release, "version": _leading_version(release)})
    if log.board is not None:
        yield make("board", READER, source, log.board[0], {"name": log.board[1]})
    for kind, known in (("driver_part", log.parts), ("module", log.modules), ("pci_device", log.devices)):
        for number, row in known.values():
            yield make(kind, READER, source, number, row)


def _leading_version(release: str) -> str:
    """`5.15.0` of `5.15.0-112-generic`."""
    end = next((at for at, letter in enumerate(release) if not (letter.isdigit() or letter == ".")), len(release))
    return release[:end].rstrip(".")
