"""The live probes of Windows and macOS over recorded outputs of their commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from gpurules.facts import Fact, Scalar
from gpurules.probes.live.macos import probe_macos
from gpurules.probes.live.source import Machine, ProbeError
from gpurules.probes.live.windows import probe_windows
from gpurules.probes.runner import Result

CIM = """\r
Caption        : Microsoft Windows 11 专业版\r
Version        : 10.0.22631\r
OSArchitecture : 64 位\r
\r
Name                   : NVIDIA GeForce RTX 4090\r
DriverVersion          : 32.0.15.6636\r
PNPDeviceID            : PCI\\VEN_10DE&DEV_2684&SUBSYS_16F110DE&REV_A1\\4&2283F625&0&0019\r
ConfigManagerErrorCode : 0\r
gpurules: end\r
"""
REG = "HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Control\\GraphicsDrivers\r\n    HwSchMode    REG_DWORD    0x1\r\n"
WMIC = "\r\r\nDriverVersion=31.0.15.5222\r\r\nName=NVIDIA GeForce GTX 1650\r\r\n\
PNPDeviceID=PCI\\VEN_10DE&DEV_1F82\\4&1D\r\r\n"
MAC = "Chip: Apple M4\nTotal Number of Cores: 10\nMemory: 24 GB\nChipset Model: Apple M4\nVendor: Apple (0x106b)\n"


class Recorded:
    """Answers each command by a part of its line; what is not recorded is missing."""

    def __init__(self, answers: Mapping[str, Result]) -> None:
        self._answers = answers

    def run(self, argv: Sequence[str], *, limit_s: float, max_bytes: int = 4 << 20) -> Result:
        line = " ".join(argv)
        return next((result for part, result in self._answers.items() if part in line), Result("missing"))


def ok(text: str, code: int = 0) -> Result:
    return Result("ok", text, "", code)


def machine(system: str, answers: Mapping[str, Result], root: Path | None = None) -> Machine:
    return Machine(Path("/"), Recorded(answers), {"SystemRoot": str(root)} if root else {}, system)


def said(facts: list[Fact], *kinds: str) -> list[tuple[str, dict[str, Scalar]]]:
    return [(fact.type, dict(fact.fields)) for fact in facts if fact.type in kinds]


def test_windows(tmp_path: Path) -> None:
    (tmp_path / "System32").mkdir()
    for name in ("vcruntime140.dll", "vcruntime140_1.dll", "msvcp140.dll"):
        (tmp_path / "System32" / name).write_text("")
    answers = {"powershell": ok(CIM), "HwSchMode": ok(REG), "LongPathsEnabled": ok("", 1), "Runtimes": ok("", 1)}
    facts = probe_windows(machine("windows", answers, tmp_path), 8.0)
    assert said(facts, "os", "driver", "coverage", "windows_setting", "vc_runtime") == [
        ("driver", {"vendor": "nvidia", "version": "566.36"}),
        ("os", {"family": "windows", "name": "Microsoft Windows 11 专业版", "machine": "x86_64", "wsl": False,
                "windows_build": "10.0.22631"}),
        ("coverage", {"domain": "pci", "complete": True}),
        ("windows_setting", {"name": "long_paths", "enabled": False}),
        ("windows_setting", {"name": "gpu_scheduling", "enabled": False}),
        ("vc_runtime", {"present": True}),
    ]  # fmt: skip
    assert {place.kind for fact in facts for place in fact.provenance} == {"probe"}


def test_windows_without_the_runtime_and_cut_short(tmp_path: Path) -> None:
    (tmp_path / "System32").mkdir()
    cut = Result("timeout", CIM.replace("gpurules: end", ""))
    facts = probe_windows(machine("windows", {"powershell": cut}, tmp_path), 8.0)
    assert said(facts, "coverage", "windows_setting", "vc_runtime") == [
        ("coverage", {"domain": "pci", "complete": False}), ("vc_runtime", {"present": False})
    ]  # fmt: skip


def test_windows_where_powershell_is_forbidden() -> None:
    facts = probe_windows(machine("windows", {"Win32_VideoController get": ok(WMIC)}), 8.0)
    assert said(facts, "driver", "coverage") == [
        ("driver", {"vendor": "nvidia", "version": "552.22"}), ("coverage", {"domain": "pci", "complete": False})
    ]  # fmt: skip
    with pytest.raises(ProbeError, match="powershell and wmic"):
        probe_windows(machine("windows", {}), 8.0)


def test_macos() -> None:
    answers = {
        "sw_vers": ok("ProductName:\t\tmacOS\nProductVersion:\t\t15.1\n"),
        "sysctl": ok("hw.memsize: 25769803776\nhw.logicalcpu: 10\nhw.optional.arm64: 1\n", 1),
        "system_profiler": ok(MAC),
    }
    facts = probe_macos(machine("macos", answers), 8.0)
    assert said(facts, "os", "cpu", "memory", "gpu", "coverage") == [
        ("os", {"family": "macos", "name": "macOS 15.1 (arm64)", "machine": "arm64", "distro_version": "15.1",
                "wsl": False, "jetson": False}),
        ("cpu", {"name": "Apple M4", "cores": 10, "threads": 10}),
        ("memory", {"total_mib": 24576}),
        ("gpu", {"index": 0, "name": "Apple M4", "vendor": "apple"}),
        ("coverage", {"domain": "gpus", "complete": True}),
    ]  # fmt: skip
    with pytest.raises(ProbeError):
        probe_macos(machine("macos", {}), 8.0)


def test_on_linux_neither_runs_anything() -> None:
    assert probe_windows(machine("linux", {"": ok(CIM)}), 8.0) == []
    assert probe_macos(machine("linux", {"": ok(MAC)}), 8.0) == []
