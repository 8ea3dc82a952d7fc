"""Reader of `nvidia-smi -q`, whole or any of its sections, and of its XML form (`-q -x`).

May live here: these two layouts. Must not: the table of nvidia-smi, and what a throttle reason means.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...facts import Fact, Scalar
from .emit import coverage, device_id, make, printed, whole
from .line import Line

READER = "nvidia_smi_q"

_BANNER = re.compile(r"^\s*=+NVSMI LOG=+\s*$")
_GPU = re.compile(r"^\s{0,8}GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*$")
_PAIR = re.compile(r"^(\s{0,40})([A-Z][\w .()/-]{1,60}?)\s{0,60} : (.{0,200})$")
_TITLE = re.compile(r"^(\s{0,40})([A-Z][\w .()/-]{1,60}?)\s*$")
_XML_GPU = re.compile(r'<gpu id="([0-9A-Fa-f:.]{7,20})">')
_XML_TAG = re.compile(r"<(/?\w{1,60})>([^<>]{0,200})")
_XML_START = "<nvidia_smi_log>"

_TEXT, _NUMBER, _SWITCH, _YES_NO, _STATE, _PSTATE = "text", "number", "switch", "yes_no", "state", "pstate"
_Reading = tuple[str, str]

# (section or "", key) in small letters -> field of `gpu` and how its value reads.
_FIELDS: dict[tuple[str, str], _Reading] = {
    ("", "product name"): ("name", _TEXT),
    ("", "product architecture"): ("architecture", _TEXT),
    ("", "display active"): ("display_active", _YES_NO),
    ("", "persistence mode"): ("persistence", _SWITCH),
    ("", "gpu uuid"): ("uuid", _TEXT),
    ("", "vbios version"): ("vbios", _TEXT),
    ("", "compute mode"): ("compute_mode", _STATE),
    ("", "performance state"): ("performance_state", _PSTATE),
    ("gpu reset status", "reset required"): ("reset_required", _YES_NO),
    ("mig mode", "current"): ("mig", _SWITCH),
    ("pci", "device id"): ("device_id", _TEXT),
    ("pcie generation", "max"): ("pcie_gen_max", _NUMBER),
    ("pcie generation", "current"): ("pcie_gen_current", _NUMBER),
    ("link width", "max"): ("pcie_width_max", _NUMBER),
    ("link width", "current"): ("pcie_width_current", _NUMBER),
    ("fb memory usage", "total"): ("vram_mib", _NUMBER),
    ("fb memory usage", "used"): ("vram_used_mib", _NUMBER),
    ("bar1 memory usage", "total"): ("bar1_mib", _NUMBER),
    ("bar1 memory usage", "used"): ("bar1_used_mib", _NUMBER),
    ("pci", "replays since reset"): ("pcie_replays", _NUMBER),
    ("remapped rows", "pending"): ("remap_pending", _YES_NO),
    ("remapped rows", "remapping failure occurred"): ("remap_failed", _YES_NO),
    ("retired pages", "pending page blacklist"): ("retirement_pending", _YES_NO),
    ("clocks", "graphics"): ("clock_mhz", _NUMBER),
    ("max clocks", "graphics"): ("clock_max_mhz", _NUMBER),
    ("fabric", "state"): ("fabric", _STATE),
    ("utilization", "gpu"): ("utilization_pct", _NUMBER),
    ("ecc mode", "current"): ("ecc", _SWITCH),
    ("temperature", "gpu current temp"): ("temperature_c", _NUMBER),
    ("temperature", "gpu slowdown temp"): ("temperature_slowdown_c", _NUMBER),
    ("gpu power readings", "default power limit"): ("power_default_w", _NUMBER),
    ("gpu power readings", "min power limit"): ("power_min_w", _NUMBER),
    ("gpu power readings", "max power limit"): ("power_max_w", _NUMBER),
    ("gpu power readings", "power draw"): ("power_w", _NUMBER),
    ("gpu power readings", "average power draw"): ("power_w", _NUMBER),
    ("gpu power readings", "current power limit"): ("power_limit_w", _NUMBER),
    ("power readings", "power draw"): ("power_w", _NUMBER),
    ("power readings", "power limit"): ("power_limit_w", _NUMBER),
    ("power readings", "default power limit"): ("power_default_w", _NUMBER),
    ("power readings", "min power limit"): ("power_min_w", _NUMBER),
    ("power readings", "max power limit"): ("power_max_w", _NUMBER),
}
_XML_FIELDS: dict[str, _Reading] = {
    "product_name": ("name", _TEXT),
    "product_architecture": ("architecture", _TEXT),
    "display_active": ("display_active", _YES_NO),
    "persistence_mode": ("persistence", _SWITCH),
    "uuid": ("uuid", _TEXT),
    "vbios_version": ("vbios", _TEXT),
    "current_mig": ("mig", _SWITCH),
    "current_ecc": ("ecc", _SWITCH),
    "pci_device_id": ("device_id", _TEXT),
    "max_link_gen": ("pcie_gen_max", _NUMBER),
    "current_link_gen": ("pcie_gen_current", _NUMBER),
    "max_link_width": ("pcie_width_max", _NUMBER),
    "current_link_width": ("pcie_width_current", _NUMBER),
    "gpu_util": ("utilization_pct", _NUMBER),
    "gpu_temp": ("temperature_c", _NUMBER),
    "compute_mode": ("compute_mode", _STATE),
    "performance_state": ("performance_state", _PSTATE),
    "default_power_limit": ("power_default_w", _NUMBER),
    "min_power_limit": ("power_min_w", _NUMBER),
    "max_power_limit": ("power_max_w", _NUMBER),
    "power_draw": ("power_w", _NUMBER),
    "current_power_limit": ("power_limit_w", _NUMBER),
    "power_limit": ("power_limit_w", _NUMBER),
}
_STATES = frozenset(
    {"default", "exclusive_thread", "exclusive_process", "prohibited", "not_started", "in_progress", "completed"}
)
_THROTTLE = frozenset({"clocks event reasons", "clocks throttle reasons"})


@dataclass
class _Gpu:
    """One `GPU <bus id>` block."""

    line: int
    fields: dict[str, Scalar | None]
    throttle: dict[str, tuple[int, bool]] = field(default_factory=dict)
    processes: list[tuple[int, dict[str, Scalar | None]]] = field(default_factory=list)
    uncorrected: int | None = None
    corrected: int | None = None
    remapped: int | None = None


class _Scan:
    """One pass: the log's head, then blocks; `path` holds the open sections with their indents."""

    def __init__(self) -> None:
        self.driver: dict[str, Scalar | None] = {}
        self.driver_line: int | None = None
        self.attached: int | None = None
        self.gpus: list[_Gpu] = []
        self._head_until = 0
        self._path: list[tuple[int, str]] = []
        self._xml = False
        self._section = ""

    def feed(self, line: Line) -> None:
        """Look at one line as either form."""
        if _XML_START in line.text:
            self._xml = True
            self._begin(line.number)
        elif _BANNER.match(line.text):
            self._xml = False
            self._begin(line.number)
        elif self._xml:
            self._xml_line(line)
        else:
            self._plain_line(line)

    def _begin(self, number: int) -> None:
        # A later log describes the present; an earlier one is an older state of the same machine.
        self.driver, self.driver_line, self.attached, self.gpus = {}, None, None, []
        self._head_until = number + 12

    # --- plain text ------------------------------------------------------------------------------------------------

    def _plain_line(self, line: Line) -> None:
        text = line.text
        gpu = _GPU.match(text)
        if gpu:
            self.gpus.append(_Gpu(line.number, {"bus_id": gpu.group(1), "vendor": "nvidia"}))
            self._path = []
            return
        pair = _PAIR.match(text)
        if pair is None:
            self._title(line.number, text)
            return
        indent, key, value = len(pair.group(1)), pair.group(2).strip(), pair.group(3).strip()
        if self.gpus and indent > 0:
            self._gpu_pair(line.number, indent, key, value)
        elif not self.gpus:
            self._head_pair(line.number, key, value)

    def _title(self, number: int, text: str) -> None:
        title = _TITLE.match(text)
        if title is None:
            return
        if not self.gpus and title.group(2).lower() in _THROTTLE:
            self.gpus.append(_Gpu(number, {}))  # a section pasted without its GPU
        if self.gpus and (title.group(1) or title.group(2).lower() in _THROTTLE):
            self._open(len(title.group(1)), title.group(2))

    def _open(self, indent: int, title: str) -> None:
        while self._path and self._path[-1][0] >= indent:
            self._path.pop()
        self._path.append((indent, title.lower()))

    def _head_pair(self, number: int, key: str, value: str) -> None:
        if key == "Timestamp":
            self._head_until = number + 8
        if number > self._head_until or printed(value) is None:
            return
        if key in {"Driver Version", "KMD Version"}:
            self._driver_field(number, "version", value)
        elif key in {"CUDA Version", "CUDA UMD Version"}:
            self._driver_field(number, "cuda_max", value)
        elif key == "Attached GPUs":
            self.attached = whole(value)

    def _driver_field(self, number: int, name: str, value: str) -> None:
        self.driver[name] = value
        self.driver_line = self.driver_line or number

    def _gpu_pair(self, number: int, indent: int, key: str, value: str) -> None:
        gpu = self.gpus[-1]
        while self._path and self._path[-1][0] >= indent:
            self._path.pop()
        sections = [title for _, title in self._path]
        if _THROTTLE.intersection(sections):
            if value in {"Active", "Not Active"}:
                gpu.throttle[key] = number, value == "Active"
            self._path.append((indent, key.lower()))
            return
        section = sections[-1] if sections else ""
        if "processes" in sections or key == "Process ID":
            _process_pair(gpu, number, key, value)
        elif section == "driver model" and key == "Current":
            self.driver["model"] = value if value in {"WDDM", "TCC", "MCDM"} else None
        elif value.isdigit() and section in {"volatile", "remapped rows"} and "orrectable" in key:
            _count(gpu, section, key, whole(value) or 0)
        else:
            _store(gpu.fields, _FIELDS.get((section, key.lower())), value)

    # --- XML -------------------------------------------------------------------------------------------------------

    def _xml_line(self, line: Line) -> None:
        gpu = _XML_GPU.search(line.text)
        if gpu:
            self.gpus.append(_Gpu(line.number, {"bus_id": gpu.group(1), "vendor": "nvidia"}))
        for tag, value in _XML_TAG.findall(line.text):
            self._xml_tag(line.number, tag, value.strip())
        if "</nvidia_smi_log>" in line.text:
            self._xml = False

    def _xml_tag(self, number: int, tag: str, value: str) -> None:
        if tag in {"fb_memory_usage", "bar1_memory_usage", "/fb_memory_usage", "/bar1_memory_usage"}:
            self._section = tag
        elif tag in {"driver_version", "cuda_version"} and printed(value) is not None:
            self._driver_field(number, "version" if tag == "driver_version" else "cuda_max", value)
        elif tag == "attached_gpus":
            self.attached = whole(value)
        elif self.gpus:
            gpu = self.gpus[-1]
            if self._section == "fb_memory_usage" and tag in {"total", "used"}:
                _store(gpu.fields, _FIELDS["fb memory usage", tag], value)
            elif tag == "pid":
                _process_pair(gpu, number, "Process ID", value)
            elif gpu.processes and tag in {"type", "process_name", "used_memory"}:
                known = {"type": "Type", "process_name": "Name", "used_memory": "Used GPU Memory"}[tag]
                _process_pair(gpu, number, known, value)
            else:
                _store(gpu.fields, _XML_FIELDS.get(tag), value)


def _count(gpu: _Gpu, section: str, key: str, number: int) -> None:
    """Add to a sum: the log has a line for each part of the memory and each kind of error."""
    if section == "remapped rows":
        gpu.remapped = (gpu.remapped or 0) + number
    elif "Uncorrectable" in key:
        gpu.uncorrected = (gpu.uncorrected or 0) + number
    else:
        gpu.corrected = (gpu.corrected or 0) + number


def _store(fields: dict[str, Scalar | None], reading: _Reading | None, value: str) -> None:
    """The first printed value of a field counts."""
    if reading is None or printed(value) is None or fields.get(reading[0]) is not None:
        return
    name, how = reading
    if how == _NUMBER:
        fields[name] = whole(value)
    elif how == _SWITCH:
        fields[name] = value.lower() if value in {"Enabled", "Disabled"} else None
    elif how == _STATE:
        state = value.lower().replace(" ", "_")
        fields[name] = state if state in _STATES else None
    elif how == _PSTATE:
        fields[name] = whole(value.removeprefix("P"))
    elif how == _YES_NO:
        fields[name] = {"Enabled": True, "Yes": True, "Disabled": False, "No": False}.get(value)
    else:
        fields[name] = device_id(value) if name == "device_id" else value


def _process_pair(gpu: _Gpu, number: int, key: str, value: str) -> None:
    if key == "Process ID":
        pid = whole(value)
        if pid is not None:
            gpu.processes.append((number, {"pid": pid}))
    elif gpu.processes:
        fields = gpu.processes[-1][1]
        if key == "Type":
            fields["type"] = printed(value)
        elif key == "Name":
            fields["name"] = printed(value)
        elif key == "Used GPU Memory" and value.endswith("MiB"):
            fields["mem_mib"] = whole(value)


def read(lines: Sequence[Line], source: str) -> list[Fact]:
    """Facts of the last `nvidia-smi -q` in the text; GPUs are numbered only where all of them are there."""
    scan = _Scan()
    for line in lines:
        scan.feed(line)
    return list(_facts(scan, source))


def _facts(scan: _Scan, source: str) -> Iterator[Fact]:
    if scan.driver_line is not None:
        yield make("nvidia_smi", READER, source, scan.driver_line, {"state": "ok"})
        yield make("driver", READER, source, scan.driver_line, {"vendor": "nvidia", **scan.driver})
    complete = bool(scan.gpus) and scan.attached == len(scan.gpus)
    for order, gpu in enumerate(scan.gpus):
        index = order if complete else None
        if gpu.fields:
            known = {"index": index, **gpu.fields, "ecc_uncorrected": gpu.uncorrected}
            known.update(ecc_corrected=gpu.corrected, remapped_rows=gpu.remapped)
            yield make("gpu", READER, source, gpu.line, known)
        for name, (number, active) in gpu.throttle.items():
            yield make("throttle_reason", READER, source, number, {"gpu": index, "name": name, "active": active})
        pids: set[Scalar | None] = set()
        for number, fields in gpu.processes:
            if fields["pid"] not in pids:
                yield make("process", READER, source, number, {"gpu": index, **fields})
            pids.add(fields["pid"])
    if complete:
        yield coverage("gpus", READER, source, scan.gpus[0].line)
