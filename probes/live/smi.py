"""Live probe through nvidia-smi, for a machine where NVML told nothing.

May live here: running nvidia-smi and relabelling what the reader of its text found. Must not: its layouts.
"""

from __future__ import annotations

from ...facts import Fact
from ..readers import nvidia_smi
from ..readers.line import Line
from .host import probe_container
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
    own = _SMI.fact("nvidia_smi", "nvidia-smi", state=state, return_code=code, scope=_scope(machine))
    lines = [Line(number, text) for number, text in enumerate(result.stdout.splitlines(), 1)]
    found = [fact for fact in nvidia_smi.read(lines, "nvidia-smi") if fact.type != "nvidia_smi"]
    read = _SMI.probed(found, "nvidia-smi")
    return [own, _SMI.coverage("nvidia_smi", "nvidia-smi"), *read]


def _scope(machine: Machine) -> str:
    try:
        facts = probe_container(machine)
    except ProbeError:
        return "host"
    return "container" if any(fact.get("present") is True for fact in facts) else "host"
