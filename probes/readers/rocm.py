"""Reader of the ROCm tools: rocminfo, rocm-smi, amd-smi, hipcc and /opt/rocm/.info/version.

May live here: these layouts. Must not: which GPUs ROCm supports.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...facts import Fact, Scalar
from .emit import coverage, make, printed
from .line import Line

READER = "rocm"

_ESCAPE_REST = re.compile(r"\x1b?\[\d{0,2}m")
_MODULE = re.compile(r"^\s*(ROCk module (?:version \S{1,40} )?is (?:NOT |not )?loaded)\b")
_AGENT = re.compile(r"^\s*Agent (\d{1,3})\s*$")
_KEY = re.compile(r"^\s{0,12}([A-Z][\w .()/-]{1,40}?):\s{1,60}(\S.{0,200}?)\s*$")
_AGENT_HEAD = re.compile(r"^\s*HSA (?:Agents|System Attributes)\s*$")
_KILOBYTES = re.compile(r"^(\d{1,12})\(0x[0-9a-f]{1,12}\) KB$")
_CHIP = re.compile(r"^\d{1,6}\((0x[0-9a-f]{1,6})\)$")
_DONE = re.compile(r"^\s*\*\*\* Done \*\*\*\s*$")

_SMI_HEAD = re.compile(r"^\s*(?:Device|GPU)\s{1,20}(?:\[Model|Node\s|Temp)")
_TEMPERATURE = re.compile(r"\b(\d{1,3})(?:\.\d{1,2})?\s?(?:°|Â°)?[cC]\b")
_WATTS = re.compile(r"\b(\d{1,5}(?:\.\d{1,3})?)W\b")
_LOAD = re.compile(r"\b(\d{1,3})%\s*$")
_SMI_NAME = re.compile(r"^\s{2,40}((?:AMD |Radeon |Instinct |Vega ).{1,60}?)\s*$")
_SMI_END = re.compile(r"=+ ?End of ROCm SMI Log ?=+")
_SMI_VALUE = re.compile(r"^\s*GPU\[(\d{1,3})\]\s*: ([A-Z][\w ()]{1,40}?):\s{1,20}(\S.{0,200}?)\s*$")
_AMD_GPU = re.compile(r"^\s*GPU: (\d{1,3})\s*$")
_ROCM_VERSION = re.compile(r"\bROCm version: (\d[\w.+-]{1,40})")
_AMDGPU_VERSION = re.compile(r"\bamdgpu version: (\d[\w.+-]{1,40})")
_SMI_DRIVER = re.compile(r"^\s*Driver version:\s{1,20}(\d[\w.+-]{1,60})\s*$")
_HIP_VERSION = re.compile(r"^\s*HIP version: (\d[\w.+-]{1,60})\s*$")
_INFO_FILE = re.compile(r"/opt/rocm[\w.-]{0,20}/\.info/version")
_BARE_VERSION = re.compile(r"^\s*(\d{1,2}\.\d{1,2}\.\d{1,2}(?:-\d{1,6})?)\s*$")

_SMI_FIELDS = {
    "card series": "name",
    "card model": "device_id",
    "device id": "device_id",
    "gfx version": "gfx",
    "vbios version": "vbios",
    "pci bus": "bus_id",
}
_AMD_SMI_FIELDS = {
    "bdf": "bus_id",
    "uuid": "uuid",
    "market_name": "name",
    "device_id": "device_id",
    "target_graphics_version": "gfx",
}


@dataclass
class _Row:
    """Fields read so far about one GPU, and where it begins."""

    line: int
    fields: dict[str, Scalar | None]


class _Scan:
    """One pass: the open agent of rocminfo, the open table of rocm-smi, the open GPU of amd-smi."""

    def __init__(self) -> None:
        self.rocm: dict[str, Scalar | None] = {}
        self.rocm_line: int | None = None
        self.agents: list[_Row] = []
        self.gpus: dict[int, _Row] = {}
        self.driver: tuple[int, str] | None = None
        self.complete: int | None = None
        self.done: int | None = None
        self.info_line = -10
        self._in_agents = False
        self._agent: _Row | None = None
        self._pool = ""
        self._table = False
        self._row: _Row | None = None
        self._amd_gpu: _Row | None = None

    def feed(self, line: Line) -> None:
        """Look at one line with everything that may recognise it."""
        text = _ESCAPE_REST.sub("", line.text)
        self._versions(line.number, text)
        if self._in_agents or self._agent is not None or _AGENT_HEAD.match(text):
            self._rocminfo(line.number, text)
        self._rocm_smi(line.number, text)
        self._amd_smi(line.number, text)

    def _state(self, number: int, name: str, value: Scalar) -> None:
        self.rocm.setdefault(name, value)
        self.rocm_line = self.rocm_line or number

    def _versions(self, number: int, text: str) -> None:
        for name, pattern in (("module", _MODULE), ("version", _ROCM_VERSION), ("hip_runtime", _HIP_VERSION)):
            found = pattern.search(text)
            if found:
                self._state(number, name, found.group(1))
        driver = _AMDGPU_VERSION.search(text)
        if driver:
            self.driver = number, driver.group(1)
        bare = _BARE_VERSION.match(text) if number - self.info_line == 1 else None
        if bare:
            self._state(number, "version", bare.group(1))
        if _INFO_FILE.search(text):
            self.info_line = number

    # --- rocminfo --------------------------------------------------------------------------------------------------

    def _rocminfo(self, number: int, text: str) -> None:
        self._in_agents = True
        agent = _AGENT.match(text)
        if agent:
            self._agent = _Row(number, {"agent": int(agent.group(1))})
            self._pool = ""
            if agent.group(1) == "1":
                self.agents, self.done = [], None  # the program ran again
            self.agents.append(self._agent)
            return
        if _DONE.match(text):
            self._in_agents, self._agent = False, None
            self.done = number
            return
        found = _KEY.match(text)
        if found is None:
            return
        key, value = found.groups()
        if self._agent is not None:
            self._agent_key(self._agent.fields, key, value)
        elif key == "Runtime Version":
            self._state(number, "hsa_runtime", value)

    def _agent_key(self, fields: dict[str, Scalar | None], key: str, value: str) -> None:
        if key == "Segment":
            self._pool = value
        elif key == "Size" and fields.get("type") == "GPU" and self._pool.startswith("GLOBAL"):
            size = _KILOBYTES.match(value)
            if size:
                fields.setdefault("vram_mib", int(size.group(1)) // 1024)
        elif key == "Chip ID" and _CHIP.match(value):
            fields.setdefault("device_id", value.partition("(")[2].rstrip(")"))
        else:
            known = {"Name": "short", "Marketing Name": "name", "Device Type": "type"}.get(key)
            if known is not None:
                fields.setdefault(known, printed(value))

    # --- rocm-smi and amd-smi --------------------------------------------------------------------------------------

    def _rocm_smi(self, number: int, text: str) -> None:
        if _SMI_HEAD.match(text):
            self._table = True
            return
        if _SMI_END.search(text):
            if self._table and self.gpus:
                self.complete = number
            self._table, self._row = False, None
            return
        value = _SMI_VALUE.match(text)
        if value:
            self._smi_value(number, int(value.group(1)), value.group(2).lower(), value.group(3))
        elif self._table:
            self._smi_row(number, text)
        driver = _SMI_DRIVER.match(text)
        if driver and self.driver is None:
            self.driver = number, driver.group(1)

    def _smi_row(self, number: int, text: str) -> None:
        words = text.split()
        if words and words[0].isdigit() and len(words[0]) < 4 and len(words) > 6:
            fields = self._gpu(number, int(words[0])).fields
            fields.update(_concise(text, words))
            self._row = self.gpus[int(words[0])]
            caps = _WATTS.findall(text)
            if len(caps) > 1:
                self._state(number, "power_cap_w", caps[-1])
            return
        name = _SMI_NAME.match(text)
        if name and self._row is not None:
            self._row.fields["name"] = name.group(1)
            self._row = None

    def _smi_value(self, number: int, index: int, key: str, value: str) -> None:
        fields = self._gpu(number, index).fields
        known = _SMI_FIELDS.get(key)
        if known is not None:
            fields.setdefault(known, printed(value))
        elif key in {"vram total memory (b)", "vram total used memory (b)"} and value.isdigit() and len(value) < 16:
            fields["vram_mib" if "used" not in key else "vram_used_mib"] = int(value) // 2**20

    def _amd_smi(self, number: int, text: str) -> None:
        gpu = _AMD_GPU.match(text)
        if gpu:
            self._amd_gpu = self._gpu(number, int(gpu.group(1)))
            return
        found = _KEY.match(text) if self._amd_gpu is not None else None
        if found is None or self._amd_gpu is None:
            return
        known = _AMD_SMI_FIELDS.get(found.group(1).lower())
        if known is not None:
            self._amd_gpu.fields.setdefault(known, printed(found.group(2)))

    def _gpu(self, number: int, index: int) -> _Row:
        return self.gpus.setdefault(index, _Row(number, {"index": index, "vendor": "amd"}))


def _concise(text: str, words: list[str]) -> Iterator[tuple[str, Scalar | None]]:
    """Device id, temperature, power and load of a row of the concise table; VRAM stands there in percent only."""
    device = next((word.strip("[],") for word in words[1:4] if word.strip("[],").startswith("0x")), None)
    yield "device_id", device
    temperature, watts, load = _TEMPERATURE.search(text), _WATTS.findall(text), _LOAD.search(text)
    yield "temperature_c", int(temperature.group(1)) if temperature else None
    yield "power_w", int(float(watts[0])) if len(watts) > 1 else None
    yield "power_limit_w", int(float(watts[-1])) if len(watts) > 1 else None
    yield "utilization_pct", int(load.group(1)) if load else None


def read(lines: Sequence[Line], source: str) -> list[Fact]:
    """Facts of every output of a ROCm tool in the text."""
    scan = _Scan()
    for line in lines:
        scan.feed(line)
    return list(_facts(scan, source))


def _facts(scan: _Scan, source: str) -> Iterator[Fact]:
    gpus = [row for row in scan.agents if row.fields.get("type") == "GPU"]
    cpus = [row for row in scan.agents if row.fields.get("type") == "CPU"]
    if gpus or cpus:
        scan.rocm["gpu_agents"], scan.rocm["cpu_agents"] = len(gpus), len(cpus)
    number = scan.rocm_line or (scan.agents[0].line if scan.agents else None)
    if scan.rocm:
        yield make("rocm", READER, source, number, scan.rocm)
    if scan.driver is not None:
        yield make("driver", READER, source, scan.driver[0], {"vendor": "amd", "version": scan.driver[1]})
    for row in cpus[:1]:
        yield make("cpu", READER, source, row.line, {"name": row.fields.get("name")})
    for index, row in enumerate(gpus):
        # ROCm numbers its devices in the order of the GPU agents.
        fields = {name: row.fields.get(name) for name in ("agent", "name", "vram_mib", "device_id")}
        gfx = str(row.fields.get("short") or "")
        fields.update(index=index, vendor="amd", gfx=gfx if gfx.startswith("gfx") else None)
        yield make("gpu", READER, source, row.line, fields)
    for row in scan.gpus.values():
        if len(row.fields) < 3:
            continue  # `GPU: 0` alone is not a line of these tools
        yield make("gpu", READER, source, row.line, row.fields)
    complete = scan.complete or (scan.done if gpus else None)
    if complete is not None:
        yield coverage("gpus", READER, source, complete)
