"""What the values of NVML calls are as facts: the fields of a GPU, its processes, links, peers and slowed clocks.

May live here: tables from calls to fields, enumerations of nvml.h. Must not: running the child, judgement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any

from ...facts import Fact, Scalar
from .host import in_container, is_wsl
from .source import Machine, Stating

Fields = dict[str, Scalar | None]
Values = Mapping[str, list[Any]]
Gpus = Mapping[int, Values]

MAX_TEXT = 200
_SWITCH = {0: "disabled", 1: "enabled"}
_COMPUTE_MODES = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
_FABRIC = {1: "not_started", 2: "in_progress", 3: "completed"}
_DRIVER_MODELS = {0: "WDDM", 1: "TCC", 2: "MCDM"}
# As `nvidia-smi -q` prints them, by bit.
_THROTTLE = {
    0x1: "Idle",
    0x2: "Applications Clocks Setting",
    0x4: "SW Power Cap",
    0x8: "HW Slowdown",
    0x10: "Sync Boost",
    0x20: "SW Thermal Slowdown",
    0x40: "HW Thermal Slowdown",
    0x80: "HW Power Brake Slowdown",
    0x100: "Display Clock Setting",
}
# As `nvidia-smi topo -m` prints them.
_LEVELS = {0: "PSB", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
_PEER_STATES = {0: "ok", 1: "chipset_not_supported", 2: "gpu_not_supported", 3: "topology_not_supported",
                4: "disabled_by_regkey", 5: "not_supported", 6: "unknown"}  # fmt: skip
_CLOCKS = ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
_PROCESSES = tuple(f"nvmlDeviceGet{kind}RunningProcesses_v{n}" for kind in ("Compute", "Graphics") for n in (3, 2))
_UNKNOWN_PSTATE = 32
_TO_SWITCH = 2

# What a function's name holds, in this order, and the group of calls that it belongs to.
_GROUPS = (
    ("HandleByIndex", "handle"),
    ("GetCount", "count"),
    ("System", "system"),
    ("NvLink", "nvlink"),
    ("links_", "nvlink"),
    ("Fabric", "nvlink"),
    ("Mig", "mig"),
    ("mig_", "mig"),
    ("MemoryInfo", "memory"),
    ("Ecc", "ecc"),
    ("RemappedRows", "ecc"),
    ("RetiredPages", "ecc"),
    ("Power", "power"),
    ("Temperature", "temperature"),
    ("Clock", "clocks"),
    ("PerformanceState", "clocks"),
    ("Utilization", "clocks"),
    ("Pcie", "pcie"),
    ("Process", "processes"),
    ("process", "processes"),
    ("Topology", "topology"),
    ("P2P", "topology"),
    ("Mode", "mode"),
    ("DriverModel", "mode"),
)
# The older forms of calls.
OLDER = {
    "nvmlDeviceGetCurrentClocksEventReasons": "nvmlDeviceGetCurrentClocksThrottleReasons",
    "nvmlDeviceGetComputeRunningProcesses_v3": "nvmlDeviceGetComputeRunningProcesses_v2",
    "nvmlDeviceGetGraphicsRunningProcesses_v3": "nvmlDeviceGetGraphicsRunningProcesses_v2",
    "nvmlSystemGetCudaDriverVersion_v2": "nvmlSystemGetCudaDriverVersion",
}
# Functions that are called more than once for a GPU.
REPEATED = frozenset(
    {"nvmlDeviceGetNvLinkState", "nvmlDeviceGetNvLinkErrorCounter", "nvmlDeviceGetNvLinkRemoteDeviceType",
     "nvmlDeviceGetNvLinkRemotePciInfo", "nvmlDeviceGetTopologyCommonAncestor", "nvmlDeviceGetP2PStatus",
     "nvmlDeviceGetTotalEccErrors"}
)  # fmt: skip


def group_of(function: str) -> str:
    """The group of calls that a function belongs to; what names a GPU is `identity`."""
    return next((group for part, group in _GROUPS if part in function), "identity")


def text(value: Any) -> str | None:
    """A text without control characters; None where nothing is left."""
    if not isinstance(value, str):
        return None
    return "".join(letter for letter in value if letter.isprintable())[:MAX_TEXT].strip() or None


def driver_model(gpus: Gpus) -> str | None:
    """The driver model that Windows uses, told of each GPU."""
    values = [
        values["nvmlDeviceGetDriverModel"][0][0] for values in gpus.values() if "nvmlDeviceGetDriverModel" in values
    ]
    return _DRIVER_MODELS.get(values[0]) if values else None


def gpu_facts(stating: Stating, gpus: Gpus, unsupported: Mapping[int, str]) -> list[Fact]:
    """The GPUs, then what belongs to them."""
    facts = [
        stating.fact("gpu", "pynvml", index=index, vendor="nvidia", **_gpu(values),
                     unsupported=unsupported.get(index) or None)
        for index, values in sorted(gpus.items())
    ]  # fmt: skip
    for index, values in sorted(gpus.items()):
        facts += _mig_devices(stating, index, values)
        facts += _slowed(stating, index, values)
        facts += _processes(stating, index, values)
    return facts + _topology(stating, gpus) + _peers(stating, gpus)


def coverages(stating: Stating, gpus: Gpus, *, failures: Set[str], machine: Machine) -> list[Fact]:
    """What was looked at whole, besides drivers and GPUs."""
    found = []
    if gpus and all(any(name in values for name in _CLOCKS) for values in gpus.values()):
        found.append("throttling")
    every = all(sum(name in values for name in _PROCESSES) == 2 for values in gpus.values())
    # A container and WSL do not see the processes of others, so their lists prove nothing.
    if gpus and every and in_container(machine) is False and not is_wsl(machine):
        found.append("processes")
    answered = [values for values in gpus.values() if "nvmlDeviceGetTopologyCommonAncestor" in values]
    between = {"nvmlDeviceGetTopologyCommonAncestor", "nvmlDeviceGetP2PStatus"}
    if answered and not failures & between:
        found += ["topology", "peers"]
    return [stating.coverage(domain, "pynvml") for domain in found]


# --- one GPU ----------------------------------------------------------------------------------------------------------


def _watts(milliwatts: int) -> int:
    """Whole watts, cut as nvidia-smi's readers cut them."""
    return milliwatts // 1000


def _device_id(info: dict[str, Any]) -> Scalar | None:
    """NVML packs device and vendor into one number."""
    device: int = info["device"]
    return f"{device & 0xFFFF:04x}:{device >> 16:04x}" if device else None


def _nonzero(value: int) -> int | None:
    return value or None


_FIELDS: tuple[tuple[str, str, Callable[[Any], Scalar | None]], ...] = (
    ("name", "nvmlDeviceGetName", text),
    ("sm", "nvmlDeviceGetCudaComputeCapability", lambda value: int(value[0]) * 10 + int(value[1])),
    ("bus_id", "nvmlDeviceGetPciInfo", lambda info: text(info["bus_id"])),
    ("device_id", "nvmlDeviceGetPciInfo", _device_id),
    ("uuid", "nvmlDeviceGetUUID", text),
    ("vram_mib", "nvmlDeviceGetMemoryInfo", lambda value: value[0] >> 20 or None),
    ("vram_used_mib", "nvmlDeviceGetMemoryInfo", lambda value: value[1] >> 20),
    ("bar1_mib", "nvmlDeviceGetBAR1MemoryInfo", lambda value: value[0] >> 20 or None),
    ("bar1_used_mib", "nvmlDeviceGetBAR1MemoryInfo", lambda value: value[1] >> 20),
    ("vbios", "nvmlDeviceGetVbiosVersion", text),
    ("pcie_gen_current", "nvmlDeviceGetCurrPcieLinkGeneration", _nonzero),
    ("pcie_gen_max", "nvmlDeviceGetMaxPcieLinkGeneration", _nonzero),
    ("pcie_width_current", "nvmlDeviceGetCurrPcieLinkWidth", _nonzero),
    ("pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth", _nonzero),
    ("pcie_replays", "nvmlDeviceGetPcieReplayCounter", int),
    ("utilization_pct", "nvmlDeviceGetUtilizationRates", int),
    ("temperature_c", "nvmlDeviceGetTemperature", int),
    ("temperature_slowdown_c", "nvmlDeviceGetTemperatureThreshold", _nonzero),
    ("power_w", "nvmlDeviceGetPowerUsage", _watts),
    ("power_limit_w", "nvmlDeviceGetEnforcedPowerLimit", _watts),
    ("power_default_w", "nvmlDeviceGetPowerManagementDefaultLimit", _watts),
    ("power_min_w", "nvmlDeviceGetPowerManagementLimitConstraints", lambda value: _watts(value[0])),
    ("power_max_w", "nvmlDeviceGetPowerManagementLimitConstraints", lambda value: _watts(value[1])),
    ("performance_state", "nvmlDeviceGetPerformanceState", lambda value: value if value < _UNKNOWN_PSTATE else None),
    ("clock_mhz", "nvmlDeviceGetClockInfo", int),
    ("clock_max_mhz", "nvmlDeviceGetMaxClockInfo", _nonzero),
    ("mig", "nvmlDeviceGetMigMode", lambda value: _SWITCH.get(value[0])),
    ("ecc", "nvmlDeviceGetEccMode", lambda value: _SWITCH.get(value[0])),
    ("remapped_rows", "nvmlDeviceGetRemappedRows", lambda value: value[0] + value[1]),
    ("remap_pending", "nvmlDeviceGetRemappedRows", lambda value: bool(value[2])),
    ("remap_failed", "nvmlDeviceGetRemappedRows", lambda value: bool(value[3])),
    ("retirement_pending", "nvmlDeviceGetRetiredPagesPendingStatus", bool),
    ("persistence", "nvmlDeviceGetPersistenceMode", _SWITCH.get),
    ("compute_mode", "nvmlDeviceGetComputeMode", _COMPUTE_MODES.get),
    ("display_active", "nvmlDeviceGetDisplayActive", bool),
    ("fabric", "nvmlDeviceGetGpuFabricInfo", lambda value: _FABRIC.get(value[0])),
    ("fabric_code", "nvmlDeviceGetGpuFabricInfo", lambda value: value[1] if value[0] in _FABRIC else None),
    ("nvlink_version", "nvmlDeviceGetNvLinkVersion", _nonzero),
)


def _gpu(values: Values) -> Fields:
    known = {name: convert(values[function][0]) for name, function, convert in _FIELDS if function in values}
    errors = dict(values.get("nvmlDeviceGetTotalEccErrors", ()))
    known.update(ecc_uncorrected=errors.get("uncorrected"), ecc_corrected=errors.get("corrected"))
    return {**known, **_links(values)}


def _links(values: Values) -> Fields:
    """The NVLinks in sum; a GPU without any gives nothing, nor one whose links were not all read."""
    states = values.get("nvmlDeviceGetNvLinkState")
    if not states or "links_read" not in values:
        return {}
    down = [link for link, up in states if not up]
    fields: Fields = {"nvlinks_up": len(states) - len(down), "nvlinks_down": len(down)}
    if "nvmlDeviceGetNvLinkErrorCounter" in values:
        fields["nvlink_errors"] = sum(values["nvmlDeviceGetNvLinkErrorCounter"])
    return fields


def _mig_devices(stating: Stating, index: int, values: Values) -> list[Fact]:
    return [
        stating.fact("mig_device", "pynvml", gpu=index, gi=mig["gi"], ci=mig["ci"], dev=mig["dev"],
                     name=text(mig["name"]), mem_total_mib=mig["memory"] >> 20)
        for mig in values.get("mig_device", ())
    ]  # fmt: skip


def _slowed(stating: Stating, index: int, values: Values) -> list[Fact]:
    """The reasons that hold the clocks back now."""
    mask = next((values[name][0] for name in _CLOCKS if name in values), 0)
    return [
        stating.fact("throttle_reason", "pynvml", gpu=index, name=name, active=True)
        for bit, name in _THROTTLE.items() if mask & bit
    ]  # fmt: skip


def _processes(stating: Stating, index: int, values: Values) -> list[Fact]:
    """The processes; one that computes and draws is told once, as nvidia-smi does."""
    rows: dict[int, Fields] = {}
    for pid, kind, name, used in values.get("process", ()):
        row = rows.setdefault(pid, {"name": text(name), "type": kind, "mem_mib": None})
        row["type"] = kind if row["type"] == kind else "C+G"
        row["mem_mib"] = used >> 20 if used is not None else row["mem_mib"]
    return [stating.fact("process", "pynvml", gpu=index, pid=pid, **fields) for pid, fields in rows.items()]


# --- between GPUs -----------------------------------------------------------------------------------------------------


def _topology(stating: Stating, gpus: Gpus) -> list[Fact]:
    """How each two GPUs are joined, as the matrix of nvidia-smi shows it."""
    facts = []
    for first, values in sorted(gpus.items()):
        for second, level in values.get("nvmlDeviceGetTopologyCommonAncestor", ()):
            joined = _joined(values, gpus.get(second, {}))
            link = f"NV{joined}" if joined else _LEVELS.get(level)
            facts.append(
                stating.fact("topology_link", "pynvml", machine=0, a=f"GPU{first}", b=f"GPU{second}", link=link)
            )
    return facts


def _joined(one: Values, other: Values) -> int:
    """How many NVLinks join two GPUs: directly, or through switches that all links lead to."""
    places = [info["bus_id"] for info in other.get("nvmlDeviceGetPciInfo", ()) if info["bus_id"]]
    direct = sum(far in places for far in one.get("nvmlDeviceGetNvLinkRemotePciInfo", ()))
    switched = [values.get("nvmlDeviceGetNvLinkRemoteDeviceType", []).count(_TO_SWITCH) for values in (one, other)]
    return direct or min(switched)


def _peers(stating: Stating, gpus: Gpus) -> list[Fact]:
    """Whether the driver lets two GPUs read and write each other's memory."""
    facts = []
    for first, values in sorted(gpus.items()):
        pairs: dict[int, Fields] = {}
        for second, capability, state in values.get("nvmlDeviceGetP2PStatus", ()):
            pairs.setdefault(second, {})["write" if capability else "read"] = _PEER_STATES.get(state, "unknown")
        facts += [stating.fact("peer_access", "pynvml", a=first, b=second, **pair) for second, pair in pairs.items()]
    return facts
