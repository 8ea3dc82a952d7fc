"""Readers of pasted text: bytes in, facts out. One module a layout; every reader scans all lines for its own.

May live here: the dispatcher. Must not: layouts, rules. Knowledge (signatures) is passed in as data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module

from ...facts import Entry, Fact
from . import clean as cleaning
from . import errors
from .common import merge_equal
from .line import Line
from .signatures import Signatures


@dataclass(frozen=True, slots=True)
class _Layout:
    """A reader's module, and texts of which its layout always holds one; an empty tuple where that cannot be said.

    The module is imported when such a text comes: compiling the patterns of all readers takes longer than reading.
    """

    name: str
    marks: tuple[str, ...] = ()

    def read(self, lines: Sequence[Line], source: str) -> list[Fact]:
        """The facts that the reader finds."""
        found: list[Fact] = import_module(f".{self.name}", __name__).read(lines, source)
        return found


_LAYOUTS = (
    _Layout("collect_env"),
    _Layout("nvidia_smi", ("NVIDIA", "nvidia", "NVML", "No devices", "GPU-", "MiB", "PCIe GEN", "memory.")),
    _Layout("nvidia_smi_q", (" : ", "<gpu")),
    _Layout("topology", ("GPU",)),
    _Layout(
        "kernel_log",
        (
            "Xid", "NVRM", "nvidia", "nouveau", "amdgpu", "i915", "xe ", "Linux version", "ainted", "Hardware name",
            "DMI:", "class 0x03", "version", "could not insert",
        ),
    ),
    _Layout("lspci", (":",)),
    _Layout("lsmod", ("Used by", "oading 0x", " Live 0x", "nvidia", "amdgpu", "nouveau")),
    _Layout("nccl_log", ("NCCL", "NET/", "Rank", "cudaDriverVersion", "srun", "GPU Direct", "per node")),
    _Layout("watchdog", ("Watchdog caught", "last enqueued")),
    _Layout("programs", ("would exceed allowed memory", "**Name:** cuda:")),
    _Layout("rocm", ("ROC", "roc", "HSA", "Agent", "GPU", "gfx", "amdgpu", "HIP version", "Device ")),
    _Layout("packages"),
    _Layout(
        "system",
        ("uname", "GNU/Linux", "(release), REVISION", "nvidia", "Python ", "WSL", ":\\", "/dev/shm", "SecureBoot "),
    ),
    _Layout(
        "windows",
        (
            "DriverVersion", "NumberOfCores", "Caption", "OS Name", "OS Version", "OS 名称", "Betriebssystem",
            "Card name", "PNP", "OSArchitecture", "REG_", "LongPathsEnabled", "HwSchMode", "Operating System: Win",
        ),
    ),
    _Layout("macos", ("Darwin ", "ProductVersion", "Chipset Model", "machdep.cpu", "System Version: macOS", "hw.mem")),
    _Layout("environment", ("=", "ENV", "env", "echo")),
    _Layout("container_run", ("docker run", "docker create", "docker container", "podman run", "nerdctl run")),
    _Layout("torch_shell", ("torch", "vailable", "ount")),
)  # fmt: skip


_ABOUT_SYSTEM = ("system", "windows", "macos")


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says. `layouts`: which readers found something; `entries`: what its author wrote into a form, on
    lines of which no fact was made; `refused`: why nothing was read.
    """

    facts: tuple[Fact, ...]
    layouts: tuple[str, ...]
    truncated: bool = False
    refused: str | None = None
    entries: tuple[Entry, ...] = ()


def read_text(
    data: bytes | str, source: str, signatures: Signatures, tick: Callable[[], None] = lambda: None
) -> Reading:
    """Facts of a pasted text, recognised by content; one text may mix several outputs.

    `tick` is called before each layout's turn and while the text is cleaned; what it raises ends the reading.
    """
    from .form import entries  # compiles patterns: see _Layout

    cleaned = cleaning.clean(data, tick)
    if cleaned.refused:
        return Reading((), (), cleaned.truncated, cleaned.refused)
    facts: list[Fact] = []
    layouts: list[str] = []
    text = "\n".join(line.text for line in cleaned.lines)
    for layout in _LAYOUTS:
        if layout.marks and not any(mark in text for mark in layout.marks):
            continue
        tick()
        found = layout.read(cleaned.lines, source)
        if found:
            layouts.append(layout.name)
            facts.extend(found)
    tick()
    found = errors.read(cleaned.lines, source, signatures)
    if found:
        layouts.append("errors")
        facts.extend(found)
    kept = merge_equal(_without_coarser(_without_side_remarks(facts)))
    taken = {origin.line for fact in kept for origin in fact.provenance if origin.line is not None}
    return Reading(
        tuple(kept), tuple(layouts), cleaned.truncated, entries=tuple(entries(cleaned.lines, frozenset(taken)))
    )


def _without_side_remarks(facts: Sequence[Fact]) -> list[Fact]:
    """Drop what a prompt, a banner or the system itself says of the system where a report of torch tells it."""
    told = {fact.type for fact in facts if fact.provenance[0].reader == "collect_env"}
    asides = {"os", "python", "cpu"} & told
    return [fact for fact in facts if fact.provenance[0].reader not in _ABOUT_SYSTEM or fact.type not in asides]


def _without_coarser(facts: Sequence[Fact]) -> list[Fact]:
    """Drop a Python version read from a path (3.12) where another place gives it in full (3.12.4)."""
    versions = {str(fact.fields["version"]) for fact in facts if fact.type == "python" and "version" in fact.fields}
    return [
        fact
        for fact in facts
        if fact.type != "python"
        or fact.provenance[0].reader != errors.READER
        or not any(version.startswith(f"{fact.fields['version']}.") for version in versions)
    ]
