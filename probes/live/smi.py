"""Live probe through nvidia-smi, for a machine where NVML told nothing.

May live here: running nvidia-smi and relabelling what the readers of its texts found. Must not: its layouts.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from ...facts import Fact
from ..readers import nvidia_smi, nvidia_smi_q, topology
from ..readers.line import Line
from ..runner import Result
from .host import in_container
from .source import Machine, ProbeError, Stating

_SMI = Stating("nvidia_smi")
_READER = "nvidia-smi"
# What the long form says better than the table, which cuts names and rounds.
_IN_DETAIL = frozenset({"gpu", "process", "driver"})
_MAX_LINES = 20_000


def probe_nvidia_smi(machine: Machine, limit_s: float) -> list[Fact]:
    """What nvidia-smi prints, and what became of it."""
    if machine.system == "macos":
        return []
    end = time.monotonic() + limit_s
    result = machine.runner.run(["nvidia-smi"], limit_s=limit_s)
    if result.state == "permission":
        raise ProbeError(result.state, "nvidia-smi")
    facts = [*_outcome(machine, result), *_read(machine, result)]
    if result.state == "ok" and result.returncode == 0:
        return _with_detail(machine, facts, end)
    return facts


def _outcome(machine: Machine, result: Result) -> list[Fact]:
    if result.state == "too_large":
        # Its first lines are read all the same.
        return [_SMI.failure(ProbeError("too_large", "nvidia-smi"))]
    state = result.state if result.state != "ok" else "ok" if result.returncode == 0 else "failed"
    code = result.returncode if result.returncode is not None and result.returncode >= 0 else None
    scope = "container" if in_container(machine) else "host"
    return [
        _SMI.fact("nvidia_smi", _READER, state=state, return_code=code, scope=scope),
        _SMI.coverage("nvidia_smi", _READER),
    ]


def _read(machine: Machine, result: Result) -> list[Fact]:
    """What the table or a message says; what became of the run is known better than from its text."""
    lines = _lines(result.stdout, result.stderr)
    found = [fact for fact in nvidia_smi.read(lines, _READER) if fact.type != "nvidia_smi"]
    return _SMI.probed([*found, *machine.errors_in(lines, _READER)], _READER)


def _with_detail(machine: Machine, facts: list[Fact], end: float) -> list[Fact]:
    """The facts with those of the long form and of the matrix, where there is time for them."""
    log = machine.runner.run(["nvidia-smi", "-q"], limit_s=max(0.1, end - time.monotonic()))
    detail = nvidia_smi_q.read(_lines(log.stdout), _READER)
    detail = [fact for fact in detail if fact.type != "nvidia_smi"]
    told = {fact.type for fact in detail} & _IN_DETAIL if any(fact.type == "coverage" for fact in detail) else set()
    facts = [fact for fact in facts if fact.type not in told]
    if sum(fact.type == "gpu" for fact in detail) > 1:
        matrix = machine.runner.run(["nvidia-smi", "topo", "-m"], limit_s=max(0.1, end - time.monotonic()))
        detail += topology.read(_lines(matrix.stdout), _READER)
    known = {fact.get("domain") for fact in facts if fact.type == "coverage"}
    return facts + _SMI.probed((fact for fact in detail if fact.get("domain") not in known), _READER)


def _lines(*texts: str) -> Sequence[Line]:
    """The lines of a program's outputs; control characters have no place in facts."""
    every = [line for text in texts for line in text.splitlines()]
    return [Line(number, _plain(line)) for number, line in enumerate(every[:_MAX_LINES], 1)]


def _plain(text: str) -> str:
    return "".join(letter if letter.isprintable() or letter == "\t" else "\N{REPLACEMENT CHARACTER}" for letter in text)
