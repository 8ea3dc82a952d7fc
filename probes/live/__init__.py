"""Live probes: what this machine (or a folder that stands for one) says of itself.

May live here: which probes there are, their time limits, and running them at once. Must not: any reading itself.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...facts import Fact
from ..runner import Runner, SystemRunner
from . import (
    account,
    dkms,
    environment,
    firmware,
    host,
    interpreter,
    interpreters,
    kernel_log,
    kfd,
    macos,
    modules,
    nvml,
    pci,
    services,
    smi,
    toolkits,
    windows,
    wiring,
)
from .source import Machine, ProbeError, Stating

if TYPE_CHECKING:
    from ..readers.signatures import Signatures

__all__ = ["collect", "environments"]

_SYSTEMS = {"Linux": "linux", "Windows": "windows", "Darwin": "macos"}
_NVML_LIMIT_S = 4.0
_SMI_LIMIT_S = 4.0
_INTERPRETER_LIMIT_S = 10.0
# What a child may use beyond its limit for being stopped and read.
_MARGIN_S = 0.3

Probe = Callable[[Machine, float], list[Fact]]


@dataclass(frozen=True, slots=True)
class _Task:
    """One probe: its name in provenance, its system (empty: all), and its work within a number of seconds."""

    name: str
    work: Probe
    linux_only: bool = False


class _Run(threading.Thread):
    """One probe at work; a daemon, so that one stuck inside the kernel cannot keep the process alive."""

    def __init__(self, task: _Task, machine: Machine, limit_s: float) -> None:
        super().__init__(name=f"gpurules-probe-{task.name}", daemon=True)
        self._task = task
        self._machine = machine
        self._limit_s = limit_s
        self._facts: list[Fact] | None = None

    def run(self) -> None:
        self._facts = _guarded(self._task.name, self._task.work, self._machine, self._limit_s)

    def facts(self) -> list[Fact]:
        """What the probe found, or its time-out."""
        if self._facts is None:
            return [Stating(self._task.name).failure(ProbeError("timeout", f"{self._limit_s:g} s"))]
        return self._facts


def collect(
    root: Path = Path("/"),
    runner: Runner | None = None,
    python: str | None = None,
    environ: Mapping[str, str] | None = None,
    limit_s: float = 6.0,
    read: Callable[[str, str], None] | None = None,
    signatures: Signatures | None = None,
    cwd: Path | None = None,
    prefix: str = sys.prefix,
    executable: str = sys.executable,
) -> list[Fact]:
    """All facts of the live probes, in a fixed order of probes; never raises.

    root: the folder that stands for / in sysfs, procfs, /etc and /dev.
    runner: how commands are run; by default on this machine with `environ`.
    python: the interpreter that runs torch; by default see interpreters.py.
    limit_s: seconds for all probes together; a probe that needs longer gives a `probe_failure`.
    read: called with the path and text of each file that a probe reads whole.
    signatures: the known error lines, to be found in what nvidia-smi and the kernel print.
    cwd: the folder whose project is meant; by default the current one.
    prefix, executable: the environment that gpurules itself runs in.
    """
    variables = dict(os.environ if environ is None else environ)
    machine = Machine(
        root=root,
        runner=runner or SystemRunner(variables),
        environ=variables,
        system=_SYSTEMS.get(platform.system(), "linux"),
        python=python,
        read=read,
        signatures=signatures,
        cwd=cwd or _here(),
        prefix=prefix,
        executable=executable,
    )
    deadline = time.monotonic() + limit_s
    tasks = [task for task in _TASKS if machine.system == "linux" or not task.linux_only]
    # The slow ones wait for children, so they start first and the quick ones read meanwhile.
    runs = [_Run(task, machine, limit_s) for task in tasks]
    for run in sorted(runs, key=lambda run: run.name not in _SLOW):
        run.start()
    for run in runs:
        run.join(max(0.0, deadline - time.monotonic()))
    return [fact for run in runs for fact in run.facts()]


def environments(
    python: str | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    prefix: str = sys.prefix,
    executable: str = sys.executable,
) -> list[Fact]:
    """The Python environments of this machine, with the one that would be judged; see `collect`."""
    variables = dict(os.environ if environ is None else environ)
    machine = Machine(
        root=Path("/"),
        runner=SystemRunner(variables),
        environ=variables,
        system=_SYSTEMS.get(platform.system(), "linux"),
        python=python,
        cwd=cwd or _here(),
        prefix=prefix,
        executable=executable,
    )
    return [fact for fact in interpreters.probe_environments(machine) if fact.type != "coverage"]


def _here() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # the folder was deleted meanwhile
        return None


def _guarded(name: str, work: Probe, machine: Machine, limit_s: float) -> list[Fact]:
    """The probe's facts; whatever goes wrong becomes a fact as well."""
    try:
        return work(machine, limit_s)
    except ProbeError as error:
        return [Stating(name).failure(error)]
    except PermissionError as error:
        return [Stating(name).failure(ProbeError("permission", str(error.filename or "")))]
    # The promise of `collect`: an odd machine must not stop the diagnosis.
    except Exception as error:
        return [Stating(name).failure(ProbeError("error", f"{type(error).__name__}: {error}"))]


def _nvidia(machine: Machine, limit_s: float) -> list[Fact]:
    """NVML, and nvidia-smi where NVML told nothing, in what is left of the time."""
    end = time.monotonic() + limit_s
    facts = _guarded("nvml", nvml.probe_nvml, machine, min(_NVML_LIMIT_S, limit_s - _MARGIN_S))
    if not nvml.failed(facts):
        return facts
    left_s = end - time.monotonic() - _MARGIN_S
    printed = _guarded("nvidia_smi", smi.probe_nvidia_smi, machine, min(_SMI_LIMIT_S, left_s))
    # What NVML said itself is better than what nvidia-smi prints of it.
    told = {fact.type for fact in facts} & {"nvml"}
    return facts + [fact for fact in printed if fact.type not in told]


def _python(machine: Machine, limit_s: float) -> list[Fact]:
    return interpreter.probe_interpreter(machine, min(_INTERPRETER_LIMIT_S, limit_s - _MARGIN_S))


def _quick(probe: Callable[[Machine], list[Fact]]) -> Probe:
    """A probe that only reads files and needs no limit of its own."""
    return lambda machine, _limit_s: probe(machine)


_TASKS = (
    _Task("host", _quick(host.probe_os)),
    _Task("cpu", _quick(host.probe_hardware)),
    _Task("container", _quick(host.probe_container)),
    _Task("windows", windows.probe_windows),
    _Task("macos", macos.probe_macos),
    _Task("pci", _quick(pci.probe_pci), linux_only=True),
    _Task("modules", _quick(modules.probe_modules), linux_only=True),
    _Task("device_nodes", _quick(modules.probe_device_nodes), linux_only=True),
    _Task("nvml", _nvidia),
    _Task("kernel_log", kernel_log.probe_kernel_log, linux_only=True),
    _Task("python", _python),
    _Task("python_environments", _quick(interpreters.probe_environments)),
    _Task("environment", _quick(environment.probe_environment)),
    _Task("firmware", _quick(firmware.probe_firmware), linux_only=True),
    _Task("power_supplies", _quick(firmware.probe_power_supplies), linux_only=True),
    _Task("dkms", _quick(dkms.probe_dkms), linux_only=True),
    _Task("services", services.probe_services, linux_only=True),
    _Task("toolkits", toolkits.probe_toolkits, linux_only=True),
    _Task("libraries", _quick(toolkits.probe_libraries), linux_only=True),
    _Task("account", _quick(account.probe_account), linux_only=True),
    _Task("storage", _quick(account.probe_storage), linux_only=True),
    _Task("iommu", _quick(wiring.probe_iommu), linux_only=True),
    _Task("network", _quick(wiring.probe_network), linux_only=True),
    _Task("numa", _quick(wiring.probe_numa), linux_only=True),
    _Task("kfd", _quick(kfd.probe_kfd), linux_only=True),
)
_SLOW = tuple(f"gpurules-probe-{name}" for name in ("nvml", "python", "kernel_log", "windows", "macos"))
