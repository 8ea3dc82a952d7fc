"""Live probe of NVIDIA's system services, through systemctl.

May live here: asking systemd for the state of services. Must not: what a service is needed for.
"""

from __future__ import annotations

from ...facts import Fact
from .source import Machine, ProbeError, Stating

_SERVICES = Stating("services")
_NAMES = ("nvidia-fabricmanager", "nvidia-persistenced")
_ACTIVE = {"active": "running", "activating": "running", "reloading": "running", "failed": "failed"}
_LIMIT_S = 3.0


def probe_services(machine: Machine, limit_s: float) -> list[Fact]:
    """The state of the services; nothing is said where systemd does not run."""
    if not machine.path("/run/systemd/system").is_dir():
        return [_SERVICES.coverage("services", "systemctl", complete=False)]
    argv = ["systemctl", "show", "--property=Id,LoadState,ActiveState", *(f"{name}.service" for name in _NAMES)]
    result = machine.runner.run(argv, limit_s=min(limit_s, _LIMIT_S))
    if result.state != "ok":
        raise ProbeError(result.state, "systemctl")
    facts = []
    for block in result.stdout.split("\n\n"):
        values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        name = values.get("Id", "").removesuffix(".service")
        if name in _NAMES:
            missing = values.get("LoadState") == "not-found"
            state = "missing" if missing else _ACTIVE.get(values.get("ActiveState", ""), "stopped")
            facts.append(_SERVICES.fact("service", "systemctl", name=name, state=state))
    return [*facts, _SERVICES.coverage("services", "systemctl", complete=len(facts) == len(_NAMES))]
