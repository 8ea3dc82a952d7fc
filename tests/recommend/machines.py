"""The machines of the grid, as facts: architectures of the catalog, drivers from branch 450 on, systems, Pythons.

May live here: plausible version numbers and the facts a probe would state. Must not: what is right for a machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from gpurules.facts import Fact, Provenance, Scalar

from .oracle import PLATFORMS, Machine, rows, version, world

SYSTEMS: dict[str, dict[str, Scalar]] = {
    "linux": {"family": "linux", "machine": "x86_64", "wsl": False},
    "windows": {"family": "windows", "machine": "x86_64"},
    "wsl": {"family": "linux", "machine": "x86_64", "wsl": True},
    "aarch64": {"family": "linux", "machine": "aarch64", "wsl": False},
    "macos": {"family": "macos", "machine": "arm64"},
}
GRID_SYSTEMS = ("linux", "windows", "wsl", "aarch64")
PYTHONS = ("3.9.18", "3.10.13", "3.11.9", "3.12.3", "3.13.1", "3.14.2", "3.15.0")
BRANCHES = tuple(b for b in world().branches if 450 <= b <= 620)
# A release of each branch as Windows has it; its numbers run apart from those of Linux.
WINDOWS = {
    450: "452.06", 455: "456.71", 460: "461.92", 465: "466.77", 470: "473.81", 495: "497.29", 510: "512.95",
    515: "517.48", 520: "522.06", 525: "528.49", 530: "531.79", 535: "537.58", 545: "546.33", 550: "551.23",
    555: "556.12", 560: "561.09", 565: "566.36", 570: "572.16", 575: "576.88", 580: "581.29", 590: "591.44",
    595: "596.21", 610: "611.04", 616: "616.10", 620: "620.33",
}  # fmt: skip
LINUX = {
    450: "450.51.05", 455: "455.45.01", 460: "460.91.03", 465: "465.31", 470: "470.256.02", 495: "495.46",
    510: "510.108.03", 515: "515.65.01", 520: "520.61.05", 525: "525.147.05", 530: "530.41.03", 535: "535.183.01",
    545: "545.23.08", 550: "550.54.15", 555: "555.58.02", 560: "560.35.05", 565: "565.77", 570: "570.124.06",
    575: "575.64.03", 580: "580.95.05", 590: "590.48.01", 595: "595.71.05", 610: "610.43.02", 616: "616.00",
    620: "620.33.01",
}  # fmt: skip


def drivers(system: str) -> list[str]:
    """One of each branch; and for each figure on which a build hangs, that very driver and the one before it."""
    windows = system in ("windows", "wsl")
    builds = world().by_platform[PLATFORMS[system]]
    edges = {world().minimum[b.cuda, windows] for b in builds}
    edges |= {world().toolkit[b.cuda, windows] for b in builds if b.ptx and (b.cuda, windows) in world().toolkit}
    printed = {".".join(f"{n:02d}" for n in e) for e in edges if 450 <= e[0] <= 620}
    real = WINDOWS if windows else LINUX
    return sorted({*(real[b] for b in BRANCHES), *printed, *(before(e) for e in printed)}, key=version)


def before(driver: str) -> str:
    """The greatest driver version below this one that could be printed: 525.60.12 for 525.60.13, 579.99 for 580."""
    *head, last = driver.split(".")
    if not head:
        return f"{int(last) - 1}.99"
    if int(last) == 0:
        return f"{before('.'.join(head))}.99"
    return ".".join((*head, f"{int(last) - 1:0{len(last)}d}"))


def grid() -> Iterator[Machine]:
    """Every architecture on every system with every driver and Python."""
    for system in GRID_SYSTEMS:
        for sm, driver, python in itertools.product(sorted(world().gpus), drivers(system), PYTHONS):
            yield Machine(system, (sm,), driver, python)


def facts(machine: Machine, extra: Sequence[Fact] = ()) -> list[Fact]:
    """What a probe states of the machine; its GPUs have names that no catalog knows, so only the number speaks."""
    found = [fact("os", SYSTEMS[machine.system])]
    for index, sm in enumerate(machine.sms):
        name = f"NVIDIA Graphics Device {index}"
        found.append(fact("gpu", {"index": index, "name": name, "vendor": "nvidia", "sm": sm}))
    if machine.driver is not None:
        found.append(fact("driver", {"vendor": "nvidia", "version": machine.driver}))
    if machine.python is not None:
        found.append(fact("python", {"version": machine.python}))
    if machine.pin is not None:
        exact = machine.pin.count(".") >= 2
        found.append(fact("pin", {"package": "torch", "version": machine.pin, "exact": exact}))
    return [*found, *extra]


def fact(type_name: str, fields: dict[str, Scalar]) -> Fact:
    """A fact as the test states it."""
    return Fact(type_name, fields, (Provenance("user", "test"),))


def unknowns() -> Iterator[Machine]:
    """Every architecture where the driver, the Python or both are not known."""
    for system in GRID_SYSTEMS:
        for sm in sorted(world().gpus):
            yield Machine(system, (sm,))
            yield from (Machine(system, (sm,), python=python) for python in PYTHONS)
            yield from (Machine(system, (sm,), driver) for driver in drivers(system))


def pairs() -> Iterator[Machine]:
    """Every two different architectures in one machine, with drivers of some ages."""
    for system, python in itertools.product(("linux", "windows", "aarch64"), ("3.9.18", "3.12.3")):
        real = WINDOWS if system == "windows" else LINUX
        some = (None, *(real[b] for b in (470, 520, 535, 570, 580, 595, 620)))
        for sms, driver in itertools.product(itertools.combinations(sorted(world().gpus), 2), some):
            yield Machine(system, sms, driver, python)


def pinned() -> Iterator[Machine]:
    """Machines whose user asks for one torch: by release, by version, and for one that does not exist."""
    pins = [r["torch"] for r in rows("torch_builds")]
    pins = [*pins, *dict.fromkeys(p.rpartition(".")[0] for p in pins), "3.7", "2.6.9"]
    for system, pin, sm in itertools.product(GRID_SYSTEMS, pins, (37, 61, 75, 87, 90, 120)):
        real = WINDOWS if system in ("windows", "wsl") else LINUX
        for driver, python in itertools.product((None, real[470], real[550], real[580], real[620]), PYTHONS[::3]):
            yield Machine(system, (sm,), driver, python, pin)
