"""Live probe of macOS: system, processor, memory and GPU, through its own commands.

May live here: which commands are run. Must not: the layouts that they print (readers/macos.py), judgement.
"""

from __future__ import annotations

import time

from ...facts import Fact
from ..readers.line import Line
from .source import Machine, ProbeError, Stating

_MACOS = Stating("macos")
_NAMES = ("hw.memsize", "hw.physicalcpu", "hw.logicalcpu", "hw.optional.arm64", "machdep.cpu.brand_string")
_COMMANDS = (
    ("sw_vers",),
    ("sysctl", *_NAMES),
    ("system_profiler", "SPHardwareDataType", "SPDisplaysDataType"),
)
_LIMIT_S = 7.0


def probe_macos(machine: Machine, limit_s: float) -> list[Fact]:
    """What macOS tells of itself; nothing on another system."""
    if machine.system != "macos":
        return []
    from ..readers import macos  # only where macOS is: compiling its patterns takes time

    end = time.monotonic() + min(limit_s, _LIMIT_S)
    text: list[str] = []
    state = "missing"
    for argv in _COMMANDS:
        result = machine.runner.run(argv, limit_s=max(0.1, end - time.monotonic()))
        text += result.stdout.splitlines()
        state = result.state if result.state != "ok" else state
    lines = [Line(number, line) for number, line in enumerate(text, 1)]
    facts = _MACOS.probed(macos.read(lines, "macos"), "sw_vers, sysctl, system_profiler")
    if not facts:
        raise ProbeError(state, "sw_vers, sysctl, system_profiler")
    if any(fact.type == "gpu" for fact in facts):
        facts.append(_MACOS.coverage("gpus", "system_profiler"))
    return facts
