"""Whatever NVML, the tools and the system's files answer: no traceback, no waiting beyond the limit, the right fact.

Many faults go into one child process: a fake machine has a GPU for each return code. `-m slow` takes every function
instead of one of each group of calls.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpurules import pipeline
from gpurules.facts import Fact, Scalar
from gpurules.knowledge.loader import FOLDER
from gpurules.probes.live import collect
from gpurules.probes.live.nvml import probe_nvml
from gpurules.probes.live.source import Machine
from gpurules.probes.runner import Result, SystemRunner
from gpurules.report.model import Report

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a compiled library, procfs and sysfs")

Environ = Callable[..., dict[str, str]]
Build = Callable[..., Path]

ROWS = yaml.safe_load((FOLDER / "facts" / "nvml_codes.yaml").read_text(encoding="utf-8"))["rows"]
CODES = {int(row["code"]): row for row in ROWS}
ABSENT = {3, 13}  # the driver or the card has no such thing
DEAD = {15, 16}  # nothing more is asked of such a GPU
# As the fake library names them; the first of each group is tried in every run of the tests.
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "handle": ("nvmlDeviceGetHandleByIndex",),
    "identity": (
        "nvmlDeviceGetUUID", "nvmlDeviceGetName", "nvmlDeviceGetPciInfo", "nvmlDeviceGetCudaComputeCapability",
        "nvmlDeviceGetVbiosVersion", "nvmlDeviceGetDisplayActive",
    ),
    "memory": ("nvmlDeviceGetMemoryInfo", "nvmlDeviceGetBAR1MemoryInfo"),
    "temperature": ("nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureThreshold"),
    "power": (
        "nvmlDeviceGetPowerUsage", "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementDefaultLimit",
        "nvmlDeviceGetPowerManagementLimitConstraints",
    ),
    "clocks": (
        "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetClockInfo", "nvmlDeviceGetMaxClockInfo",
        "nvmlDeviceGetPerformanceState", "nvmlDeviceGetUtilizationRates",
    ),
    "pcie": (
        "nvmlDeviceGetCurrPcieLinkGeneration", "nvmlDeviceGetMaxPcieLinkGeneration", "nvmlDeviceGetCurrPcieLinkWidth",
        "nvmlDeviceGetMaxPcieLinkWidth", "nvmlDeviceGetPcieReplayCounter",
    ),
    "mig": ("nvmlDeviceGetMigMode",),
    "ecc": (
        "nvmlDeviceGetTotalEccErrors", "nvmlDeviceGetEccMode", "nvmlDeviceGetRemappedRows",
        "nvmlDeviceGetRetiredPagesPendingStatus",
    ),
    "nvlink": (
        "nvmlDeviceGetNvLinkErrorCounter", "nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlDeviceGetNvLinkVersion",
        "nvmlDeviceGetGpuFabricInfo",
    ),
    "mode": ("nvmlDeviceGetPersistenceMode", "nvmlDeviceGetComputeMode", "nvmlDeviceGetDriverModel_v2"),
    "processes": ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses"),
}  # fmt: skip
# Which field says that a group was read.
TELLS = {
    "identity": "name", "memory": "vram_mib", "temperature": "temperature_c", "power": "power_limit_w",
    "clocks": "clock_max_mhz", "pcie": "pcie_gen_max", "mig": "mig", "ecc": "ecc", "mode": "compute_mode",
    "nvlink": "nvlinks_up",
}  # fmt: skip
FIRST = [(group, names[0]) for group, names in FUNCTIONS.items()]
OTHERS = [(group, name) for group, names in FUNCTIONS.items() for name in names[1:]]
EVERY_FUNCTION = pytest.mark.parametrize(
    ("group", "function"),
    [*FIRST, *(pytest.param(group, name, marks=pytest.mark.slow) for group, name in OTHERS)],
)
# Which finding each code calls for where NVML does not start with it (the host has no container and no WSL).
AT_START = {
    4: "nvidia_permission", 8: "gpu_power_cable_missing", 14: "inforom_corrupted", 15: "gpu_off_bus_link",
    16: "gpu_reset_needed", 18: "driver_library_mismatch",
}  # fmt: skip
ON_CALL = {8: "gpu_power_cable_missing", 14: "inforom_corrupted", 15: "gpu_off_bus_link", 16: "gpu_reset_needed"}
HOST: dict[str, str] = {
    "etc/os-release": "ID=ubuntu\nVERSION_ID=24.04\nPRETTY_NAME=Ubuntu 24.04",
    "proc/sys/kernel/osrelease": "6.8.0-51-generic",
    "proc/sys/kernel/arch": "x86_64",
    "proc/self/mountinfo": "22 1 8:2 / / rw - ext4 /dev/sda2 rw",
    "proc/modules": "nvidia_uvm 1 0 - Live 0x0\nnvidia 2 1 - Live 0x0",
    "proc/cpuinfo": "processor : 0\nmodel name : Test CPU\ncpu cores : 4",
    "proc/meminfo": "MemTotal: 65536000 kB\nMemAvailable: 60000000 kB",
    "proc/uptime": "1000.0 1.0",
    "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.163.01  Tue Apr  8 12:41 2025",
    "sys/module/nvidia/version": "550.163.01",
    "sys/bus/pci/devices/0000:01:00.0/class": "0x030000",
    "sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de",
    "sys/bus/pci/devices/0000:01:00.0/device": "0x2503",
    "sys/kernel/iommu_groups/0/type": "DMA-FQ",
    "sys/class/net/eth0/type": "1",
    "sys/class/net/eth0/operstate": "up",
    "dev/nvidiactl": "",
    "dev/nvidia0": "",
    "dev/nvidia-uvm": "",
}


def of_type(facts: Sequence[Fact], kind: str) -> list[dict[str, Scalar]]:
    return [dict(fact.fields) for fact in facts if fact.type == kind]


def name(code: int) -> str:
    return str(CODES[code]["name"])


def probed(environ: Mapping[str, str], limit_s: float = 4.0, root: Path = Path("/")) -> list[Fact]:
    return probe_nvml(Machine(root, SystemRunner(environ), dict(environ), "linux"), limit_s)


def diagnosed(facts: Sequence[Fact]) -> Report:
    """The answer to these facts; what Python has is left out, so that nothing but the fault speaks."""
    known = [fact for fact in facts if fact.type not in ("python", "torch", "package", "error")]
    return pipeline.diagnose(pipeline.Inputs(given=known))


def causes(report: Report, *severities: str) -> list[str]:
    return [finding.cause for finding in report.findings if finding.severity in severities]


@pytest.fixture
def host(build: Build) -> Path:
    return build(HOST)


@pytest.fixture(scope="session")
def seen_host(tmp_path_factory: pytest.TempPathFactory) -> list[Fact]:
    """What the quick probes say of the host, with no NVML."""
    root = tmp_path_factory.mktemp("host")
    for path, text in HOST.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    found = collect(root, runner=Recorded({}), environ={})
    return [fact for fact in found if fact.type != "nvml" and fact.provenance[0].source != "nvml"]


class Recorded:
    """A runner that answers each program with a recorded output; others are missing."""

    def __init__(self, outputs: Mapping[str, Result]) -> None:
        self._outputs = outputs

    def run(self, argv: Sequence[str], *, limit_s: float, max_bytes: int = 4 << 20) -> Result:
        words = " ".join(argv)
        return next((result for word, result in self._outputs.items() if word in words), Result("missing"))


# --- every return code ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [*CODES, 777])
def test_each_code_at_the_start(code: int, nvml_environ: Environ, host: Path, seen_host: list[Fact]) -> None:
    facts = probed(nvml_environ("rtx3060", f"fail.nvmlInit={code}"), root=host)
    (nvml,) = of_type(facts, "nvml")
    known = {"name": name(code)} if code in CODES else {}
    assert nvml == {"state": "failed", "code": code, **known}
    assert of_type(facts, "gpu") == []
    report = diagnosed([*facts, *seen_host])
    if code == 9:
        # Several causes compete; the questions tell them apart.
        assert (report.verdict, bool(report.questions)) == ("unknown", True)
        return
    assert causes(report, "error", "warning") == [AT_START.get(code, "nvml_fails")]
    (finding,) = report.findings
    if code in CODES and CODES[code]["at_start"] == "other":
        assert str(CODES[code]["meaning_en"]) in str(finding.because)


@EVERY_FUNCTION
def test_each_code_of_each_group_of_calls(group: str, function: str, nvml_environ: Environ) -> None:
    """A machine with a GPU for each code: every GPU tells its own, and nothing of it is lost but that call."""
    lines = [f"fail.{function}.{gpu}={code}" for gpu, code in enumerate(CODES)]
    facts = probed(nvml_environ("eight_h100", f"gpus={len(CODES)}", *lines))
    errors = {(error["gpu"], error["code"]): error for error in of_type(facts, "nvml_call_error")}
    wanted = {(gpu, code) for gpu, code in enumerate(CODES) if code not in ABSENT}
    if function == "nvmlDeviceGetCurrentClocksEventReasons":
        # The older name of the call answers where this one has another structure.
        wanted -= {(gpu, code) for gpu, code in wanted if code == 25}
    assert set(errors) == wanted
    for (_, code), error in errors.items():
        assert (error["name"], error["state"], error["group"]) == (name(code), "failed", group)
    gpus = {gpu["index"]: gpu for gpu in of_type(facts, "gpu")}
    if group == "handle":
        assert gpus == {}
        return
    for gpu, code in enumerate(CODES):
        told = {other for other, field in TELLS.items() if field in gpus[gpu]}
        if code not in DEAD:
            assert told >= set(TELLS) - {group}, (code, set(TELLS) - told)


@pytest.mark.parametrize("code", list(CODES))
def test_the_finding_of_each_code_on_a_call(code: int, nvml_environ: Environ) -> None:
    facts = probed(nvml_environ("rtx3060", f"fail.nvmlDeviceGetPowerUsage={code}"))
    wanted = ON_CALL.get(code) or ("nvml_fails" if CODES[code]["on_call"] == "fault" else None)
    assert causes(diagnosed(facts), "error", "warning") == ([wanted] if wanted else [])


def test_the_count_of_gpus_fails(nvml_environ: Environ) -> None:
    facts = probed(nvml_environ("rtx3060", "fail.nvmlDeviceGetCount=999"))
    (error,) = of_type(facts, "nvml_call_error")
    assert (error["function"], error["code"], error["group"]) == ("nvmlDeviceGetCount", 999, "count")
    assert [c["domain"] for c in of_type(facts, "coverage") if c["domain"] == "gpus"] == []


def test_an_absurd_count_of_gpus(nvml_environ: Environ) -> None:
    facts = probed(nvml_environ("rtx3060", "gpus=2000000000"))
    assert len(of_type(facts, "gpu")) == 64
    assert {"domain": "gpus", "complete": False} in of_type(facts, "coverage")


# --- hangs and crashes ------------------------------------------------------------------------------------------------

HANGS = [("system", "nvmlSystemGetDriverVersion"), ("count", "nvmlDeviceGetCount"), *FIRST]


def _hang(environ: Mapping[str, str], limit_s: float) -> tuple[list[Fact], float]:
    begin = time.monotonic()
    return probed(environ, limit_s), time.monotonic() - begin


def _hangs(names: Sequence[str], folder: Path, make: Environ, limit_s: float) -> dict[str, tuple[list[Fact], float]]:
    """One machine of eight GPUs for each function; it hangs on the first GPU, or where no GPU is spoken of."""
    environs = {}
    for name_ in names:
        suffix = "" if name_ in ("nvmlSystemGetDriverVersion", "nvmlDeviceGetCount") else ".0"
        made = make("eight_h100", f"hang.{name_}{suffix}=1")
        config = folder / f"{name_}.env"
        shutil.copy(made["FAKE_NVML"], config)
        environs[name_] = {**made, "FAKE_NVML": os.fspath(config)}
    with ThreadPoolExecutor(len(names)) as pool:
        running = {name_: pool.submit(_hang, environ, limit_s) for name_, environ in environs.items()}
        return {name_: future.result() for name_, future in running.items()}


def test_a_hang_in_each_group_ends_at_the_limit(nvml_environ: Environ, tmp_path: Path) -> None:
    limit_s = 4.0
    found = _hangs([function for _, function in HANGS], tmp_path, nvml_environ, limit_s)
    for group, function in HANGS:
        facts, seconds = found[function]
        assert seconds < limit_s + 1.5, function
        (error,) = of_type(facts, "nvml_call_error")
        assert (str(error["function"]).startswith(function), error["state"], error["group"]) == (True, "timeout", group)
        (failure,) = of_type(facts, "probe_failure")
        assert (failure["probe"], failure["reason"]) == ("nvml", "timeout")
        if group not in ("system", "count"):
            # The seven others are read to the end.
            whole = [gpu["index"] for gpu in of_type(facts, "gpu") if "nvlinks_up" in gpu]
            assert [index for index in whole if index] == [1, 2, 3, 4, 5, 6, 7], function
            assert causes(diagnosed(facts), "error") == ["driver_not_answering"]


@pytest.mark.slow
def test_a_hang_in_every_function_ends_at_the_limit(nvml_environ: Environ, tmp_path: Path) -> None:
    names = [function for _, function in OTHERS]
    for start in range(0, len(names), 8):
        for function, (facts, seconds) in _hangs(names[start : start + 8], tmp_path, nvml_environ, 4.0).items():
            assert seconds < 5.5, function
            (error,) = of_type(facts, "nvml_call_error")
            assert (error["state"], error["gpu"]) == ("timeout", 0)


@EVERY_FUNCTION
@pytest.mark.parametrize("signal", ["segv", "abort"])
def test_a_crash_loses_that_call_only(group: str, function: str, signal: str, nvml_environ: Environ) -> None:
    facts = probed(nvml_environ("two4090", f"crash.{function}.0={signal}", "nvlinks=4", "nvlink_to=1"))
    (error,) = of_type(facts, "nvml_call_error")
    assert (error["state"], error["gpu"], error["group"]) == ("crashed", 0, group)
    if group == "handle":
        return
    for gpu in of_type(facts, "gpu"):
        assert {other for other, field in TELLS.items() if field in gpu} >= set(TELLS) - {group, "mig"}
    assert causes(diagnosed(facts), "error", "warning") == ["nvml_fails"]


def test_a_library_that_crashes_everywhere(nvml_environ: Environ) -> None:
    lines = [f"crash.{function}=segv" for _, function in FIRST[1:]]
    facts = probed(nvml_environ("rtx3060", *lines))
    assert [error["state"] for error in of_type(facts, "nvml_call_error")] == ["crashed"] * 3
    assert of_type(facts, "gpu")[0]["name"] == "NVIDIA GeForce RTX 3060"


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"no library at all\n"])
def test_a_file_that_is_no_library(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_bytes(content)
    facts = probed({"LD_LIBRARY_PATH": os.fspath(tmp_path), "PATH": "/usr/bin:/bin"})
    assert of_type(facts, "nvml") == [{"state": "missing", "code": 12, "name": name(12)}]


# --- odd answers ------------------------------------------------------------------------------------------------------


def test_text_that_is_no_utf_8_costs_that_text_only(nvml_environ: Environ) -> None:
    environ = nvml_environ("rtx3060")
    config = Path(environ["FAKE_NVML"])
    config.write_bytes(b"name=NVIDIA \xff\xfe\x80 3060\n" + config.read_bytes())
    facts = probed(environ)
    assert of_type(facts, "nvml_call_error") == [
        {"function": "nvmlDeviceGetName", "gpu": 0, "state": "unreadable", "group": "identity"}
    ]
    gpu = of_type(facts, "gpu")[0]
    assert (gpu.get("name"), gpu["sm"], gpu["vram_mib"]) == (None, 86, 12288)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("\x1b[2J\x1b]0;title\x07NVIDIA \x1b[31mCard\x1b[0m", "[2J]0;titleNVIDIA [31mCard[0m"),
        ("\u202eNVIDIA\u200b \u2066Card", "NVIDIA Card"),
        ("\t\x01 \x02", None),
    ],
)
def test_control_characters_in_a_name(nvml_environ: Environ, said: str, kept: str | None) -> None:
    gpu = of_type(probed(nvml_environ("rtx3060", f"name={said}")), "gpu")[0]
    assert gpu.get("name") == kept


def test_figures_at_their_ends(nvml_environ: Environ) -> None:
    lines = [
        "power_mw=4294967295", "limit_mw=0", "temperature=4294967295", "memory_mib=4294967295,4294967295", "gen=0",
        "width=4294967295", "throttle=0xffffffff", "pstate=32", "compute_mode=77", "mig=9,9", "ecc=5,5",
        "persistence=4", "remapped=4294967295 4294967295 1 1", "fabric=250,3",
    ]  # fmt: skip
    facts = probed(nvml_environ("rtx3060", *lines))
    gpu = of_type(facts, "gpu")[0]
    assert (gpu["power_w"], gpu["vram_mib"], gpu["pcie_width_current"]) == (4294967, 4294967295, 4294967295)
    assert not {"performance_state", "compute_mode", "mig", "ecc", "persistence", "fabric", "pcie_gen_current"} & set(
        gpu
    )
    assert len(of_type(facts, "throttle_reason")) == 9
    assert diagnosed(facts).verdict


# --- the system's files -----------------------------------------------------------------------------------------------


def _empty(path: Path) -> None:
    path.write_text("")


def _folder(path: Path) -> None:
    path.mkdir()


def _loop(path: Path) -> None:
    """Unreadable even for root."""
    path.symlink_to(path.name)


def _binary(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 40)


def _gone(_path: Path) -> None:
    return


def _cut(path: Path) -> None:
    path.write_text(HOST[next(name_ for name_ in HOST if os.fspath(path).endswith(name_))][:3])


ODD = (_empty, _folder, _loop, _binary, _gone, _cut)


@pytest.fixture(scope="session")
def recorded(nvml_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """NVML's child as it answered once; every other program is missing."""
    profile = Path(__file__).parents[1] / "fakes" / "profiles" / "rtx3060.env"
    environ = {"LD_LIBRARY_PATH": os.fspath(nvml_folder), "FAKE_NVML": os.fspath(profile), "PATH": "/usr/bin:/bin"}
    child = Path(sys.modules["gpurules.probes.live.nvml"].__file__ or "").with_name("_nvml_child.py")
    return Recorded({"_nvml_child": SystemRunner(environ).run([sys.executable, os.fspath(child)], limit_s=10.0)})


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.__name__.strip("_"))
def test_an_odd_file_raises_no_alarm(odd: Callable[[Path], None], build: Build, recorded: Recorded) -> None:
    """Each file of the host in turn is not what it should be; the machine is as healthy as before."""
    types = yaml.safe_load((FOLDER / "vocabulary.yaml").read_text(encoding="utf-8"))["types"]
    for number, name_ in enumerate(HOST):
        root = build(HOST, f"root{number}")
        (root / name_).unlink()
        odd(root / name_)
        facts = collect(root, runner=recorded, environ={})
        for fact in facts:
            assert set(fact.fields) <= set(types[fact.type]["fields"]), name_
            assert all(value.isprintable() for value in fact.fields.values() if isinstance(value, str)), (name_, fact)
        report = diagnosed(facts)
        assert causes(report, "error", "warning") == [], (odd.__name__, name_)


def test_a_root_that_is_odd_throughout(build: Build, recorded: Recorded) -> None:
    for odd in ODD[:4]:
        root = build({}, f"all_{odd.__name__}")
        for name_ in HOST:
            (root / name_).parent.mkdir(parents=True, exist_ok=True)
            odd(root / name_)
        facts = collect(root, runner=recorded, environ={})
        assert [gpu["name"] for gpu in of_type(facts, "gpu")] == ["NVIDIA GeForce RTX 3060"]


def test_device_files_that_this_account_may_not_open(
    host: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The tests may run as root, whom no mode of a file stops.
    monkeypatch.setattr("os.access", lambda path, mode: "nvidia" not in os.fspath(path))
    facts = collect(host, runner=recorded, environ={})
    nodes = {node["path"]: node for node in of_type(facts, "device_node")}
    assert nodes["/dev/nvidiactl"] == {"path": "/dev/nvidiactl", "present": True, "accessible": False}
    assert causes(diagnosed(facts), "error") == ["nvidia_permission"]


# --- programs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("locale", ["de_DE.UTF-8", "zh_CN.UTF-8", "tr_TR.UTF-8", "xx_YY"])
def test_the_locale_of_the_user_changes_nothing(
    locale: str, nvml_environ: Environ, host: Path, program: Callable[[str, str], Path], smi_folder: Path
) -> None:
    """Programs run in the C locale; this nvidia-smi prints nonsense in any other."""
    folder = program(
        "nvidia-smi", f'[ "$LC_ALL" = C ] && [ -z "$LANGUAGE$LANG" ] || exit 3; exec {smi_folder}/nvidia-smi "$@"'
    )
    foreign = {"LC_ALL": locale, "LANG": locale, "LANGUAGE": "zh:de", "LC_NUMERIC": locale}
    environ = nvml_environ("two4090", "fail.nvmlInit=10") | {"PATH": f"{folder}:/usr/bin:/bin"}
    # The stand-in reads the fault as well, so only NVML itself gets it.
    config = Path(environ["FAKE_NVML"])
    plain = config.with_name("plain.env")
    plain.write_text(config.read_text().replace("fail.nvmlInit=10\n", ""))
    program("nvidia-smi", f'[ "$LC_ALL" = C ] || exit 3\nFAKE_NVML={plain} exec {smi_folder}/nvidia-smi "$@"')
    told = collect(host, environ=environ | foreign)
    assert [smi["state"] for smi in of_type(told, "nvidia_smi")] == ["ok"]
    assert [(gpu["vram_mib"], gpu["power_max_w"]) for gpu in of_type(told, "gpu")] == [(24564, 600), (24564, 600)]


@pytest.mark.parametrize(
    ("script", "fact"),
    [
        ("echo oops >&2; exit 255", {"state": "failed", "return_code": 255}),
        ("echo oops >&2; exit 0", {"state": "ok", "return_code": 0}),
        ("kill -SEGV $$", {"state": "failed"}),
        ("exec sleep 60", {"state": "timeout"}),
        ("trap '' TERM HUP INT; while :; do sleep 1; done", {"state": "timeout"}),
        (r"printf '\377\376\000\033[2J'; exit 1", {"state": "failed", "return_code": 1}),
    ],
)
def test_what_nvidia_smi_may_do(
    script: str, fact: dict[str, Any], host: Path, program: Callable[[str, str], Path], nvml_environ: Environ
) -> None:
    folder = program("nvidia-smi", script)
    begin = time.monotonic()
    environ = nvml_environ("rtx3060", "fail.nvmlInit=10") | {"PATH": f"{folder}:/usr/bin:/bin"}
    facts = collect(host, environ=environ, limit_s=2.0)
    assert time.monotonic() - begin < 4.0
    assert of_type(facts, "nvidia_smi") == [{**fact, "scope": "host"}]
