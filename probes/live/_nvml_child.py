"""Child process of the NVML probe: calls NVML through pynvml and prints one JSON record a line.

May live here: the calls, and nothing that interprets them. It runs as a script, so it imports nothing of this package.

Records: `["call", function, gpu]` before each call, so that a hang or crash can be blamed; then `["value", function,
gpu, value]` or `["error", function, gpu, code]`. Around them `["foreign", what]`, `["library", loaded]` and `["end"]`.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

NOT_SUPPORTED = 3
FUNCTION_NOT_FOUND = 13
# Every further call on such a GPU fails alike.
DEAD = (15, 16)
NEEDED = ("nvmlInit", "NVMLError", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetCudaComputeCapability")

Call = tuple[str, Sequence[Any], Callable[[Any], Any]]


def tell(*record: Any) -> None:
    """Print one record at once: the next call may never return."""
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


def plain(value: Any) -> Any:
    """A string of older pynvml versions is bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def attempt(nvml: Any, gpu: int | None, call: Call) -> tuple[Any, int]:
    """Make one call and tell its outcome: the value and 0, or None and the error code."""
    name, arguments, convert = call
    function = getattr(nvml, name, None)
    if function is None:
        return None, FUNCTION_NOT_FOUND
    tell("call", name, gpu)
    try:
        value = function(*arguments)
    except nvml.NVMLError as error:
        code = int(error.value)
        tell("error", name, gpu, code)
        return None, code
    tell("value", name, gpu, plain(convert(value)))
    return value, 0


def same(value: Any) -> Any:
    """The value itself."""
    return value


def gpu_calls(handle: Any) -> list[Call]:
    """What is asked of every GPU."""
    volatile_uncorrected = (handle, 1, 0)
    return [
        ("nvmlDeviceGetName", (handle,), same),
        ("nvmlDeviceGetUUID", (handle,), same),
        ("nvmlDeviceGetPciInfo", (handle,), lambda info: {"bus_id": plain(info.busId), "device": info.pciDeviceId}),
        ("nvmlDeviceGetCudaComputeCapability", (handle,), list),
        ("nvmlDeviceGetVbiosVersion", (handle,), same),
        ("nvmlDeviceGetTemperature", (handle, 0), same),
        ("nvmlDeviceGetPowerUsage", (handle,), same),
        ("nvmlDeviceGetEnforcedPowerLimit", (handle,), same),
        ("nvmlDeviceGetUtilizationRates", (handle,), lambda rates: rates.gpu),
        ("nvmlDeviceGetCurrPcieLinkGeneration", (handle,), same),
        ("nvmlDeviceGetMaxPcieLinkGeneration", (handle,), same),
        ("nvmlDeviceGetCurrPcieLinkWidth", (handle,), same),
        ("nvmlDeviceGetMaxPcieLinkWidth", (handle,), same),
        ("nvmlDeviceGetMigMode", (handle,), list),
        ("nvmlDeviceGetEccMode", (handle,), list),
        ("nvmlDeviceGetTotalEccErrors", volatile_uncorrected, same),
        ("nvmlDeviceGetPersistenceMode", (handle,), same),
        ("nvmlDeviceGetDisplayActive", (handle,), same),
    ]


def memory_call(nvml: Any, handle: Any, *, old: bool) -> Call:
    """Memory as nvidia-smi shows it; the old call counts the driver's reserve as used."""
    version = getattr(nvml, "nvmlMemory_v2", None)
    arguments = (handle,) if old or version is None else (handle, version)
    return "nvmlDeviceGetMemoryInfo", arguments, lambda memory: [memory.total, memory.used]


def read_gpu(nvml: Any, gpu: int) -> None:
    """Ask everything of one GPU."""
    handle, code = attempt(nvml, gpu, ("nvmlDeviceGetHandleByIndex", (gpu,), lambda _: True))
    if code:
        return
    values = {}
    for call in gpu_calls(handle):
        values[call[0]], code = attempt(nvml, gpu, call)
        if code in DEAD:
            return
    _, code = attempt(nvml, gpu, memory_call(nvml, handle, old=False))
    if code == FUNCTION_NOT_FOUND:
        attempt(nvml, gpu, memory_call(nvml, handle, old=True))
    mig = values["nvmlDeviceGetMigMode"]
    if mig is not None and mig[0] == 1:
        read_mig(nvml, gpu, handle)


def read_mig(nvml: Any, gpu: int, handle: Any) -> None:
    """The MIG devices of one GPU; a slot without a device is an error that means nothing."""
    count, _ = attempt(nvml, gpu, ("nvmlDeviceGetMaxMigDeviceCount", (handle,), same))
    for slot in range(count or 0):
        try:
            device = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, slot)
            record = {
                "dev": slot,
                "gi": nvml.nvmlDeviceGetGpuInstanceId(device),
                "ci": nvml.nvmlDeviceGetComputeInstanceId(device),
                "name": plain(nvml.nvmlDeviceGetName(device)),
                "memory": nvml.nvmlDeviceGetMemoryInfo(device).total,
            }
        except nvml.NVMLError:
            continue
        tell("value", "mig_device", gpu, record)


def main() -> None:
    """Initialise NVML and read everything."""
    here = os.path.dirname(os.path.abspath(__file__))
    # The folder of a script is searched first, and its modules must not hide others.
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError as error:
        tell("foreign", str(error))
        return
    missing = [name for name in NEEDED if not hasattr(nvml, name)]
    if missing:
        tell("foreign", "{} lacks {}".format(getattr(nvml, "__file__", "pynvml"), ", ".join(missing)))
        return
    _, code = attempt(nvml, None, ("nvmlInit", (), same))
    tell("library", code != 12 or getattr(nvml, "nvmlLib", True) is not None)
    # Answered even where initialisation fails: it is the version of the library itself.
    if code != 12:
        attempt(nvml, None, ("nvmlSystemGetNVMLVersion", (), same))
    if code == 0:
        attempt(nvml, None, ("nvmlSystemGetDriverVersion", (), same))
        _, failed = attempt(nvml, None, ("nvmlSystemGetCudaDriverVersion_v2", (), same))
        if failed == FUNCTION_NOT_FOUND:
            attempt(nvml, None, ("nvmlSystemGetCudaDriverVersion", (), same))
        count, _ = attempt(nvml, None, ("nvmlDeviceGetCount", (), same))
        for gpu in range(count or 0):
            read_gpu(nvml, gpu)
    tell("end")


if __name__ == "__main__":
    main()
