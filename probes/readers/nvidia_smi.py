"""Reader of what nvidia-smi prints: the table in all its layouts, `-L`, `--query-gpu` and its failure lines.

May live here: these layouts and what their words mean as facts. Must not: `nvidia-smi -q`, `topo -m`, advice, or
knowledge of GPU models.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...facts import Fact, Provenance, Scalar
from .emit import coverage, device_id, make, printed, whole
from .line import Line

READER = "nvidia_smi"

_SMI_VERSION = re.compile(r"\bNVIDIA-SMI\s+(\d[\d.]*)")
_DRIVER_VERSION = re.compile(r"\b(?:Driver|KMD) Version\s*:\s*(\d[\d.]*)")
_CUDA_VERSION = re.compile(r"\bCUDA (?:UMD )?Version\s*:\s*(\d[\d.]*)")
_DASH_VERSION = re.compile(r"^\s*(NVIDIA-SMI|DRIVER|KMD|CUDA|CUDA UMD) [Vv]ersion\s*:\s*(\d[\d.]*)\s*$")
_BORDER = re.compile(r"^[+|][-=+]{10,400}[+|]$")
_DATE = re.compile(r"^\s*[A-Z][a-z]{2}\s+([A-Z][a-z]{2})\s+(\d{1,2})\s+(\d\d):(\d\d):(\d\d)\s+(\d{4})\s*$")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_BUS_ID = re.compile(r"^(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]$")
_TEMPERATURE = re.compile(r"\b(\d{1,3})C\b")
_POWER = re.compile(r"\b(\d{1,5})W /")
_POWER_LIMIT = re.compile(r"/ {0,20}(\d{1,5})W\b")
_MEMORY = re.compile(r"\b(\d{1,9})MiB / {0,20}(\d{1,9})MiB\b")
_PERCENT = re.compile(r"\b(\d{1,3})%")
_PROCESS_TYPE = re.compile(r"^(?:M\+)?(?:C|G|C\+G)$")
_LISTED_GPU = re.compile(r"^\s*GPU (\d{1,4}): (.{1,120}) \(UUID: ([^()\s]{1,80})\)\s*$")
_LISTED_MIG = re.compile(r"^\s*MIG (\S{1,40})\s{1,40}Device\s{1,8}(\d{1,3}): \(UUID: ([^()\s]{1,120})\)\s*$")
_PRODUCT = re.compile(r"^[A-Za-z][\w .()/+-]{1,79}$")
_UUID = re.compile(r"^GPU-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$")
_NVTOP = re.compile(r"\bDevice (\d{1,3}) \[([^\[\]]{1,80})\] PCIe GEN ?(\d)@ ?(\d{1,2})x")
_NVTOP_LOAD = re.compile(r"\bGPU {0,4}(\d{1,3})%")

_PROMPT = re.compile(
    r"^\s*(?:\((?P<tag>[^()]{1,40})\)\s?)?"
    r"(?:\[?(?P<user>[\w.-]{1,64})@(?P<host>[\w.-]{1,64})[^$#%|]{0,200})?"
    r"(?P<sign>[$#%❯➜])(?:\s|$)"
)
_SCOPE_HEADING = re.compile(
    r"^\W{0,8}(?:(?:in(?:side)?|on|from)?\s{0,4}(?:the\s{1,4}|a\s{1,4}|my\s{1,4})?"
    r"(?:(?:docker|lxd?|lxc|podman|incus|vllm|ollama)\s)?(container|docker|host)\b[^|:]{0,40}"
    r"|(?:在)?(?:\s?docker\s?)?(容器|宿主机|主机|物理机)(?:里面?|内部?|中|上)?(?:执行|运行|的)?\s?(?:nvidia-smi)?(?:输出|结果)?)"
    r"[:：]\s*$",
    re.IGNORECASE,
)
_HOST_WORDS = frozenset({"host", "宿主机", "主机", "物理机"})
_CONTAINER_ID = re.compile(r"^[0-9a-f]{12}$")
_CONTAINER_COMMAND = re.compile(
    r"\b(?:docker|podman|nerdctl|kubectl|singularity|apptainer|enroot)\b.{0,40}\b(?:exec|run|start)\b"
)
_SELECTED = re.compile(r"\bnvidia-smi\b.{0,200}\s(?:-i|--id)(?:[ =]|$)")
_QUERY = re.compile(r"\bnvidia-smi\b.{0,200}--query-gpu[ =]([\w.,]{1,900})")

_FAILED = re.compile(
    r"\bNVIDIA-SMI has failed\b|\bFailed to initialize NVML: |\bNVIDIA-SMI couldn't find libnvidia-ml|"
    r"\bUnable to determine the device handle for (?:GPU|gpu)"
)
_NO_DEVICES = re.compile(r"^\W{0,4}No devices (?:were )?found\.?\s*$")
_MISSING = re.compile(
    r"\bnvidia-smi['’]?(?:\.exe)?: (?:command )?not found|\bcommand not found: nvidia-smi|\bnvidia-smi: 未找到命令|"
    r"\bCommand 'nvidia-smi' not found|\b[Uu]nknown command:? '?nvidia-smi|\"nvidia-smi\": executable file not found|"
    r"No such file or directory: b?'nvidia-smi'|'nvidia-smi' is not recognized|\bnvidia-smi: No such file"
)
_TIMED_OUT = re.compile(r"\bnvidia-smi\b.{0,200}\btimed out\b")
_EXIT_STATUS = re.compile(r"\bexit(?:ed with)?(?: non-zero)?(?: exit)? (?:status|code):? (\d{1,3})\b")
_BARE_NUMBER = re.compile(r"^\s*(\d{1,3})\s*$")
_NVML_FAILURE = re.compile(r"\bFailed to initialize NVML: (\S.{0,80}?)\s*$")
_NVML_LIBRARY = re.compile(r"^\s*NVML library version: (\d[\d.]*)\s*$")

# nvmlReturn_t of the texts that nvidia-smi prints when NVML does not start.
_NVML_CODES = {
    "insufficient permissions": (4, "NVML_ERROR_NO_PERMISSION"),
    "driver not loaded": (9, "NVML_ERROR_DRIVER_NOT_LOADED"),
    "gpu access blocked by the operating system": (17, "NVML_ERROR_OPERATING_SYSTEM"),
    "driver/library version mismatch": (18, "NVML_ERROR_LIB_RM_VERSION_MISMATCH"),
    "unknown error": (999, "NVML_ERROR_UNKNOWN"),
}

# The compute mode as the column `Compute M.` and as the query names it.
_COMPUTE_MODES = {
    "default": "default",
    "e. thread": "exclusive_thread",
    "e. process": "exclusive_process",
    "exclusive_thread": "exclusive_thread",
    "exclusive_process": "exclusive_process",
    "prohibited": "prohibited",
}
_COMPUTE_MODE = re.compile(r"(?:^|\s)(Default|E\. Thread|E\. Process|Prohibited)$")

# --query-gpu fields: the field of the fact and how its value reads.
_TEXT, _NUMBER, _SWITCH, _MODE = "text", "number", "switch", "mode"
_QUERY_FIELDS = {
    "index": ("index", _NUMBER),
    "name": ("name", _TEXT),
    "gpu_name": ("name", _TEXT),
    "uuid": ("uuid", _TEXT),
    "gpu_uuid": ("uuid", _TEXT),
    "pci.bus_id": ("bus_id", _TEXT),
    "gpu_bus_id": ("bus_id", _TEXT),
    "pci.device_id": ("device_id", _TEXT),
    "vbios_version": ("vbios", _TEXT),
    "compute_cap": ("sm", _TEXT),
    "memory.total": ("vram_mib", _NUMBER),
    "memory.used": ("vram_used_mib", _NUMBER),
    "temperature.gpu": ("temperature_c", _NUMBER),
    "power.draw": ("power_w", _NUMBER),
    "power.limit": ("power_limit_w", _NUMBER),
    "enforced.power.limit": ("power_limit_w", _NUMBER),
    "utilization.gpu": ("utilization_pct", _NUMBER),
    "persistence_mode": ("persistence", _SWITCH),
    "compute_mode": ("compute_mode", _MODE),
    "mig.mode.current": ("mig", _SWITCH),
    "ecc.mode.current": ("ecc", _SWITCH),
    "ecc.errors.uncorrected.volatile.total": ("ecc_uncorrected", _NUMBER),
    "pcie.link.gen.current": ("pcie_gen_current", _NUMBER),
    "pcie.link.gen.gpucurrent": ("pcie_gen_current", _NUMBER),
    "pcie.link.gen.max": ("pcie_gen_max", _NUMBER),
    "pcie.link.width.current": ("pcie_width_current", _NUMBER),
    "pcie.link.width.max": ("pcie_width_max", _NUMBER),
    "driver_version": ("driver_version", _TEXT),
    "driver_model.current": ("driver_model", _TEXT),
}
_QUERY_OTHER = re.compile(
    r"^(?:timestamp|count|serial|pstate|gpu_serial|fan\.speed|driver_model|display_(?:mode|active)|"
    r"(?:pci|vbios|memory|utilization|temperature|power|clocks|clocks_\w+_reasons|ecc|retired_pages|mig|gom|enforced|"
    r"accounting|encoder|inforom|pcie)[\w.]*)$"
)


@dataclass
class _Row:
    """Fields read so far about one thing, and where."""

    line: int
    fields: dict[str, Scalar | None]


@dataclass
class _Table:
    """One table, `-L` list or query answer: the state of the GPUs at one moment."""

    line: int
    date: tuple[int, ...] | None = None
    headed: bool = False
    driver: _Row | None = None
    gpus: list[_Row] = field(default_factory=list)
    indexes: set[int] = field(default_factory=set)
    migs: list[_Row] = field(default_factory=list)
    processes: list[_Row] = field(default_factory=list)
    selected: bool = False
    closed: bool = False
    processes_headed: bool = False
    processes_closed: bool = False
    scope: str | None = None

    def lists_all(self) -> bool:
        """Every GPU of the scope is here: head and end were seen, nothing was selected or is missing between."""
        indexes = [row.fields.get("index") for row in self.gpus]
        whole_list = bool(indexes) and indexes == list(range(len(indexes)))
        return whole_list and self.headed and self.closed and not self.selected


@dataclass
class _Run:
    """What became of nvidia-smi in one scope; the last word counts."""

    line: int
    state: str
    scope: str | None


def read(lines: Sequence[Line], source: str) -> list[Fact]:
    """Facts of every nvidia-smi output in the text; of several tables only the newest counts."""
    scan = _Scan()
    for line in lines:
        scan.feed(line)
    return list(_facts(scan, source))


class _Scan:
    """One pass over the lines; remembers the prompt, the open table and the open list."""

    def __init__(self) -> None:
        self.tables: list[_Table] = []
        self.lists: list[_Table] = []
        self.queries: dict[tuple[str, ...], _Table] = {}
        self.others: list[_Row] = []
        self.runs: dict[str | None, _Run] = {}
        self.return_codes: dict[str | None, int] = {}
        self.nvml: _Row | None = None
        self.nvml_library: _Row | None = None
        self.versions: _Row | None = None
        self.no_devices: int | None = None
        self.kernel_log_names_mismatch = False
        self._scope: str | None = None
        self._headed: str | None = None  # as the last heading above says
        self._selected = False
        self._asked: list[str] | None = None
        self._date: tuple[int, ...] | None = None
        self._header: list[str] | None = None
        self._after_smi = 0

    def feed(self, line: Line) -> None:
        """Look at one line with everything that may recognise it."""
        text = line.text
        self._after_smi -= 1
        if "API mismatch" in text:
            self.kernel_log_names_mismatch = True
        if text.lstrip().startswith(("|", "+")):
            self._boxed(line)
            return
        if self._query_row(line) or self._listed(line):
            return
        self._prompt(text)
        self._dated(text)
        if _SMI_VERSION.search(text) and _DRIVER_VERSION.search(text):
            self._header_line(line)
        self._outcome(line)
        self._dash_version(line)
        self._query_header(text)
        found = _NVTOP.search(text)
        if found:
            self.others.append(_Row(line.number, _nvtop(found, text)))

    # --- prompts and outcomes --------------------------------------------------------------------------------------

    def _prompt(self, text: str) -> None:
        heading = _SCOPE_HEADING.match(text)
        if heading:
            self._scope = self._headed = "host" if (heading[1] or heading[2]).lower() in _HOST_WORDS else "container"
            return
        found = _PROMPT.match(text)
        if found and (found["sign"] != "#" or found["tag"] or found["user"] or "nvidia-smi" in text):
            self._scope = _scope_of_prompt(found) or self._headed
        if "nvidia-smi" not in text:
            return
        if _CONTAINER_COMMAND.search(text):
            self._scope = "container"
        if found or text.lstrip().startswith(("nvidia-smi", "sudo ", "docker ", "!nvidia-smi")):
            self._selected = bool(_SELECTED.search(text))
            asked = _QUERY.search(text)
            self._asked = asked.group(1).strip(",").split(",") if asked else None
            if self._asked is not None and "noheader" in text:
                self._open_query(self._asked)

    def _dated(self, text: str) -> None:
        found = _DATE.match(text)
        if found and found.group(1) in _MONTHS:
            month, day, hour, minute, second, year = found.groups()
            self._date = (int(year), _MONTHS.index(month), int(day), int(hour), int(minute), int(second))

    def _outcome(self, line: Line) -> None:
        text = line.text
        if _FAILED.search(text) or _NO_DEVICES.match(text):
            self._ran(line.number, "failed")
            if _NO_DEVICES.match(text):
                self.no_devices = line.number
        elif _MISSING.search(text):
            self._ran(line.number, "missing")
        elif _TIMED_OUT.search(text):
            self._ran(line.number, "timeout")
        self._nvml(line)
        self._return_code(line)

    def _ran(self, number: int, state: str) -> None:
        self.runs[self._scope] = _Run(number, state, self._scope)
        self._after_smi = 4

    def _nvml(self, line: Line) -> None:
        found = _NVML_FAILURE.search(line.text)
        if found:
            code, name = _NVML_CODES.get(found.group(1).rstrip(".").lower(), (None, None))
            self.nvml = _Row(line.number, {"state": "failed", "code": code, "name": name})
        elif "NVIDIA-SMI couldn't find libnvidia-ml" in line.text:
            self.nvml = _Row(line.number, {"state": "missing", "code": 12, "name": "NVML_ERROR_LIBRARY_NOT_FOUND"})
        library = _NVML_LIBRARY.match(line.text)
        if library:
            self.nvml_library = _Row(line.number, {"part": "userspace", "version": library.group(1)})

    def _return_code(self, line: Line) -> None:
        found = _BARE_NUMBER.match(line.text) if self._after_smi > 0 else None
        if not found and "nvidia-smi" in line.text:
            found = _EXIT_STATUS.search(line.text)
        if found is None:
            if self._after_smi > 0 and (line.text.startswith("WARNING: ") or "echo $?" in line.text):
                self._after_smi = 4
            return
        code = int(found.group(1))
        self.return_codes[self._scope] = code
        self._after_smi = 0
        if self._scope not in self.runs:
            self.runs[self._scope] = _Run(line.number, "ok" if code == 0 else "failed", self._scope)

    def _dash_version(self, line: Line) -> None:
        found = _DASH_VERSION.match(line.text)
        if not found:
            return
        name, version = found.groups()
        if name == "NVIDIA-SMI":
            self.versions = _Row(line.number, {"vendor": "nvidia"})
        elif self.versions is not None and line.number - self.versions.line < 6:
            self.versions.fields["version" if name in {"DRIVER", "KMD"} else "cuda_max"] = version

    # --- the table -------------------------------------------------------------------------------------------------

    def _boxed(self, line: Line) -> None:
        text = line.text.strip()
        self._header = None
        if _BORDER.match(text):
            self._border(text)
            return
        if _SMI_VERSION.search(text):
            self._header_line(line)
            return
        cells = [cell.strip() for cell in text.strip("|").split("|")]
        first = cells[0].split()
        if len(cells) == 1:
            self._process_line(line, first)
        elif len(cells) == 3:
            self._gpu_line(line, cells, first)
        elif len(cells) >= 4:
            self._mig_line(line, cells, first)

    def _border(self, text: str) -> None:
        if not self.tables:
            return
        table = self.tables[-1]
        if text.startswith("+-") and table.processes_headed:
            table.processes_closed = True
        elif table.gpus:
            table.closed = True
        self._after_smi = 4

    def _header_line(self, line: Line) -> None:
        table = self._open_table(line)
        table.headed = True
        driver, cuda = _DRIVER_VERSION.search(line.text), _CUDA_VERSION.search(line.text)
        fields: dict[str, Scalar | None] = {"vendor": "nvidia"}
        fields["version"] = driver.group(1) if driver else None
        fields["cuda_max"] = cuda.group(1) if cuda else None
        if driver or cuda:
            table.driver = _Row(line.number, fields)

    def _open_table(self, line: Line) -> _Table:
        table = _Table(line.number, self._date, selected=self._selected, scope=self._scope)
        self._date = None
        self.tables.append(table)
        self._ran(line.number, "ok")
        return table

    def _gpu_line(self, line: Line, cells: list[str], first: list[str]) -> None:
        place = cells[1].split()
        if len(first) >= 3 and first[0].isdigit() and place and _BUS_ID.match(place[0]):
            self._gpu_row(line, cells, first, place)
        elif first[:2] == ["GPU", "Name"]:
            if not self.tables or self.tables[-1].gpus or self.tables[-1].driver is None:
                self._open_table(line)
            self.tables[-1].headed = True
        elif self.tables and self.tables[-1].gpus and not self.tables[-1].closed:
            _second_rows(self.tables[-1].gpus[-1].fields, cells)

    def _gpu_row(self, line: Line, cells: list[str], first: list[str], place: list[str]) -> None:
        index, mode = int(first[0][:6]), first[-1]
        if not self.tables or index in self.tables[-1].indexes:
            self._open_table(line)
        table = self.tables[-1]
        table.indexes.add(index)
        table.closed = False
        fields: dict[str, Scalar | None] = {
            "index": index,
            "name": " ".join(first[1:-1]),
            "vendor": "nvidia",
            "bus_id": place[0],
            "persistence": {"On": "enabled", "Off": "disabled"}.get(mode),
        }
        if len(place) > 1:
            fields["display_active"] = {"On": True, "Off": False}.get(place[1])
        if mode in {"WDDM", "TCC", "MCDM"} and table.driver is not None:
            table.driver.fields["model"] = mode
        fields["ecc"] = {"Off": "disabled", "On": "enabled"}.get(cells[2])
        if cells[2].isdigit() and len(cells[2]) < 10:
            fields["ecc"], fields["ecc_uncorrected"] = "enabled", int(cells[2])
        table.gpus.append(_Row(line.number, fields))

    def _mig_line(self, line: Line, cells: list[str], first: list[str]) -> None:
        memory = _MEMORY.search(cells[1])
        if self.tables and memory and len(first) == 4 and all(word.isdigit() and len(word) < 6 for word in first):
            gpu, gi, ci, dev = (int(word) for word in first)
            total = int(memory.group(2))
            fields: dict[str, Scalar | None] = {"gpu": gpu, "gi": gi, "ci": ci, "dev": dev, "mem_total_mib": total}
            self.tables[-1].migs.append(_Row(line.number, fields))

    def _process_line(self, line: Line, words: list[str]) -> None:
        if words[:1] == ["Processes:"] or (words[:1] == ["GPU"] and "PID" in words):
            if not self.tables:
                self._open_table(line)
            self.tables[-1].processes_headed = True
            return
        row = _process(words)
        if row is not None:
            if not self.tables:
                self._open_table(line)
            self.tables[-1].processes.append(_Row(line.number, row))

    # --- lists and queries -----------------------------------------------------------------------------------------

    def _listed(self, line: Line) -> bool:
        gpu = _LISTED_GPU.match(line.text)
        if gpu:
            index = int(gpu.group(1))
            if index == 0 or not self.lists or self.lists[-1].gpus[-1].fields["index"] == index:
                table = _Table(line.number, headed=True, closed=True, selected=self._selected, scope=self._scope)
                self.lists.append(table)
            uuid = gpu.group(3) if _UUID.match(gpu.group(3)) else None
            fields = {"index": index, "name": gpu.group(2).strip(), "vendor": "nvidia", "uuid": uuid}
            self.lists[-1].gpus.append(_Row(line.number, fields))
            self._ran(line.number, "ok")
            return True
        mig = _LISTED_MIG.match(line.text)
        if mig and self.lists:
            parent = self.lists[-1].gpus[-1].fields["index"]
            self.lists[-1].migs.append(
                _Row(line.number, {"gpu": parent, "dev": int(mig.group(2)), "name": mig.group(1)})
            )
        return bool(mig and self.lists)

    def _query_header(self, text: str) -> None:
        names = [part.strip().split(" [")[0] for part in text.split(",")] if len(text) < 2000 else []
        known = [name for name in names if name in _QUERY_FIELDS]
        if not known or not all(name in _QUERY_FIELDS or _QUERY_OTHER.match(name) for name in names):
            return
        distinctive = len(names) > 1 or "_" in names[0] or "." in names[0]
        if distinctive or names == self._asked:
            self._open_query(names)

    def _open_query(self, names: list[str]) -> None:
        self._header = names
        table = _Table(0, headed=True, closed=True, selected=self._selected, scope=self._scope)
        self.queries[tuple(names)] = table

    def _query_row(self, line: Line) -> bool:
        if self._header is None:
            return False
        values = [value.strip() for value in line.text.split(",")]
        if len(values) != len(self._header) or not values[0] or _PROMPT.match(line.text):
            self._header = None
            return False
        fields = _queried(self._header, values)
        if fields is None:
            self._header = None
            return False
        table = self.queries[tuple(self._header)]
        fields["vendor"] = "nvidia"
        fields.setdefault("index", None if table.selected else len(table.gpus))
        table.gpus.append(_Row(line.number, fields))
        self._ran(line.number, "ok")
        return True


def _scope_of_prompt(found: re.Match[str]) -> str | None:
    """`(container) $`, `(host) #` and root at a container's hexadecimal name say where they are; others do not."""
    tag = (found["tag"] or "").lower()
    if "container" in tag or "docker" in tag:
        return "container"
    if "host" in tag:
        return "host"
    return "container" if found["host"] and _CONTAINER_ID.match(found["host"]) else None


def _second_rows(fields: dict[str, Scalar | None], cells: list[str]) -> None:
    """The second row (fan, temperature, power, memory, load) and the third (MIG mode) of a GPU."""
    if not cells[0] and not cells[1]:
        mode = cells[2].rstrip("*").lower()
        fields["mig"] = mode if mode in {"enabled", "disabled"} else None
        return
    for name, pattern, cell in (
        ("temperature_c", _TEMPERATURE, cells[0]),
        ("power_w", _POWER, cells[0]),
        ("power_limit_w", _POWER_LIMIT, cells[0]),
        ("utilization_pct", _PERCENT, cells[2]),
    ):
        found = pattern.search(cell)
        fields[name] = int(found.group(1)) if found else None
    shared = _COMPUTE_MODE.search(cells[2])
    fields["compute_mode"] = _COMPUTE_MODES[shared.group(1).lower()] if shared else None
    memory = _MEMORY.search(cells[1])
    if memory:
        fields["vram_used_mib"], fields["vram_mib"] = int(memory.group(1)), int(memory.group(2))


def _process(words: list[str]) -> dict[str, Scalar | None] | None:
    """A row of the process table, with or without the MIG columns."""
    at = 1 if len(words) > 3 and _PROCESS_TYPE.match(words[2]) else 3
    if len(words) < at + 3 or not words[0].isdigit() or not words[at].isdigit():
        return None
    if not _PROCESS_TYPE.match(words[at + 1]) or len(words[at]) > 10 or len(words[0]) > 4:
        return None
    rest = words[at + 2 :]
    size = rest[-1]
    memory = int(size[:-3]) if size.endswith("MiB") and size[:-3].isdigit() and len(size) < 14 else None
    name = " ".join(rest[:-1]) if memory is not None or size == "N/A" else " ".join(rest)
    return {
        "gpu": int(words[0]),
        "pid": int(words[at]),
        "type": words[at + 1],
        "name": printed(name),
        "mem_mib": memory,
    }


def _queried(header: list[str], values: list[str]) -> dict[str, Scalar | None] | None:
    """The fields of one row, or None where the line is no row of this query."""
    fields: dict[str, Scalar | None] = {}
    for name, value in zip(header, values, strict=True):
        if name not in _QUERY_FIELDS or printed(value) is None:
            continue
        known, reading = _QUERY_FIELDS[name]
        fields[known] = _query_value(known, reading, value)
        if fields[known] is None:
            return None
    return fields or None


def _query_value(known: str, reading: str, value: str) -> Scalar | None:
    if known == "sm":
        return _capability(value)
    if known == "device_id":
        return device_id(value)
    if known == "name":
        return value if _PRODUCT.match(value) else None
    if reading == _MODE:
        return _COMPUTE_MODES.get(value.lower())
    if reading == _SWITCH:
        return value.lower() if value in {"Enabled", "Disabled"} else None
    return whole(value) if reading == _NUMBER else value


def _capability(value: str) -> int | None:
    """`8.9` as 89."""
    major, _, minor = value.partition(".")
    return int(major) * 10 + int(minor) if major.isdigit() and minor.isdigit() and len(value) < 6 else None


def _nvtop(found: re.Match[str], text: str) -> dict[str, Scalar | None]:
    load = _NVTOP_LOAD.search(text)
    return {
        "index": int(found.group(1)),
        "name": found.group(2).strip(),
        "pcie_gen_current": int(found.group(3)),
        "pcie_width_current": int(found.group(4)),
        "utilization_pct": int(load.group(1)) if load else None,
    }


# --- from what was seen to facts -----------------------------------------------------------------------------------


def _facts(scan: _Scan, source: str) -> Iterator[Fact]:
    yield from _outcome_facts(scan, source)
    yield from _driver_facts(scan, source)
    names = _whole_names(scan)
    newest = _newest([table for table in scan.tables if table.gpus])
    current = [table for table in (newest, *scan.lists[-1:], *scan.queries.values()) if table is not None]
    for table in current:
        for row in table.gpus:
            yield _gpu_fact(row, names, source)
    for row in _mig_rows(current):
        yield make("mig_device", READER, source, row.line, row.fields)
    for row in scan.others:
        yield make("gpu", READER, source, row.line, row.fields)
    processes = newest or _newest(scan.tables)
    if processes is not None:
        for row in processes.processes:
            yield make("process", READER, source, row.line, row.fields)
    complete = next((table.gpus[-1].line for table in current if table.lists_all()), scan.no_devices)
    if complete is not None:
        yield coverage("gpus", READER, source, complete)
    if processes is not None and processes.processes_closed and processes.headed and processes.scope != "container":
        # A container does not see the processes of others, so its table proves nothing.
        yield coverage("processes", READER, source, processes.line)


def _outcome_facts(scan: _Scan, source: str) -> Iterator[Fact]:
    host_untold = "container" in scan.runs and "host" not in scan.runs
    for scope, run in scan.runs.items():
        # Beside a run that is marked as the container's, one without a mark is the host's.
        told = "host" if scope is None and host_untold else scope
        fields: dict[str, Scalar | None] = {"state": run.state, "scope": told}
        fields["return_code"] = scan.return_codes.get(scope)
        yield make("nvidia_smi", READER, source, run.line, fields)
    if scan.nvml is not None:
        yield make("nvml", READER, source, scan.nvml.line, scan.nvml.fields)
    if scan.nvml_library is not None and not scan.kernel_log_names_mismatch:
        # Cut to two numbers from 535 on; where the kernel log names both sides whole, that is the better source.
        yield make("driver_part", READER, source, scan.nvml_library.line, scan.nvml_library.fields)


def _driver_facts(scan: _Scan, source: str) -> Iterator[Fact]:
    newest = _newest([table for table in scan.tables if table.driver is not None])
    if newest is not None and newest.driver is not None:
        yield make("driver", READER, source, newest.driver.line, newest.driver.fields)
    if scan.versions is not None and len(scan.versions.fields) > 1:
        yield make("driver", READER, source, scan.versions.line, scan.versions.fields)
    for row in (row for table in scan.queries.values() for row in table.gpus[:1]):
        version, model = row.fields.get("driver_version"), row.fields.get("driver_model")
        fields: dict[str, Scalar | None] = {"vendor": "nvidia", "version": version, "model": model}
        if version is not None or model is not None:
            yield make("driver", READER, source, row.line, fields)


def _newest(tables: list[_Table]) -> _Table | None:
    """The table with the latest date where all are dated, else the last one."""
    if not tables:
        return None
    if all(table.date is not None for table in tables):
        return max(reversed(tables), key=lambda table: table.date or ())
    return tables[-1]


def _whole_names(scan: _Scan) -> dict[Scalar | None, dict[str, int]]:
    """Names by index that are not cut, and the line of each: a second output often has what the table cuts."""
    names: dict[Scalar | None, dict[str, int]] = {}
    for table in (*scan.tables, *scan.lists, *scan.queries.values()):
        for row in table.gpus:
            name = row.fields.get("name")
            if isinstance(name, str) and not name.endswith("..."):
                names.setdefault(row.fields.get("index"), {})[name] = row.line
    return names


def _gpu_fact(row: _Row, names: dict[Scalar | None, dict[str, int]], source: str) -> Fact:
    fields = {key: value for key, value in row.fields.items() if not key.startswith("driver_")}
    name = fields.get("name")
    if isinstance(name, str) and name.endswith("..."):
        stem = name[:-3].rstrip()
        found = [item for item in names.get(fields.get("index"), {}).items() if item[0].startswith(stem)]
        if len(found) == 1:
            fact = make("gpu", READER, source, row.line, {**fields, "name": found[0][0]})
            place = Provenance("report", source, found[0][1], READER, ("name",))
            return Fact("gpu", fact.fields, (*fact.provenance, place))
    return make("gpu", READER, source, row.line, fields)


def _mig_rows(tables: list[_Table]) -> list[_Row]:
    """MIG devices; the profile that only `-L` prints joins the row of the table."""
    rows: dict[tuple[Scalar | None, Scalar | None], _Row] = {}
    for table in tables:
        for row in table.migs:
            key = row.fields.get("gpu"), row.fields.get("dev")
            known = rows.setdefault(key, _Row(row.line, {}))
            known.fields = {**row.fields, **known.fields}
    return list(rows.values())
