"""Which torch runs where, worked out anew from the catalog files: no rule, engine or loader has a part in it.

May live here: the plain reading of the YAML catalogs and the published compatibility rules of CUDA. Must not: gpurules.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FACTS = Path(__file__).parents[2] / "knowledge" / "facts"
PLATFORMS = {
    "linux": "linux-x86_64",
    "wsl": "linux-x86_64",
    "windows": "windows-x86_64",
    "aarch64": "linux-aarch64",
    "macos": "macos-arm64",
}
# Tegra parts that CUDA serves with desktop code on 64-bit Arm from this release on.
UNIFIED, UNIFIED_FROM = (72, 87), (13, 2)

Version = tuple[int, ...]


@functools.cache
def version(text: str) -> Version:
    """The leading dotted number without trailing zeros, so that 580 and 580.0 compare equal."""
    numbers = [int(n) for n in re.split(r"[^0-9.]", text)[0].split(".") if n]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


@dataclass(frozen=True)
class Machine:
    """What the choice depends on. driver, python: None where unknown; sms: one a GPU; pin: the torch asked for."""

    system: str
    sms: tuple[int, ...]
    driver: str | None = None
    python: str | None = None
    pin: str | None = None


@dataclass(frozen=True)
class Build:
    """A published CUDA build of one platform."""

    torch: str
    variant: str
    platform: str
    cuda: Version
    sass: tuple[int, ...]
    ptx: tuple[int, ...]
    targets_known: bool
    confirmed: bool
    default: bool
    python: tuple[Version, Version]

    @property
    def order(self) -> tuple[Any, ...]:
        """Confirmed, then the newest torch, then the index's default, then the highest CUDA."""
        return self.confirmed, version(self.torch), self.default, self.cuda


@dataclass(frozen=True)
class Gpu:
    """An architecture: the driver branches that know it, whether it is a Tegra part."""

    sm: int
    integrated: bool
    first_driver: int
    last_driver: int


@dataclass(frozen=True)
class World:
    """The catalogs; the builds of a platform in the order of preference."""

    by_platform: Mapping[str, Sequence[Build]]
    gpus: Mapping[int, Gpu]
    branches: tuple[int, ...]
    minimum: Mapping[tuple[Version, bool], Version]
    toolkit: Mapping[tuple[Version, bool], Version]


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a catalog file, every value as it is written."""
    document: dict[str, Any] = yaml.load((FACTS / f"{name}.yaml").read_text(encoding="utf-8"), yaml.BaseLoader)
    found: list[dict[str, Any]] = document["rows"]
    return found


@functools.cache
def world() -> World:
    """The catalogs, read once."""
    releases = rows("cuda_releases")
    builds = sorted(_builds(), key=lambda b: b.order, reverse=True)
    return World(
        by_platform={p: [b for b in builds if b.platform == p] for p in sorted({b.platform for b in builds})},
        gpus={
            int(r["sm"]): Gpu(
                int(r["sm"]),
                r.get("integrated") == "true",
                int(r.get("first_driver", 0)),
                int(r.get("last_driver", 10**6)),
            )
            for r in rows("architectures")
        },
        branches=tuple(sorted(int(r["branch"]) for r in rows("driver_branches"))),
        minimum=_drivers(releases, "min_driver"),
        toolkit=_drivers(releases, "toolkit_driver"),
    )


def _drivers(releases: Sequence[Mapping[str, str]], what: str) -> dict[tuple[Version, bool], Version]:
    names = ((f"{what}_linux", False), (f"{what}_windows", True))
    return {(version(r["cuda"]), windows): version(r[name]) for r in releases for name, windows in names if name in r}


def _builds() -> Iterator[Build]:
    for release in rows("torch_builds"):
        for build in release["builds"]:
            cuda = re.fullmatch(r"cu(\d+)(\d)", build["variant"])
            if not cuda:
                continue
            confidences = {build.get("confidence", release["confidence"]), build.get("targets_confidence")}
            for platform in build["on"]:
                yield Build(
                    torch=release["torch"],
                    variant=build["variant"],
                    platform=platform,
                    cuda=version(f"{cuda.group(1)}.{cuda.group(2)}"),
                    sass=tuple(int(sm) for sm in build.get("targets", ())),
                    ptx=tuple(int(sm) for sm in build.get("ptx", ())),
                    targets_known="targets" in build,
                    confirmed="targets" in build and "inferred" not in confidences,
                    default=platform in build.get("default", ()),
                    python=(version(release["python"][0]), version(release["python"][1])),
                )


# --- what runs ----------------------------------------------------------------------------------------


def branch_of(driver: str) -> int:
    """The branch is the driver's first number, or the next lower one that exists."""
    number = version(driver)[0]
    return max((b for b in world().branches if b <= number), default=0)


def knows(driver: str, sm: int) -> bool:
    """Whether the driver supports the GPU."""
    gpu = world().gpus[sm]
    return version(driver)[0] >= gpu.first_driver and branch_of(driver) <= gpu.last_driver


def drives(driver: str, machine: Machine, build: Build) -> bool:
    """Minor-version compatibility on the machine's platform; WSL has the driver of its Windows host."""
    windows = machine.system in ("windows", "wsl")
    return version(driver) >= world().minimum[build.cuda, windows] and all(knows(driver, sm) for sm in machine.sms)


def has_code(driver: str | None, machine: Machine, build: Build, sm: int) -> bool:
    """Whether some code in the build runs on the GPU: of its own number, of a lower minor, or PTX for the driver."""
    gpu = world().gpus[sm]
    if sm in build.sass:
        return True
    related = any(code // 10 == sm // 10 and code <= sm for code in build.sass)
    if gpu.integrated:
        return related and sm in UNIFIED and build.platform == "linux-aarch64" and build.cuda >= UNIFIED_FROM
    return related or (any(code <= sm for code in build.ptx) and compiles_ptx(driver, machine, build))


def compiles_ptx(driver: str | None, machine: Machine, build: Build) -> bool:
    """Whether the driver is known to be as new as the toolkit that made the PTX."""
    toolkit = world().toolkit.get((build.cuda, machine.system in ("windows", "wsl")))
    return driver is not None and toolkit is not None and version(driver) >= toolkit


def takes_python(python: str | None, build: Build) -> bool:
    """Whether there is a wheel for the interpreter."""
    return python is None or build.python[0] <= version(python)[:2] <= build.python[1]


def wanted(machine: Machine, build: Build) -> bool:
    """Whether it is the torch that was asked for: 2.6 means any 2.6, 2.6.0 that one, 2.6.0+cu124 that build."""
    if machine.pin is None:
        return True
    public, _, variant = machine.pin.partition("+")
    asked = public.split(".")
    return build.torch.split(".")[: len(asked)] == asked and variant in ("", build.variant)


def runs(driver: str | None, machine: Machine, build: Build) -> bool:
    """Whether the build computes on every GPU of the machine.

    Of a driver that nobody told one may hope that it is the right one, but there has to be one for all the GPUs.
    """
    if not build.targets_known or not all(has_code(driver, machine, build, sm) for sm in machine.sms):
        return False
    return any(drives(d, machine, build) for d in ((driver,) if driver else ANY_DRIVER))


def choose(machine: Machine, drivers: Sequence[str | None], pythons: Sequence[str | None]) -> Build | None:
    """The first build in the order of preference that runs with one of these drivers and Pythons."""
    for build in world().by_platform.get(PLATFORMS[machine.system], ()):
        installs = wanted(machine, build) and any(takes_python(p, build) for p in pythons)
        if installs and any(runs(d, machine, build) for d in drivers):
            return build
    return None


def best(machine: Machine) -> Build | None:
    """The build to install, None where none runs."""
    return choose(machine, (machine.driver,), (machine.python,))


def best_over(machine: Machine, *, driver: bool = False, python: bool = False, torch: bool = False) -> Build | None:
    """The best build when driver, Python or the torch asked for may be chosen freely."""
    drivers = ANY_DRIVER if driver else (machine.driver,)
    pythons = ANY_PYTHON if python else (machine.python,)
    # What is chosen freely must not tell machines apart, or the cache is of no use.
    return _choose(Machine(machine.system, machine.sms, pin=None if torch else machine.pin), drivers, pythons)


_choose = functools.cache(choose)
ANY_DRIVER = tuple(f"{branch}.999" for branch in world().branches)
ANY_PYTHON = tuple(f"3.{minor}" for minor in range(6, 17))
