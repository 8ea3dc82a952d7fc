"""Child process of the NVML probe: calls NVML through pynvml and prints one JSON record a line.

May live here: the calls, and nothing that interprets them. It runs as a script, so it imports nothing of this package.

Records: `["call", function, gpu]` before each call, so that a hang or crash can be blamed; then `["value", function,
gpu, value]`, `["error", function, gpu, code]` or `["odd", function, gpu, what]` where pynvml cannot read what came.
Around them `["foreign", what]`, `["library", loaded]`, `["done", gpu]` and `["end"]`.

Arguments: functions that are not to be called, since an earlier child crashed in them.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

NOT_SUPPORTED = 3
FUNCTION_NOT_FOUND = 13
# A form of a call that this driver does not have, or not with this structure.
NOT_THIS_FORM = (FUNCTION_NOT_FOUND, 25)
# Every further call on such a GPU fails alike.
DEAD = (15, 16)
NEEDED = ("nvmlInit", "NVMLError", "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetCudaComputeCapability")
# Seconds that one GPU may keep the next one waiting: a GPU that does not answer must not hide the others.
PATIENCE_S = 1.0
MAX_GPUS = 64
MAX_PROCESSES = 64
# Replays, recoveries and CRC errors of packets.
LINK_ERRORS = (0, 1, 2)
MAX_LINKS = 36
TO_SWITCH = 2
# Reading and writing the other GPU's memory.
PEER_CAPABILITIES = (0, 1)

Call = tuple[str, Sequence[Any], Callable[[Any], Any]]
Outcome = tuple[Any, int]

skipped = frozenset(sys.argv[1:])


def tell(*record: Any) -> None:
    """Print one record at once, whole even when two threads print: the next call may never return."""
    os.write(1, (json.dumps(record) + "\n").encode())


def plain(value: Any) -> Any:
    """A string of older pynvml versions is bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def same(value: Any) -> Any:
    """The value itself."""
    return value


def labelled(*labels: Any) -> Callable[[Any], Any]:
    """Puts before a value what it was asked of: a link, a pair of GPUs."""
    return lambda value: [*labels, value]


class Reader:
    """Makes calls and tells what came of each."""

    def __init__(self, nvml: Any) -> None:
        self.nvml = nvml
        self.handles: dict[int, Any] = {}

    def attempt(self, gpu: int | None, call: Call) -> Outcome:
        """Make one call and tell its outcome: the value and 0, or None and the error code (-1: no code)."""
        name, arguments, convert = call
        function = getattr(self.nvml, name, None)
        if function is None or name in skipped:
            return None, FUNCTION_NOT_FOUND
        tell("call", name, gpu)
        try:
            value = function(*arguments)
            tell("value", name, gpu, plain(convert(value)))
        except self.nvml.NVMLError as error:
            code = int(error.value)
            tell("error", name, gpu, code)
            return None, code
        # A damaged answer: text that is no UTF-8, a structure of another size.
        except Exception as error:
            tell("odd", name, gpu, type(error).__name__)
            return None, -1
        return value, 0

    def first_of(self, gpu: int | None, *calls: Call) -> Outcome:
        """The first of several forms of a call that this driver has."""
        outcome: Outcome = None, FUNCTION_NOT_FOUND
        for call in calls:
            outcome = self.attempt(gpu, call)
            if outcome[1] not in NOT_THIS_FORM:
                break
        return outcome

    # --- one GPU -------------------------------------------------------------------------------------------------

    def read_gpu(self, gpu: int) -> None:
        """Ask everything of one GPU."""
        handle, code = self.attempt(gpu, ("nvmlDeviceGetHandleByIndex", (gpu,), lambda _: True))
        if code == 0 and self.read_figures(gpu, handle):
            self.read_processes(gpu, handle)
            self.read_links(gpu, handle)
            # What is between GPUs is only asked of those that answered everything.
            self.handles[gpu] = handle
        tell("done", gpu)

    def read_figures(self, gpu: int, handle: Any) -> bool:
        """What is asked of every GPU; whether it still answers."""
        mig = None
        for forms in self.figures(handle):
            value, code = self.first_of(gpu, *forms)
            if code in DEAD:
                return False
            if forms[0][0] == "nvmlDeviceGetMigMode":
                mig = value
        if mig is not None and mig[0] == 1:
            self.read_mig(gpu, handle)
        return True

    def figures(self, handle: Any) -> list[tuple[Call, ...]]:
        """Calls, each with the forms that older drivers know."""
        one = (handle,)
        memory = ("nvmlDeviceGetMemoryInfo", one, lambda memory: [memory.total, memory.used])
        versioned = getattr(self.nvml, "nvmlMemory_v2", None)
        # Memory as nvidia-smi shows it; the old call counts the driver's reserve as used.
        memories = (memory,) if versioned is None else ((memory[0], (handle, versioned), memory[2]), memory)
        fabric: Any = getattr(self.nvml, "c_nvmlGpuFabricInfo_t", ctypes.c_uint)()
        return [
            (("nvmlDeviceGetName", one, same),),
            (("nvmlDeviceGetUUID", one, same),),
            (("nvmlDeviceGetPciInfo", one, lambda info: {"bus_id": plain(info.busId), "device": info.pciDeviceId}),),
            (("nvmlDeviceGetCudaComputeCapability", one, list),),
            memories,
            (("nvmlDeviceGetVbiosVersion", one, same),),
            (("nvmlDeviceGetBAR1MemoryInfo", one, lambda bar: [bar.bar1Total, bar.bar1Used]),),
            (("nvmlDeviceGetTemperature", (handle, 0), same),),
            (("nvmlDeviceGetTemperatureThreshold", (handle, 1), same),),
            (("nvmlDeviceGetPowerUsage", one, same),),
            (("nvmlDeviceGetEnforcedPowerLimit", one, same),),
            (("nvmlDeviceGetPowerManagementDefaultLimit", one, same),),
            (("nvmlDeviceGetPowerManagementLimitConstraints", one, list),),
            (("nvmlDeviceGetUtilizationRates", one, lambda rates: rates.gpu),),
            (("nvmlDeviceGetPerformanceState", one, same),),
            (("nvmlDeviceGetClockInfo", (handle, 0), same),),
            (("nvmlDeviceGetMaxClockInfo", (handle, 0), same),),
            (
                ("nvmlDeviceGetCurrentClocksEventReasons", one, same),
                ("nvmlDeviceGetCurrentClocksThrottleReasons", one, same),
            ),
            (("nvmlDeviceGetCurrPcieLinkGeneration", one, same),),
            (("nvmlDeviceGetMaxPcieLinkGeneration", one, same),),
            (("nvmlDeviceGetCurrPcieLinkWidth", one, same),),
            (("nvmlDeviceGetMaxPcieLinkWidth", one, same),),
            (("nvmlDeviceGetPcieReplayCounter", one, same),),
            (("nvmlDeviceGetMigMode", one, list),),
            (("nvmlDeviceGetEccMode", one, list),),
            # Uncorrected and corrected errors since the driver was loaded.
            (("nvmlDeviceGetTotalEccErrors", (handle, 1, 0), labelled("uncorrected")),),
            (("nvmlDeviceGetTotalEccErrors", (handle, 0, 0), labelled("corrected")),),
            (("nvmlDeviceGetRemappedRows", one, list),),
            (("nvmlDeviceGetRetiredPagesPendingStatus", one, same),),
            (("nvmlDeviceGetPersistenceMode", one, same),),
            (("nvmlDeviceGetComputeMode", one, same),),
            (("nvmlDeviceGetDriverModel", one, list),),
            (("nvmlDeviceGetDisplayActive", one, same),),
            (("nvmlDeviceGetGpuFabricInfo", (handle, ctypes.byref(fabric)), lambda _: [fabric.state, fabric.status]),),
        ]

    def read_mig(self, gpu: int, handle: Any) -> None:
        """The MIG devices of one GPU; a slot without a device is an error that means nothing."""
        count, _ = self.attempt(gpu, ("nvmlDeviceGetMaxMigDeviceCount", (handle,), same))
        for slot in range(count or 0):
            try:
                device = self.nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, slot)
                record = {
                    "dev": slot,
                    "gi": self.nvml.nvmlDeviceGetGpuInstanceId(device),
                    "ci": self.nvml.nvmlDeviceGetComputeInstanceId(device),
                    "name": plain(self.nvml.nvmlDeviceGetName(device)),
                    "memory": self.nvml.nvmlDeviceGetMemoryInfo(device).total,
                }
            except (self.nvml.NVMLError, UnicodeDecodeError):
                continue
            tell("value", "mig_device", gpu, record)

    def read_processes(self, gpu: int, handle: Any) -> None:
        """The processes on one GPU with their names."""
        for kind in ("Compute", "Graphics"):
            name = f"nvmlDeviceGet{kind}RunningProcesses"
            forms: list[Call] = [(f"{name}{suffix}", (handle,), len) for suffix in ("_v3", "_v2")]
            processes, code = self.first_of(gpu, *forms)
            for process in [] if code else processes[:MAX_PROCESSES]:
                used = process.usedGpuMemory
                tell("value", "process", gpu, [process.pid, kind[0], self.process_name(process.pid), used])

    def process_name(self, pid: int) -> Any:
        """The name of a process; of those in other containers NVML knows none."""
        try:
            return plain(self.nvml.nvmlSystemGetProcessName(pid))
        except (self.nvml.NVMLError, UnicodeDecodeError):
            return None

    def read_links(self, gpu: int, handle: Any) -> None:
        """The NVLinks of one GPU: whether each is up, its errors, and what it leads to."""
        for link in range(MAX_LINKS):
            up, code = self.attempt(gpu, ("nvmlDeviceGetNvLinkState", (handle, link), labelled(link)))
            if code:
                break
            if up:
                self.read_link(gpu, handle, link)
        tell("value", "links_read", gpu, True)

    def read_link(self, gpu: int, handle: Any, link: int) -> None:
        """Errors and far end of a link that is up."""
        if link == 0:
            self.attempt(gpu, ("nvmlDeviceGetNvLinkVersion", (handle, link), same))
        for counter in LINK_ERRORS:
            self.attempt(gpu, ("nvmlDeviceGetNvLinkErrorCounter", (handle, link, counter), same))
        kind, _ = self.attempt(gpu, ("nvmlDeviceGetNvLinkRemoteDeviceType", (handle, link), same))
        if kind != TO_SWITCH:
            self.attempt(gpu, ("nvmlDeviceGetNvLinkRemotePciInfo", (handle, link), lambda far: plain(far.busId)))

    # --- all GPUs --------------------------------------------------------------------------------------------------

    def read_gpus(self, count: int) -> None:
        """Every GPU in a thread of its own, mostly one after the other, then what is between them."""
        threads = []
        for gpu in range(min(count, MAX_GPUS)):
            thread = threading.Thread(target=self.read_gpu, args=(gpu,), daemon=True)
            thread.start()
            thread.join(PATIENCE_S)
            threads.append(thread)
        self.read_pairs()
        for thread in threads:
            thread.join()

    def read_pairs(self) -> None:
        """How near two GPUs are to each other, and whether the driver lets them use each other's memory."""
        answering = sorted(self.handles.items())
        for place, (first, one) in enumerate(answering):
            for second, other in answering[place + 1 :]:
                ask = ("nvmlDeviceGetTopologyCommonAncestor", (one, other), labelled(second))
                if self.attempt(first, ask)[1] in (NOT_SUPPORTED, FUNCTION_NOT_FOUND):
                    return
                for capability in PEER_CAPABILITIES:
                    convert = labelled(second, capability)
                    self.attempt(first, ("nvmlDeviceGetP2PStatus", (one, other, capability), convert))

    def read(self) -> None:
        """Initialise NVML and read everything."""
        _, code = self.attempt(None, ("nvmlInit", (), same))
        tell("library", code != 12 or getattr(self.nvml, "nvmlLib", True) is not None)
        # Answered even where initialisation fails: it is the version of the library itself.
        if code != 12:
            self.attempt(None, ("nvmlSystemGetNVMLVersion", (), same))
        if code != 0:
            return
        self.attempt(None, ("nvmlSystemGetDriverVersion", (), same))
        self.first_of(
            None,
            ("nvmlSystemGetCudaDriverVersion_v2", (), same),
            ("nvmlSystemGetCudaDriverVersion", (), same),
        )
        count, _ = self.attempt(None, ("nvmlDeviceGetCount", (), same))
        self.read_gpus(count or 0)


def main() -> None:
    """Find pynvml and read everything."""
    here = os.path.dirname(os.path.abspath(__file__))
    # The folder of a script is searched first, and its modules must not hide others.
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
    try:
        nvml = importlib.import_module("pynvml")
    # Whatever stands under that name may fail in any way.
    except Exception as error:
        tell("foreign", str(error))
        return
    missing = [name for name in NEEDED if not hasattr(nvml, name)]
    if missing:
        tell("foreign", "{} lacks {}".format(getattr(nvml, "__file__", "pynvml"), ", ".join(missing)))
        return
    Reader(nvml).read()
    tell("end")


if __name__ == "__main__":
    main()
