"""Live probe through nvidia-smi, for a machine where NVML told nothing.

May live here: running nvidia-smi and relabelling what the reader of its text found. Must not: its layouts.
"""

from __future__ import annotations

from dataclasses import replace

from ...facts import Fact
from ..readers import nvidia_smi
from ..readers.line import Line
from .host import in_container
from .source import Machine, ProbeError, Stating

_SMI = Stating("nvidia_smi")


def probe_nvidia_smi(machine: Machine, limit_s: float) -> list[Fact]:
    """What nvidia-smi prints, and what became of it."""
    if machine.system == "macos":
        return []
    result = machine.runner.run(["nvidia-smi"], limit_s=limit_s)
    if result.state in ("too_large", "permission"):
        raise ProbeError(result.state, "nvidia-smi")
    state = result.state if result.state != "ok" else "ok" if result.returncode == 0 else "failed"
    code = result.returncode if result.returncode is not None and result.returncode >= 0 else None
    own = _SMI.fact(
        "nvidia_smi",
        "nvidia-smi",
        state=state,
        return_code=code,
        scope="container" if in_container(machine) else "host",
    )
    lines = [Line(number, text) for number, text in enumerate(result.stdout.splitlines(), 1)]
    read = [_probed(fact) for fact in nvidia_smi.read(lines, "nvidia-smi") if fact.type != "nvidia_smi"]
    return [own, _SMI.coverage("nvidia_smi", "nvidia-smi"), *read]


def _probed(fact: Fact) -> Fact:
    """The fact as a probe's: the same line of the same text, but read here and now."""
    places = tuple(replace(place, kind="probe", source=_SMI.probe, reader="nvidia-smi") for place in fact.provenance)
    return replace(fact, provenance=places)
