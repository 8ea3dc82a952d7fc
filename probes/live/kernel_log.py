"""Live probe of the kernel's messages about GPUs since the driver was loaded.

May live here: running dmesg or journalctl, and which of their lines speak of the present. Must not: what a line states
(readers), what an event means.

The log is long, holds names of hosts and devices, and remembers what has passed. So only lines of GPU drivers are read,
from the last time NVIDIA's module was loaded on, and what a program once did wrong counts for an hour.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from ...facts import Fact
from ..readers import kernel_log
from ..readers.line import Line
from ..runner import Result
from .source import Machine, ProbeError, Stating

_LOG = Stating("kernel_log")
_COMMANDS = (
    ("dmesg",),
    ("journalctl", "-k", "-b", "-q", "--no-pager", "--no-hostname", "-o", "short-monotonic", "-n", "50000"),
)
_MAX_BYTES = 16 << 20
_OURS = re.compile(r"NVRM|[Xx]id|nvidia|nouveau|amdgpu|\bi915|\bxe ")
_LOADS = "Nvlink Core is being initialized"
_TIME = re.compile(r"^[^\[\]]{0,16}\[ {0,8}(?P<seconds>[0-9]{1,10})\.[0-9]{1,9}\]")
_EVENT = re.compile(r"\bS?Xid \(")
_RECENT_S = 3600.0
_MAX_LINES = 5000
_REFUSED = ("not permitted", "Permission denied", "No journal files were opened", "users in groups")
# What other probes see as it is now.
_NOT_FROM_LOG = frozenset({"kernel", "board", "module", "pci_device", "driver_part"})


def probe_kernel_log(machine: Machine, limit_s: float) -> list[Fact]:
    """Xid events and the messages of GPU drivers, through dmesg, or the journal where only that may be read."""
    end = time.monotonic() + limit_s
    refused = False
    for command in _COMMANDS:
        result = machine.runner.run(command, limit_s=max(0.1, end - time.monotonic()), max_bytes=_MAX_BYTES)
        if _readable(result):
            return _facts(machine, result, command[0])
        refused = refused or result.state == "permission" or any(word in result.stderr for word in _REFUSED)
        if result.state == "timeout":
            raise ProbeError("timeout", command[0])
    raise ProbeError("permission" if refused else "missing", "dmesg and journalctl")


def _readable(result: Result) -> bool:
    return result.state in ("ok", "too_large") and bool(result.stdout.strip()) and result.returncode in (0, None)


def _facts(machine: Machine, result: Result, reader: str) -> list[Fact]:
    text = result.stdout.splitlines()
    lines = _present(text)
    facts = [fact for fact in kernel_log.read(lines, reader) if fact.type not in _NOT_FROM_LOG]
    uptime = _uptime(machine)
    facts += machine.errors_in([line for line in lines if _counts(line.text, uptime)], reader)
    whole = result.state == "ok" and _from_the_start(text)
    return [*_LOG.probed(facts, reader), _LOG.coverage("kernel_log", reader, complete=whole)]


def _present(text: Sequence[str]) -> list[Line]:
    """The lines of GPU drivers from the last load of NVIDIA's module on."""
    ours = [Line(number, line) for number, line in enumerate(text, 1) if _OURS.search(line)]
    loads = [place for place, line in enumerate(ours) if _LOADS in line.text]
    start = loads[-1] if loads else 0
    return ours[start:][-_MAX_LINES:]


def _counts(text: str, uptime: float | None) -> bool:
    """Whether an error line counts: an event of a program is past after an hour, a refusal of a GPU stays."""
    if not _EVENT.search(text):
        return True
    found = _TIME.match(text)
    return found is None or uptime is None or uptime - float(found["seconds"]) <= _RECENT_S


def _uptime(machine: Machine) -> float | None:
    words = (machine.text("/proc/uptime") or "").split()
    try:
        return float(words[0])
    except (IndexError, ValueError):
        return None


def _from_the_start(text: Sequence[str]) -> bool:
    """Whether the log reaches back to the start of the kernel: the oldest lines of a full buffer are gone."""
    return any("Linux version " in line for line in text[:5])
