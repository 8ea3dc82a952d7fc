"""Live probe of Windows: system, processor, memory, display adapters and settings, through its own commands.

May live here: which commands are run. Must not: the layouts that they print (readers/windows.py), judgement.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

from ...facts import Fact
from ..readers.line import Line
from ..runner import Result
from .source import Machine, ProbeError, Stating

_WINDOWS = Stating("windows")
_END = "gpurules: end"
# Of the PCI devices without a driver only those of makers of GPUs matter.
_SCRIPT = (
    "$ErrorActionPreference='SilentlyContinue'; [Console]::OutputEncoding=[Text.Encoding]::UTF8; & { "
    "Get-CimInstance Win32_OperatingSystem | Format-List Caption,Version,BuildNumber,OSArchitecture,"
    "TotalVisibleMemorySize,FreePhysicalMemory; "
    "Get-CimInstance Win32_Processor | Format-List Name,NumberOfCores,NumberOfLogicalProcessors; "
    "Get-CimInstance Win32_VideoController | Format-List Name,DriverVersion,PNPDeviceID,ConfigManagerErrorCode; "
    "Get-CimInstance Win32_PnPEntity -Filter \"PNPDeviceID LIKE 'PCI%VEN_10DE%' OR PNPDeviceID LIKE 'PCI%VEN_1002%'\" "
    "| Format-List Name,@{n='CompatibleID';e={$_.CompatibleID -join ' '}},PNPDeviceID,ConfigManagerErrorCode "
    f"}} | Out-String -Width 4096; '{_END}'"
)
# What Windows has where PowerShell is forbidden; newer versions lack it.
_WMIC = (
    ("os", "BuildNumber,Caption,FreePhysicalMemory,OSArchitecture,TotalVisibleMemorySize,Version"),
    ("cpu", "Name,NumberOfCores,NumberOfLogicalProcessors"),
    ("path Win32_VideoController", "ConfigManagerErrorCode,DriverVersion,Name,PNPDeviceID"),
)
_CONTROL = "HKLM\\SYSTEM\\CurrentControlSet\\Control"
_RUNTIME = "HKLM\\SOFTWARE\\Microsoft\\VisualStudio\\14.0\\VC\\Runtimes\\X64"
_RUNTIME_FILES = ("vcruntime140.dll", "vcruntime140_1.dll", "msvcp140.dll")
_LIMIT_S = 6.0
_REG_LIMIT_S = 2.0


def probe_windows(machine: Machine, limit_s: float) -> list[Fact]:
    """What Windows tells of itself; nothing on another system."""
    if machine.system != "windows":
        return []
    end = time.monotonic() + min(limit_s, _LIMIT_S)
    facts, complete = _classes(machine, end)
    if facts:
        facts.append(_WINDOWS.coverage("pci", "Win32_PnPEntity", complete=complete))
    return [*facts, *_settings(machine, end), *_runtime(machine, end)]


def _classes(machine: Machine, end: float) -> tuple[list[Fact], bool]:
    """The facts of the CIM classes, and whether all were read."""
    argv = ["powershell", "-NoProfile", "-NonInteractive", "-Command", _SCRIPT]
    result = machine.runner.run(argv, limit_s=max(0.1, end - time.monotonic()))
    facts = _read(result.stdout, "powershell")
    if facts or result.state == "timeout":
        return facts, _END in result.stdout
    for what, properties in _WMIC:
        argv = ["wmic", *what.split(), "get", properties, "/format:list"]
        facts += _read(machine.runner.run(argv, limit_s=max(0.1, end - time.monotonic())).stdout, "wmic")
    if not facts:
        raise ProbeError(result.state if result.state != "ok" else "error", "powershell and wmic")
    return facts, False


def _settings(machine: Machine, end: float) -> Iterator[Fact]:
    for key, value, name in (("FileSystem", "LongPathsEnabled", "long_paths"),
                             ("GraphicsDrivers", "HwSchMode", "gpu_scheduling")):  # fmt: skip
        result = _query(machine, f"{_CONTROL}\\{key}", value, end)
        if result.state == "ok" and result.returncode == 0:
            yield from _read(result.stdout, "reg query")
        elif result.state == "ok" and name == "long_paths":
            # The value is missing until somebody switches it on.
            yield _WINDOWS.fact("windows_setting", "reg query", name=name, enabled=False)


def _runtime(machine: Machine, end: float) -> Iterator[Fact]:
    system = Path(machine.environ.get("SystemRoot", "C:\\Windows")) / "System32"
    if not system.is_dir():
        return
    if not all((system / name).is_file() for name in _RUNTIME_FILES):
        yield _WINDOWS.fact("vc_runtime", os.fspath(system), present=False)
        return
    result = _query(machine, _RUNTIME, "Version", end)
    told = _read(result.stdout, "reg query") if result.state == "ok" and result.returncode == 0 else []
    yield from told or [_WINDOWS.fact("vc_runtime", os.fspath(system), present=True)]


def _query(machine: Machine, key: str, value: str, end: float) -> Result:
    argv = ["reg", "query", key, "/v", value]
    return machine.runner.run(argv, limit_s=max(0.1, min(_REG_LIMIT_S, end - time.monotonic())))


def _read(text: str, reader: str) -> list[Fact]:
    from ..readers import windows  # only where Windows is: compiling its patterns takes time

    lines = [Line(number, line) for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1)]
    return _WINDOWS.probed(windows.read([Line(line.number, line.text.strip("\r")) for line in lines], reader), reader)
