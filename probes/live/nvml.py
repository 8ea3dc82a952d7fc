"""Live probe of NVIDIA's driver through NVML, in a child process that may hang or crash.

May live here: running the child and sorting its records into what was read and what failed. Must not: NVML calls, the
fields of a GPU (nvml_fields), judgement.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...facts import Fact
from ..runner import Result
from . import nvml_fields
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
# How a GPU says that it has no further link.
_NO_SUCH_LINK = ("nvmlDeviceGetNvLinkState", 2)
# The NVML version starts with its CUDA major version: 13.580.95.05.
_LIBRARY_VERSION = re.compile(r"^[0-9]{1,2}\.([0-9]{3,4}(?:\.[0-9]+)+)$")
# A call in which the child crashed is left out the next time, so that the rest is still read.
_MAX_RUNS = 3


@dataclass(slots=True)
class _Failure:
    """A call that failed after initialisation: with a code, or by never ending, crashing, an unreadable answer."""

    function: str
    gpu: int | None
    code: int | None = None
    state: str = "failed"


@dataclass(slots=True)
class _Records:
    """The child's records, sorted by what they speak of; a call made several times has several values."""

    system: dict[str, Any] = field(default_factory=dict)
    gpus: dict[int, dict[str, list[Any]]] = field(default_factory=dict)
    failures: list[_Failure] = field(default_factory=list)
    init_error: int | None = None
    foreign: str | None = None
    library: bool = True
    ended: bool = False
    # By GPU, the call that has not ended.
    open_calls: dict[int | None, str] = field(default_factory=dict)
    began: bool = False

    @property
    def initialised(self) -> bool:
        return "nvmlInit" in self.system


def probe_nvml(machine: Machine, limit_s: float) -> list[Fact]:
    """Driver and GPUs as NVML tells them, and what became of NVML itself."""
    if machine.system == "macos":
        return []
    result, records = _run(machine, limit_s)
    if records.foreign is not None:
        raise ProbeError("missing", f"no usable module pynvml: {records.foreign}")
    if not records.ended and result.state == "ok" and not records.began:
        raise ProbeError("error", (result.stderr.strip().splitlines() or ["the NVML child printed nothing"])[-1])
    if result.state not in ("ok", "timeout"):
        raise ProbeError(result.state)
    return [*_state(records, timed_out=result.state == "timeout"), *_facts(records, machine)]


def failed(facts: list[Fact]) -> bool:
    """Whether NVML told nothing, so that nvidia-smi is worth a try."""
    return not any(fact.type == "nvml" and fact.get("state") == "ok" for fact in facts)


# --- the child --------------------------------------------------------------------------------------------------------


def _run(machine: Machine, limit_s: float) -> tuple[Result, _Records]:
    """What the child told; after a crash, that of another one that leaves the fatal call out."""
    deadline = time.monotonic() + limit_s
    crashed: list[_Failure] = []
    while True:
        left_out = sorted({failure.function for failure in crashed})
        command = [sys.executable, "-B", "-W", "ignore", os.fspath(_CHILD), *left_out]
        result = machine.runner.run(command, limit_s=max(0.1, deadline - time.monotonic()))
        records = _parse(result.stdout)
        unended = [] if records.ended or not records.initialised else _unended(records, result.state == "timeout")
        again = result.state == "ok" and bool(unended) and len(crashed) < _MAX_RUNS - 1
        records.failures += [*crashed, *unended]
        if not again:
            return result, records
        crashed += unended[:1]


def _unended(records: _Records, timed_out: bool) -> list[_Failure]:
    """The calls that never ended; a crash is the fault of the one that came last."""
    state = "timeout" if timed_out else "crashed"
    found = [_Failure(function, gpu, None, state) for gpu, function in records.open_calls.items()]
    return found if timed_out else found[-1:]


def _parse(stdout: str) -> _Records:
    records = _Records()
    for line in stdout.splitlines():
        try:
            kind, *rest = json.loads(line)
        except ValueError:
            # The line that a killed child was writing.
            continue
        if kind == "foreign":
            records.foreign = rest[0]
        elif kind == "library":
            records.library = rest[0]
        elif kind == "end":
            records.ended = True
        else:
            _take(records, kind, rest)
    return records


def _take(records: _Records, kind: str, rest: list[Any]) -> None:
    """A record of one call."""
    records.began = True
    if kind == "done":
        return
    function, gpu, *value = rest
    records.open_calls.pop(gpu, None)
    if kind == "call":
        records.open_calls[gpu] = function
    elif kind == "value":
        if gpu is None:
            records.system[function] = value[0]
        else:
            records.gpus.setdefault(gpu, {}).setdefault(function, []).append(value[0])
    elif kind == "odd":
        records.failures.append(_Failure(function, gpu, None, "unreadable"))
    elif function == "nvmlInit":
        records.init_error = value[0]
    else:
        records.failures.append(_Failure(function, gpu, value[0]))


# --- facts ------------------------------------------------------------------------------------------------------------


def _name(code: int | None) -> str | None:
    return f"NVML_ERROR_{_NAMES[code]}" if code in _NAMES else None


def _state(records: _Records, *, timed_out: bool) -> list[Fact]:
    """What became of initialising NVML; a hang or crash later is a failed call and a probe failure."""
    code = records.init_error
    coverage = _NVML.coverage("nvml", "pynvml")
    if code is not None:
        state = "failed" if records.library else "missing"
        fact = _NVML.fact("nvml", "nvmlInit", state=state, code=code, name=_name(code))
        # Without NVIDIA's user-space library there is no NVIDIA driver in this scope.
        return [fact, coverage, *([] if records.library else [_NVML.coverage("driver", "pynvml")])]
    if not records.initialised:
        return [_NVML.fact("nvml", "nvmlInit", state="timeout" if timed_out else "crashed"), coverage]
    facts = [_NVML.fact("nvml", "nvmlInit", state="ok", code=0, name="NVML_SUCCESS"), coverage]
    unended = [failure for failure in records.failures if failure.state in ("timeout", "crashed")]
    if unended:
        facts.append(_NVML.failure(ProbeError(unended[0].state, ", ".join(map(_called, unended)))))
    return facts


def _called(failure: _Failure) -> str:
    return failure.function if failure.gpu is None else f"{failure.function} on GPU {failure.gpu}"


def _facts(records: _Records, machine: Machine) -> list[Fact]:
    failures = _told(records)
    facts = [*_driver(records.system, records.gpus), *nvml_fields.gpu_facts(_NVML, records.gpus, _unsupported(records))]
    facts += [
        _NVML.fact("nvml_call_error", failure.function, function=failure.function, gpu=failure.gpu, code=failure.code,
                   name=_name(failure.code), state=failure.state, group=nvml_fields.group_of(failure.function))
        for failure in failures
    ]  # fmt: skip
    count = records.system.get("nvmlDeviceGetCount")
    if count is not None and "nvmlSystemGetDriverVersion" in records.system:
        facts.append(_NVML.coverage("driver", "pynvml"))
    if count is not None:
        complete = len(records.gpus) == count and not any(failure.state == "timeout" for failure in failures)
        facts.append(_NVML.coverage("gpus", "pynvml", complete=complete))
        facts += nvml_fields.coverages(_NVML, records.gpus, failures={f.function for f in failures}, machine=machine)
    return facts


def _told(records: _Records) -> list[_Failure]:
    """The failures worth a fact, one for a function and GPU: not those that another form of the call made good."""
    told: dict[tuple[str, int | None], _Failure] = {}
    for failure in records.failures:
        known = records.system if failure.gpu is None else records.gpus.get(failure.gpu, {})
        benign = failure.code in _BENIGN or (failure.function, failure.code) == _NO_SUCH_LINK
        made_good = failure.function in known or nvml_fields.OLDER.get(failure.function) in known
        counts = failure.state != "failed" or not made_good or failure.function in nvml_fields.REPEATED
        if counts and not benign:
            told.setdefault((failure.function, failure.gpu), failure)
    return list(told.values())


def _unsupported(records: _Records) -> dict[int, str]:
    """By GPU, the groups of calls in which the driver offered nothing."""
    found: dict[int, str] = {}
    for gpu, values in records.gpus.items():
        refused = {nvml_fields.group_of(f.function) for f in records.failures if f.gpu == gpu and f.code in _BENIGN}
        answered = {nvml_fields.group_of(function) for function in values if function != "links_read"}
        found[gpu] = ", ".join(sorted(refused - answered))
    return found


def _driver(system: dict[str, Any], gpus: dict[int, dict[str, list[Any]]]) -> list[Fact]:
    facts = []
    version = nvml_fields.text(system.get("nvmlSystemGetDriverVersion"))
    level = system.get("nvmlSystemGetCudaDriverVersion_v2") or system.get("nvmlSystemGetCudaDriverVersion")
    if version is not None or level:
        cuda_max = f"{level // 1000}.{level % 1000 // 10}" if level else None
        facts.append(_NVML.fact("driver", "pynvml", vendor="nvidia", version=version, cuda_max=cuda_max,
                                cuda_level=level or None, model=nvml_fields.driver_model(gpus)))  # fmt: skip
    library = _LIBRARY_VERSION.match(system.get("nvmlSystemGetNVMLVersion") or "")
    if library is not None:
        facts.append(_NVML.fact("driver_part", "nvmlSystemGetNVMLVersion", part="userspace", version=library[1]))
    return facts
