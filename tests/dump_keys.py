"""From our facts to the paths that the corpus of dumps uses in `expected`: one small function a path.

May live here: the mapping of names. Must not: reading, and any text of the corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from gpurules.facts import Fact, Scalar

MISSING: Any = object()

# Paths that are no facts of the present state, each with the reason; a test counts them as skipped.
SKIPPED = {
    "snapshots": "older states of a machine are not emitted; the newest one is checked through driver and gpus",
}


def rows(facts: Iterable[Fact], kind: str) -> list[dict[str, Scalar]]:
    """The fields of every fact of a type."""
    return [dict(fact.fields) for fact in facts if fact.type == kind]


def field(facts: Iterable[Fact], kind: str, name: str, **where: Scalar) -> Any:
    """A field of the first fact of a type that has it and meets the conditions."""
    for row in rows(facts, kind):
        if name in row and all(row.get(key) == value for key, value in where.items()):
            return row[name]
    return MISSING


def gpus(facts: Sequence[Fact]) -> list[dict[str, Any]]:
    """GPUs joined by index, under the names of the corpus."""
    joined: dict[Any, dict[str, Any]] = {}
    for position, row in enumerate(rows(facts, "gpu")):
        key = row.get("index", f"#{position}")
        known = joined.setdefault(key, {})
        for name, value in row.items():
            known.setdefault(name, value)
    for gpu in joined.values():
        if "bus_id" in gpu:
            gpu["bus"] = gpu["bus_id"]
        gpu["pcie"] = {
            "gen_current": gpu.get("pcie_gen_current", MISSING),
            "gen_max": gpu.get("pcie_gen_max", MISSING),
            "width_current": f"{gpu.get('pcie_width_current')}x",
            "width_max": f"{gpu.get('pcie_width_max')}x",
        }
    return list(joined.values())


def topologies(facts: Sequence[Fact]) -> list[dict[str, Any]]:
    """One dict a matrix: numbers of rows, links, affinities and the names of the legend."""
    devices = rows(facts, "topology_device")
    result = []
    for machine in sorted({int(row["machine"]) for row in devices}):
        mine = [row for row in devices if row["machine"] == machine]
        links = [row for row in rows(facts, "topology_link") if row["machine"] == machine]
        nic_names = {str(row["name"]): row["nic"] for row in mine if "nic" in row}
        nics = sum(str(row["name"]).startswith("NIC") for row in mine)
        result.append(
            {
                "gpus": sum(str(row["name"]).startswith("GPU") for row in mine),
                "nics": _Count(nics, nic_names),
                "links": {f"{row['a']}-{row['b']}": row["link"] for row in links},
                "cpu_affinity": {str(row["name"]): row["cpu_affinity"] for row in mine if "cpu_affinity" in row},
                "numa": {str(row["name"]): _number(row["numa"]) for row in mine if "numa" in row},
                "nic_names": nic_names,
                "path_type": field(facts, "nccl", "path_type"),
            }
        )
    return result


class _Count(dict[str, Scalar]):
    """`nics` is a number of rows in most dumps and a mapping of names in one: equal to either."""

    def __init__(self, number: int, names: dict[str, Scalar]) -> None:
        super().__init__(names)
        self.number = number

    def __eq__(self, other: object) -> bool:
        return self.number == other if isinstance(other, int) else dict(self) == other

    __hash__ = None  # type: ignore[assignment]


def _number(text: Scalar) -> Scalar:
    return int(text) if isinstance(text, str) and text.isdigit() else text


def xids(facts: Sequence[Fact]) -> list[dict[str, Any]]:
    """Xid events; the comma list of processes as a list."""
    return [
        {**row, "processes": str(row["processes"]).split(",") if "processes" in row else MISSING}
        for row in rows(facts, "xid")
    ]


def pci(facts: Sequence[Fact]) -> list[dict[str, Any]]:
    """PCI devices, each with the number of devices of its class and id."""
    devices = rows(facts, "pci_device")
    kinds = [(row.get("class"), row.get("device_id")) for row in devices]
    return [{**row, "count": kinds.count(kind)} for row, kind in zip(devices, kinds, strict=True)]


def _mig(facts: Sequence[Fact]) -> Any:
    devices = rows(facts, "mig_device")
    enabled = [gpu["index"] for gpu in gpus(facts) if gpu.get("mig") == "enabled"]
    return {"enabled_gpus": enabled, "devices": devices} if devices or enabled else MISSING


def _driver_version(facts: Sequence[Fact]) -> Any:
    stated = field(facts, "driver", "version")
    return stated if stated is not MISSING else field(facts, "driver_part", "version", part="kernel_module")


def _topology(facts: Sequence[Fact]) -> Any:
    found = topologies(facts)
    if found:
        return found[0]
    path_type = field(facts, "nccl", "path_type")
    return MISSING if path_type is MISSING else {"path_type": path_type}


def _listed(facts: Sequence[Fact], kind: str, name: str) -> Any:
    values = [row[name] for row in rows(facts, kind) if name in row]
    return values or MISSING


def _modules(facts: Sequence[Fact]) -> Any:
    names = _listed(facts, "module", "name")
    return names if names is MISSING else [str(name).replace("_", "-") for name in names]


# Whole paths first, then whole subtrees by their first word.
PATHS: dict[str, Callable[[Sequence[Fact]], Any]] = {
    "driver.version": _driver_version,
    "driver.cuda_max": lambda facts: field(facts, "driver", "cuda_max"),
    "driver.model": lambda facts: field(facts, "driver", "model"),
    "driver.cuda_driver_version": lambda facts: field(facts, "driver", "cuda_level"),
    "driver.userspace_version": lambda facts: field(facts, "driver_part", "version", part="userspace"),
    "driver.kernel_module_version": lambda facts: field(facts, "driver_part", "version", part="kernel_module"),
    "nvidia_smi.state": lambda facts: field(facts, "nvidia_smi", "state"),
    "nvidia_smi.return_code": lambda facts: field(facts, "nvidia_smi", "return_code"),
    "kernel": lambda facts: field(facts, "kernel", "release"),
    "board": lambda facts: field(facts, "board", "name"),
    "cpu": lambda facts: field(facts, "cpu", "name"),
    "bus_id": lambda facts: field(facts, "pci_device", "bus_id"),
    "nccl.net_devices": lambda facts: _listed(facts, "nccl_net_device", "name"),
    "power_cap_w": lambda facts: field(facts, "rocm", "power_cap_w"),
}
SUBTREES: dict[str, Callable[[Sequence[Fact]], Any]] = {
    "gpus": gpus,
    "processes": lambda facts: rows(facts, "process"),
    "mig": _mig,
    "topology": _topology,
    "topologies": topologies,
    "xid": xids,
    "pci": pci,
    "bus_ids": lambda facts: _listed(facts, "pci_device", "bus_id"),
    "modules": _modules,
    "env": lambda facts: {str(row["name"]): row["value"] for row in rows(facts, "env_var")},
    "nccl": lambda facts: (rows(facts, "nccl") or [MISSING])[0],
    "rocm": lambda facts: {name: value for row in reversed(rows(facts, "rocm")) for name, value in row.items()},
    "job": lambda facts: (rows(facts, "job") or [MISSING])[0],
}


def value(facts: Sequence[Fact], path: str) -> Any:
    """What our facts say at a dotted path, or MISSING.

    A path into a list (`gpus.1.name`) counts in the order of the facts; whoever compares a list whose order is not
    fixed (`pci`) looks for a row that has all expected fields instead.
    """
    if path in PATHS:
        return PATHS[path](facts)
    first, *rest = path.split(".")
    if first not in SUBTREES:
        return MISSING
    found = SUBTREES[first](facts)
    for step in rest:
        if isinstance(found, dict):
            found = found.get(step, MISSING)
        elif isinstance(found, list) and step.isdigit() and int(step) < len(found):
            found = found[int(step)]
        else:
            return MISSING
    return found
