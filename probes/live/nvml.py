"""Live probe of NVIDIA's driver through NVML, in a child process that may hang or crash.

May live here: running the child and turning its records into facts. Must not: NVML calls, judgement.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...facts import Fact, Scalar
from .source import Machine, ProbeError, Stating

_NVML = Stating("nvml")
_CHILD = Path(__file__).with_name("_nvml_child.py")

# nvmlReturn_t of nvml.h, without the common NVML_ERROR_.
_NAMES = {
    1: "UNINITIALIZED", 2: "INVALID_ARGUMENT", 3: "NOT_SUPPORTED", 4: "NO_PERMISSION", 5: "ALREADY_INITIALIZED",
    6: "NOT_FOUND", 7: "INSUFFICIENT_SIZE", 8: "INSUFFICIENT_POWER", 9: "DRIVER_NOT_LOADED", 10: "TIMEOUT",
    11: "IRQ_ISSUE", 12: "LIBRARY_NOT_FOUND", 13: "FUNCTION_NOT_FOUND", 14: "CORRUPTED_INFOROM", 15: "GPU_IS_LOST",
    16: "RESET_REQUIRED", 17: "OPERATING_SYSTEM", 18: "LIB_RM_VERSION_MISMATCH", 19: "IN_USE", 20: "MEMORY",
    21: "NO_DATA", 22: "VGPU_ECC_NOT_SUPPORTED", 23: "INSUFFICIENT_RESOURCES", 24: "FREQ_NOT_SUPPORTED",
    25: "ARGUMENT_VERSION_MISMATCH", 26: "DEPRECATED", 27: "NOT_READY", 28: "GPU_NOT_FOUND", 29: "INVALID_STATE",
    30: "RESET_TYPE_NOT_SUPPORTED", 999: "UNKNOWN",
}  # fmt: skip
# The driver or card has no such thing; that is no fault.
_BENIGN = frozenset({3, 13})
_SWITCH = {0: "disabled", 1: "enabled"}
# The NVML version starts with its CUDA major version: 13.580.95.05.
_LIBRARY_VERSION = re.compile(r"^[0-9]{1,2}\.([0-9]{3,4}(?:\.[0-9]+)+)$")

Fields = dict[str, Scalar | None]


@dataclass(slots=True)
class _Records:
    """The child's records, sorted by what they speak of."""

    system: dict[str, Any] = field(default_factory=dict)
    gpus: dict[int, dict[str, Any]] = field(default_factory=dict)
    mig_devices: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    errors: list[tuple[str, int | None, int]] = field(default_factory=list)
    foreign: str | None = None
    library: bool = True
    ended: bool = False
    last_call: str = ""

    @property
    def init_error(self) -> int | None:
        return next((code for function, _, code in self.errors if function == "nvmlInit"), None)


def probe_nvml(machine: Machine, limit_s: float) -> list[Fact]:
    """Driver and GPUs as NVML tells them, and what became of NVML itself."""
    if machine.system == "macos":
        return []
    result = machine.runner.run([sys.executable, "-B", "-W", "ignore", os.fspath(_CHILD)], limit_s=limit_s)
    records = _parse(result.stdout)
    if records.foreign is not None:
        raise ProbeError("missing", f"no usable module pynvml: {records.foreign}")
    if not records.ended and result.state == "ok" and not records.last_call:
        raise ProbeError("error", (result.stderr.strip().splitlines() or ["the NVML child printed nothing"])[-1])
    if result.state not in ("ok", "timeout"):
        raise ProbeError(result.state)
    return [*_state(records, timed_out=result.state == "timeout"), *_facts(records)]


def failed(facts: list[Fact]) -> bool:
    """Whether NVML told nothing, so that nvidia-smi is worth a try."""
    return not any(fact.type == "nvml" and fact.get("state") == "ok" for fact in facts)


def _parse(stdout: str) -> _Records:
    records = _Records()
    for line in stdout.splitlines():
        try:
            kind, *rest = json.loads(line)
        except ValueError:
            # The line that a killed child was writing.
            continue
        if kind == "call":
            records.last_call = rest[0]
        elif kind == "value":
            _take(records, *rest)
        elif kind == "error":
            records.errors.append((rest[0], rest[1], rest[2]))
        elif kind == "foreign":
            records.foreign = rest[0]
        elif kind == "library":
            records.library = rest[0]
        elif kind == "end":
            records.ended = True
    return records


def _take(records: _Records, function: str, gpu: int | None, value: Any) -> None:
    if gpu is None:
        records.system[function] = value
    elif function == "mig_device":
        records.mig_devices.append((gpu, value))
    else:
        records.gpus.setdefault(gpu, {})[function] = value


def _name(code: int) -> str | None:
    return f"NVML_ERROR_{_NAMES[code]}" if code in _NAMES else None


def _state(records: _Records, *, timed_out: bool) -> list[Fact]:
    """What became of initialising NVML; a hang or crash later is a failed call or a probe failure."""
    code = records.init_error
    initialised = "nvmlInit" in records.system
    coverage = _NVML.coverage("nvml", "pynvml")
    if code is not None:
        state = "failed" if records.library else "missing"
        fact = _NVML.fact("nvml", "nvmlInit", state=state, code=code, name=_name(code))
        # Without NVIDIA's user-space library there is no NVIDIA driver in this scope.
        return [fact, coverage, *([] if records.library else [_NVML.coverage("driver", "pynvml")])]
    if not initialised:
        return [_NVML.fact("nvml", "nvmlInit", state="timeout" if timed_out else "crashed"), coverage]
    facts = [_NVML.fact("nvml", "nvmlInit", state="ok", code=0, name="NVML_SUCCESS"), coverage]
    if not records.ended:
        reason = "timeout" if timed_out else "crashed"
        facts.append(_NVML.failure(ProbeError(reason, records.last_call)))
    return facts


def _facts(records: _Records) -> list[Fact]:
    facts = _driver(records.system)
    facts += [
        _NVML.fact("gpu", "pynvml", index=index, vendor="nvidia", **_gpu(values))
        for index, values in sorted(records.gpus.items())
    ]
    facts += [
        _NVML.fact("mig_device", "pynvml", gpu=gpu, gi=mig["gi"], ci=mig["ci"], dev=mig["dev"], name=mig["name"],
                   mem_total_mib=mig["memory"] >> 20)
        for gpu, mig in records.mig_devices
    ]  # fmt: skip
    facts += [
        _NVML.fact("nvml_call_error", function, function=function, gpu=gpu, code=code, name=_name(code))
        for function, gpu, code in records.errors
        if function != "nvmlInit" and code not in _BENIGN
    ]
    count = records.system.get("nvmlDeviceGetCount")
    if count is not None and "nvmlSystemGetDriverVersion" in records.system:
        facts.append(_NVML.coverage("driver", "pynvml"))
    if count is not None:
        facts.append(_NVML.coverage("gpus", "pynvml", complete=records.ended and len(records.gpus) == count))
    return facts


def _driver(system: dict[str, Any]) -> list[Fact]:
    facts = []
    version = system.get("nvmlSystemGetDriverVersion")
    level = system.get("nvmlSystemGetCudaDriverVersion_v2") or system.get("nvmlSystemGetCudaDriverVersion")
    if version is not None or level:
        cuda_max = f"{level // 1000}.{level % 1000 // 10}" if level else None
        facts.append(_NVML.fact("driver", "pynvml", vendor="nvidia", version=version, cuda_max=cuda_max,
                                cuda_level=level or None))  # fmt: skip
    library = _LIBRARY_VERSION.match(system.get("nvmlSystemGetNVMLVersion") or "")
    if library is not None:
        facts.append(_NVML.fact("driver_part", "nvmlSystemGetNVMLVersion", part="userspace", version=library[1]))
    return facts


def _watts(milliwatts: int) -> int:
    return round(milliwatts / 1000)


def _bus_id(info: dict[str, Any]) -> Scalar | None:
    bus_id: str = info["bus_id"]
    return bus_id or None


def _device_id(info: dict[str, Any]) -> Scalar | None:
    """NVML packs device and vendor into one number."""
    device: int = info["device"]
    return f"{device & 0xFFFF:04x}:{device >> 16:04x}" if device else None


_FIELDS: tuple[tuple[str, str, Callable[[Any], Scalar | None]], ...] = (
    ("name", "nvmlDeviceGetName", lambda value: value or None),
    ("sm", "nvmlDeviceGetCudaComputeCapability", lambda value: int(value[0]) * 10 + int(value[1])),
    ("bus_id", "nvmlDeviceGetPciInfo", _bus_id),
    ("device_id", "nvmlDeviceGetPciInfo", _device_id),
    ("uuid", "nvmlDeviceGetUUID", lambda value: value or None),
    ("vram_mib", "nvmlDeviceGetMemoryInfo", lambda value: value[0] >> 20 or None),
    ("vram_used_mib", "nvmlDeviceGetMemoryInfo", lambda value: value[1] >> 20),
    ("vbios", "nvmlDeviceGetVbiosVersion", lambda value: value or None),
    ("pcie_gen_current", "nvmlDeviceGetCurrPcieLinkGeneration", lambda value: value or None),
    ("pcie_gen_max", "nvmlDeviceGetMaxPcieLinkGeneration", lambda value: value or None),
    ("pcie_width_current", "nvmlDeviceGetCurrPcieLinkWidth", lambda value: value or None),
    ("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth", lambda value: value or None),
    ("utilization_pct", "nvmlDeviceGetUtilizationRates", int),
    ("temperature_c", "nvmlDeviceGetTemperature", int),
    ("power_w", "nvmlDeviceGetPowerUsage", _watts),
    ("power_limit_w", "nvmlDeviceGetEnforcedPowerLimit", _watts),
    ("mig", "nvmlDeviceGetMigMode", lambda value: _SWITCH.get(value[0])),
    ("ecc", "nvmlDeviceGetEccMode", lambda value: _SWITCH.get(value[0])),
    ("ecc_uncorrected", "nvmlDeviceGetTotalEccErrors", int),
    ("persistence", "nvmlDeviceGetPersistenceMode", _SWITCH.get),
    ("display_active", "nvmlDeviceGetDisplayActive", bool),
)


def _gpu(values: dict[str, Any]) -> Fields:
    return {name: convert(values[function]) for name, function, convert in _FIELDS if function in values}
