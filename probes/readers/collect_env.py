"""Reader of `python -m torch.utils.collect_env`: torch 1.0 to 2.15, CUDA, ROCm, XPU, CPU, Windows, macOS, and vLLM's.

May live here: the labels of that report and what their values say. Must not: environment variables of vLLM's last
section (environment.py) and its GPU topology (topology.py).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ...facts import Fact, Scalar
from .common import MACHINES, FactList, leading_number, package_name, vendor_of
from .emit import cuda_release, printed
from .line import Line

READER = "collect_env"

# Labels that no other program prints: one is enough. The others count only near one of these.
_STRONG = (
    "PyTorch version",
    "Is debug build",
    "CUDA used to build PyTorch",
    "ROCM used to build PyTorch",
    "Python platform",
    "Is CUDA available",
    "CUDA_MODULE_LOADING set to",
    "Nvidia driver version",
    "HIP runtime version",
    "MIOpen runtime version",
    "Is XNNPACK available",
    "Is XPU available",
    "Caching allocator config",
    "Versions of relevant libraries",
    "Intel GPU models onboard",
    "Intel GPU models detected",
    "vLLM Build Flags",
)
_WEAK = (
    "OS",
    "GCC version",
    "Clang version",
    "CMake version",
    "Libc version",
    "Python version",
    "CUDA runtime version",
    "GPU models and configuration",
    "Intel GPU driver version",
    "cuDNN version",
    "CPU",
    "Architecture",
    "CPU(s)",
    "Model name",
    "Core(s) per socket",
    "Socket(s)",
    "Name",
    "ROCM Version",
    "vLLM Version",
    "Neuron SDK Version",
    "GPU Topology",
)
_LABELS = {label.lower(): label for label in _STRONG + _WEAK}
_STRONG_SET = frozenset(_STRONG)
_CONTEXT = 40
# A report on one line: every label that may begin a value there, longest first.
_BREAKS = re.compile(
    r"(?:^|[ \t])(?P<label>"
    + "|".join(re.escape(label) for label in sorted(_STRONG + _WEAK[:10], key=len, reverse=True))
    + r")[ \t]*:(?: |$)|(?P<package>\[(?:pip3?|conda)\]) "
)
_LIST_ITEMS = re.compile(r"(?:^| )(?P<item>GPU [0-9]{1,3}: |/[^ ]*libcudnn[^ ]*)")

_GPU_ROW = re.compile(r"[ \t]{0,8}GPU (?P<index>[0-9]{1,3}): (?P<name>[^\t]{1,120})$", re.ASCII)
_MIG_ROW = re.compile(
    r"[ \t]{0,8}MIG (?P<name>[0-9]{1,2}(?:c\.[0-9]{1,2})?g\.[0-9]{1,4}gb[A-Za-z0-9+.]{0,12})"
    r"[ \t]+Device[ \t]+(?P<dev>[0-9]{1,2}):",
    re.ASCII,
)
_UUID_TAIL = re.compile(r" \(UUID: [^()]{1,80}\)?$")
_GFX_TAIL = re.compile(r"^(?P<name>.{0,120}?)[ \t]{0,4}\((?P<gfx>gfx[0-9a-f]{3,5})[^()]{0,40}\)$", re.ASCII)
_VERSION = re.compile(r"[0-9]+\.[0-9][0-9A-Za-z.+_-]{0,60}$", re.ASCII)
_DRIVER = re.compile(r"[0-9]{2,4}\.[0-9]{1,3}(?:\.[0-9]{1,3})?$", re.ASCII)
_PYTHON = re.compile(r"(?P<version>[23]\.[0-9]{1,2}(?:\.[0-9]{1,2}[0-9a-z+]{0,6})?)(?:[ \t|]|$)", re.ASCII)
_BITS = re.compile(r"\((?P<bits>32|64)-bit runtime\)")
_LINUX_PLATFORM = re.compile(
    r"[Ll]inux-(?P<kernel>.{1,120})-(?P<machine>x86_64|aarch64|ppc64le|i686|armv7l|s390x|riscv64)-with(?:-.{0,80}|$)"
)
_WINDOWS_PLATFORM = re.compile(r"Windows-[0-9A-Za-z]{1,12}-(?P<build>10\.0\.[0-9]{4,6})", re.ASCII)
_WINDOWS_BUILD = re.compile(r"\((?P<build>10\.0\.[0-9]{4,6})", re.ASCII)
_OS_MACHINE = re.compile(r"\((?P<machine>x86_64|aarch64|arm64|ppc64le|i686)\)$")
_MSC_MACHINE = re.compile(r"\((?P<machine>AMD64|ARM64|Intel)\)\]")
_COMPILER = re.compile(r"(?:^|\) )(?P<version>[0-9]{1,2}\.[0-9]{1,2}(?:\.[0-9]{1,2})?)", re.ASCII)
_CUDNN_FILE = re.compile(r"(?:/|[A-Za-z]:\\)[^\t]{0,300}cudnn[^\t]{0,80}$")
_PIP_ROW = re.compile(
    r"\[pip3?\] (?P<name>[A-Za-z0-9][A-Za-z0-9._-]{0,80})==(?P<version>[0-9][0-9A-Za-z.+!_-]{0,80})$", re.ASCII
)
_CONDA_ROW = re.compile(
    r"\[conda\] (?P<name>[A-Za-z0-9_][A-Za-z0-9._-]{0,80})[ \t]+(?P<version>[0-9][0-9A-Za-z.+!_-]{0,80})[ \t]+"
    r"(?P<build>[^ \t]{1,80})(?:[ \t]+(?P<channel>[^ \t]{1,120}))?$",
    re.ASCII,
)
_CUDA_ARCHS = re.compile(r"[ \t]{0,8}CUDA Archs: (?P<archs>[0-9][0-9A-Za-z. +]{0,200});")
_XPU_DEVICE = re.compile(r"\* \[(?P<index>[0-9]{1,2})\] _XpuDeviceProperties\(", re.ASCII)
_XPU_FIELD = re.compile(r"\b(?P<key>name|driver_version|total_memory)='?(?P<value>[^',]{1,120})")
_BANNER = re.compile(r"={10,}$")

_DISTROS = (
    ("ubuntu", "ubuntu"), ("debian", "debian"), ("centos", "centos"), ("red hat", "rhel"), ("rhel", "rhel"),
    ("rocky", "rocky"), ("alma", "almalinux"), ("fedora", "fedora"), ("arch linux", "arch"), ("manjaro", "manjaro"),
    ("endeavouros", "endeavouros"), ("cachyos", "cachyos"), ("opensuse", "opensuse"), ("suse", "sles"),
    ("amazon linux", "amzn"), ("oracle linux", "ol"), ("pop!_os", "pop"), ("linux mint", "linuxmint"),
    ("nixos", "nixos"), ("gentoo", "gentoo"), ("tencentos", "tencentos"), ("alibaba", "alinux"), ("kylin", "kylin"),
    ("openeuler", "openEuler"), ("kali", "kali"), ("photon", "photon"), ("mariner", "mariner"),
    ("azure linux", "azurelinux"),
)  # fmt: skip
_DISTRO_VERSION = re.compile(r" (?P<version>[0-9]{1,4}(?:\.[0-9]{1,2}){0,2})", re.ASCII)


@dataclass(frozen=True, slots=True)
class _Item:
    """A line of the report: its label ("" for a line without one) and the text after the colon."""

    line: Line
    label: str
    value: str


def read(lines: Sequence[Line], source: str) -> list[Fact]:
    """Facts of every collect_env report in the text, whole or cut."""
    out = FactList(source, READER)
    block: _Block | None = None
    for item in _items(lines):
        if block is None or (item.label and item.label in block.seen and item.label in _STRONG_SET):
            block = _Block(out)
        block.read(item)
    if block is not None:
        block.end()
    return out.facts


def _items(lines: Sequence[Line]) -> Iterator[_Item]:
    """The lines that belong to reports: near a label that only collect_env prints, or package rows."""
    items = [_item(part) for line in lines for part in _restore_breaks(line)]
    if items:
        items[0] = _cut_label(items[0])
    strong = [number for number, item in enumerate(items) if item.label in _STRONG_SET]
    position = 0
    for number, item in enumerate(items):
        while position < len(strong) and strong[position] < number:
            position += 1
        near = any(
            abs(strong[other] - number) <= _CONTEXT for other in (position - 1, position) if 0 <= other < len(strong)
        )
        if near or item.line.text.startswith("["):
            yield item


def _item(line: Line) -> _Item:
    head, colon, tail = line.text[:60].partition(":")
    label = _LABELS.get(head.strip(" \t*-").lower(), "") if colon else ""
    if not label:
        bare = line.text.strip()
        label = bare if bare == "Versions of relevant libraries" else ""
        return _Item(line, label, "")
    return _Item(line, label, (tail + line.text[60:]).strip())


def _cut_label(item: _Item) -> _Item:
    """A paste that begins inside a label: `hon version: 3.12.2` can only be one of them."""
    head, colon, tail = item.line.text.partition(":")
    head = head.strip().lower()
    if item.label or not colon or len(head) < 4:
        return item
    whole = [label for key, label in _LABELS.items() if key.endswith(head)]
    return _Item(item.line, whole[0], tail.strip()) if len(whole) == 1 else item


def _restore_breaks(line: Line) -> list[Line]:
    """A report whose line breaks became blanks: a new line before each known label and list item."""
    if len(line.text) < 200:
        return [line]
    starts = [match.start("label" if match.group("label") else "package") for match in _BREAKS.finditer(line.text)]
    if len(starts) < 4:
        return [line]
    bounds = sorted({0, len(line.text), *starts, *(match.start("item") for match in _LIST_ITEMS.finditer(line.text))})
    return [Line(line.number, line.text[a:b].strip()) for a, b in pairwise(bounds)]


class _Block:
    """One report while it is read: which labels were seen and what a continuation line belongs to."""

    def __init__(self, out: FactList) -> None:
        self._out = out
        self.seen: set[str] = set()
        self._list = ""
        self._list_line: Line | None = None
        self._indices: list[int] = []
        self._mig_parent = 0
        self._cpu: dict[str, int] = {}
        self._cpu_line: Line | None = None
        self._in_cpu = False

    def read(self, item: _Item) -> None:
        """Read one line of the report."""
        if not item.label:
            self._continuation(item.line)
            return
        self._close_list()
        self.seen.add(item.label)
        handler = _HANDLERS.get(item.label)
        if handler is not None:
            handler(self, item)

    def end(self) -> None:
        """The text ends here; a list that was still open may go on elsewhere."""
        self._list = ""
        self.leave_cpu()

    # --- values of labels ---------------------------------------------------------------------------------------

    def torch_version(self, item: _Item) -> None:
        value = printed(item.value)
        if value and _VERSION.match(value):
            self._out.add("torch", {"version": value}, item.line)

    def cuda_build(self, item: _Item) -> None:
        value = printed(item.value)
        if value and _VERSION.match(value):
            self._out.add("torch", {"cuda": cuda_release(value), "cuda_built": True}, item.line)
        elif item.value.lower() in ("none", "n/a"):
            self._out.add("torch", {"cuda_built": False}, item.line)

    def hip_build(self, item: _Item) -> None:
        value = printed(item.value)
        if value and _VERSION.match(value):
            self._out.add("torch", {"hip": value, "hip_built": True}, item.line)
        elif item.value.lower() in ("none", "n/a"):
            self._out.add("torch", {"hip_built": False}, item.line)

    def boolean(self, field: str, item: _Item) -> None:
        value = {"true": True, "yes": True, "false": False, "no": False}.get(item.value.lower())
        self._out.add("torch", {field: value}, item.line)

    def system(self, item: _Item) -> None:
        name = printed(item.value)
        if name is None:
            return
        machine = _OS_MACHINE.search(name)
        build = _WINDOWS_BUILD.search(name)
        family = _family(name, machine is not None)
        distro, version = _distro(name) if family == "linux" else (None, None)
        self._out.add(
            "os",
            {
                "name": name,
                "family": family,
                "machine": machine.group("machine") if machine else None,
                "distro": distro,
                "distro_version": version,
                "windows_build": build.group("build") if build else None,
            },
            item.line,
        )

    def platform(self, item: _Item) -> None:
        if match := _LINUX_PLATFORM.match(item.value):
            kernel = match.group("kernel")
            lowered = kernel.lower()
            wsl = "microsoft" in lowered or lowered.endswith("wsl2")
            self._out.add("kernel", {"release": kernel, "version": leading_number(kernel)}, item.line)
            self._out.add(
                "os",
                {
                    "family": "linux",
                    "machine": MACHINES.get(match.group("machine")),
                    "wsl": wsl,
                    "jetson": "tegra" in lowered,
                },
                item.line,
            )
            if "wsl2" in lowered:
                self._out.add("wsl", {"version": 2, "kernel": leading_number(kernel)}, item.line)
        elif match := _WINDOWS_PLATFORM.match(item.value):
            self._out.add("os", {"family": "windows", "windows_build": match.group("build")}, item.line)
        elif item.value.startswith(("macOS-", "Darwin-")):
            machine = "arm64" if "arm64" in item.value else "x86_64" if "x86_64" in item.value else None
            self._out.add("os", {"family": "macos", "machine": machine}, item.line)

    def compiler(self, name: str, item: _Item) -> None:
        text = printed(item.value)
        if text:
            match = _COMPILER.search(text)
            version = match.group("version") if match else None
            self._out.add("compiler", {"name": name, "text": text, "version": version}, item.line)

    def libc(self, item: _Item) -> None:
        text = printed(item.value)
        if text:
            self._out.add("libc", {"text": text, "version": leading_number(text.rpartition("-")[2])}, item.line)

    def python(self, item: _Item) -> None:
        match = _PYTHON.match(item.value)
        if match is None:
            return
        bits = _BITS.search(item.value)
        machine = _MSC_MACHINE.search(item.value)
        conda = "packaged by Anaconda" in item.value or "packaged by conda-forge" in item.value
        self._out.add(
            "python",
            {
                "version": match.group("version"),
                "bits": int(bits.group("bits")) if bits else None,
                "environment": "conda" if conda else None,
            },
            item.line,
        )
        if machine:
            self._out.add("os", {"machine": MACHINES.get(machine.group("machine").lower())}, item.line)

    def toolkit(self, item: _Item) -> None:
        value = printed(item.value)
        if value and _VERSION.match(value):
            release = ".".join(value.split(".")[:2])
            self._out.add("cuda_toolkit", {"version": value, "release": release}, item.line)

    def driver(self, item: _Item) -> None:
        if _DRIVER.match(item.value):
            self._out.add("driver", {"vendor": "nvidia", "version": item.value}, item.line)

    def runtime(self, field: str, item: _Item) -> None:
        value = printed(item.value)
        if value and _VERSION.match(value):
            self._out.add("rocm", {field: value}, item.line)

    def gpus(self, item: _Item) -> None:
        self._open_list("gpus", item.line)
        if printed(item.value):
            self._gpu(item.value, item.line)

    def cudnn(self, item: _Item) -> None:
        self._open_list("cudnn", item.line)
        self._cudnn_file(item.value, item.line)

    def xpus(self, item: _Item) -> None:
        self._open_list("xpus", item.line)

    def vllm(self, item: _Item) -> None:
        value = printed(item.value)
        if value and value[0].isdigit():
            self._out.add("vllm", {"version": value.split()[0]}, item.line)

    def enter_cpu(self) -> None:
        self._in_cpu = True

    def architecture(self, item: _Item) -> None:
        if self._in_cpu:
            self._out.add("os", {"machine": MACHINES.get(item.value.lower())}, item.line)

    def cpu_name(self, item: _Item) -> None:
        name = printed(item.value)
        if self._in_cpu and name:
            self._out.add("cpu", {"name": name}, item.line)

    def cpu_count(self, item: _Item) -> None:
        if self._in_cpu and item.value.isascii() and item.value.isdigit() and len(item.value) < 7:
            self._cpu[item.label] = int(item.value)
            self._cpu_line = item.line

    def leave_cpu(self) -> None:
        self._in_cpu = False
        cores = self._cpu.get("Core(s) per socket")
        sockets = self._cpu.get("Socket(s)")
        total = cores * sockets if cores and sockets else None
        self._out.add("cpu", {"threads": self._cpu.get("CPU(s)"), "cores": total}, self._cpu_line)
        self._cpu = {}

    # --- lines without a label ----------------------------------------------------------------------------------

    def _continuation(self, line: Line) -> None:
        text = line.text
        if text.startswith("["):
            self._close_list()
            self._package(line)
        elif self._list == "gpus":
            self._gpu(text, line)
        elif self._list == "cudnn":
            self._cudnn_file(text, line)
        elif self._list == "xpus":
            self._xpu(line)
        elif match := _CUDA_ARCHS.match(text):
            self._out.add("vllm", {"cuda_archs": match.group("archs")}, line)
        elif _BANNER.match(text):
            self._in_cpu = False
        elif text.strip() == "CPU Info":
            self._in_cpu = True

    def _package(self, line: Line) -> None:
        if match := _PIP_ROW.match(line.text):
            name, version = match.group("name", "version")
            self._out.add("package", {"name": package_name(name), "version": version, "manager": "pip"}, line)
        elif match := _CONDA_ROW.match(line.text):
            build, channel = match.group("build"), match.group("channel")
            if build == "<pip>":
                build, channel = None, "pypi"
            self._out.add(
                "package",
                {
                    "name": package_name(match.group("name")),
                    "version": match.group("version"),
                    "manager": "conda",
                    "build": build,
                    "channel": channel,
                },
                line,
            )

    def _gpu(self, text: str, line: Line) -> None:
        if match := _MIG_ROW.match(text):
            fields = {"gpu": self._mig_parent, "dev": int(match.group("dev")), "name": match.group("name")}
            self._out.add("mig_device", fields, line)
            return
        if match := _GPU_ROW.match(text):
            index = int(match.group("index"))
            name = _UUID_TAIL.sub("", match.group("name")).strip()
            self._indices.append(index)
            self._mig_parent = index
            self._out.add("gpu", {"index": index, "vendor": "nvidia", **_gpu_name(name)}, line)
            return
        # torch prints the bare name of its current device where there is no nvidia-smi (ROCm).
        name_fields = _gpu_name(text.strip())
        if "gfx" in name_fields or vendor_of(text) is not None:
            vendor = "amd" if "gfx" in name_fields else vendor_of(text)
            self._out.add("gpu", {"index": len(self._indices), "vendor": vendor, **name_fields}, line)
            self._indices.append(-1)

    def _cudnn_file(self, text: str, line: Line) -> None:
        if match := _CUDNN_FILE.match(text.strip()):
            self._out.add("cudnn_file", {"path": match.group()}, line)

    def _xpu(self, line: Line) -> None:
        match = _XPU_DEVICE.match(line.text.strip())
        if match is None:
            return
        values = {field.group("key"): field.group("value") for field in _XPU_FIELD.finditer(line.text)}
        memory = values.get("total_memory", "").removesuffix("MB")
        self._out.add(
            "gpu",
            {
                "index": int(match.group("index")),
                "vendor": "intel",
                "name": values.get("name"),
                "vram_mib": int(memory) if memory.isascii() and memory.isdigit() else None,
            },
            line,
        )
        self._out.add("driver", {"vendor": "intel", "version": values.get("driver_version")}, line)

    # --- lists --------------------------------------------------------------------------------------------------

    def _open_list(self, name: str, line: Line) -> None:
        self._list = name
        self._list_line = line
        self._indices = []

    def _close_list(self) -> None:
        """The next label: nvidia-smi's list was printed whole when its numbers leave no gap."""
        if self._list == "gpus" and self._indices and self._indices == list(range(len(self._indices))):
            self._out.coverage("gpus", True, self._list_line)
        self._list = ""


_HANDLERS: dict[str, Callable[[_Block, _Item], None]] = {
    "PyTorch version": _Block.torch_version,
    "CUDA used to build PyTorch": _Block.cuda_build,
    "ROCM used to build PyTorch": _Block.hip_build,
    "Is debug build": lambda block, item: block.boolean("debug", item),
    "Is CUDA available": lambda block, item: block.boolean("cuda_available", item),
    "Is XPU available": lambda block, item: block.boolean("xpu_available", item),
    "OS": _Block.system,
    "Python platform": _Block.platform,
    "GCC version": lambda block, item: block.compiler("gcc", item),
    "Clang version": lambda block, item: block.compiler("clang", item),
    "Libc version": _Block.libc,
    "Python version": _Block.python,
    "CUDA runtime version": _Block.toolkit,
    "Nvidia driver version": _Block.driver,
    "HIP runtime version": lambda block, item: block.runtime("hip_runtime", item),
    "MIOpen runtime version": lambda block, item: block.runtime("miopen", item),
    "ROCM Version": lambda block, item: block.runtime("version", item),
    "GPU models and configuration": _Block.gpus,
    "Intel GPU models detected": _Block.xpus,
    "cuDNN version": _Block.cudnn,
    "vLLM Version": _Block.vllm,
    "CPU": lambda block, _item: block.enter_cpu(),
    "Architecture": _Block.architecture,
    "Model name": _Block.cpu_name,
    "Name": _Block.cpu_name,
    "CPU(s)": _Block.cpu_count,
    "Core(s) per socket": _Block.cpu_count,
    "Socket(s)": _Block.cpu_count,
    "Versions of relevant libraries": lambda block, _item: block.leave_cpu(),
}


def _gpu_name(text: str) -> dict[str, Scalar]:
    """Name and gfx target of `AMD Radeon Graphics (gfx1151)`; features after the target are dropped."""
    match = _GFX_TAIL.match(text)
    if match is None:
        return {"name": text}
    fields: dict[str, Scalar] = {"gfx": match.group("gfx")}
    if match.group("name"):
        fields["name"] = match.group("name")
    return fields


def _family(name: str, has_machine: bool) -> str | None:
    """The OS family of a name that may be mojibake: only its Latin words count."""
    lowered = name.lower()
    if "windows" in lowered:
        return "windows"
    if lowered.startswith(("macos", "mac os")):
        return "macos"
    known = any(word in lowered for word, _ in _DISTROS)
    return "linux" if known or has_machine or "linux" in lowered else None


def _distro(name: str) -> tuple[str | None, str | None]:
    lowered = name.lower()
    distro = next((identifier for word, identifier in _DISTROS if word in lowered), None)
    match = _DISTRO_VERSION.search(name)
    version = match.group("version") if match else None
    if distro == "ubuntu" and version:
        # os-release says 22.04 where the name says 22.04.5.
        version = ".".join(version.split(".")[:2])
    return distro, version
