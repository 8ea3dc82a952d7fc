"""Random machines out of the catalogs (GPUs, driver, system, Python, installed torch), as facts and for the oracle.

May live here: drawing machines and stating them as a probe would. Must not: what is right for a machine.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

from gpurules.facts import Fact, Scalar
from hypothesis import strategies as st

from ..recommend import oracle
from ..recommend.machines import GRID_SYSTEMS, PYTHONS, SYSTEMS, drivers, fact
from ..recommend.oracle import PLATFORMS, Machine


@dataclass(frozen=True)
class Case:
    """A machine. gpus: product names; torch: version with its local part, None where none is installed."""

    system: str
    gpus: tuple[str, ...]
    driver: str | None
    python: str
    torch: str | None
    listed: bool
    companions: tuple[str, ...]

    @property
    def machine(self) -> Machine:
        """The same for the oracle."""
        return Machine(self.system, tuple(products()[g] for g in self.gpus), self.driver, self.python)


@functools.cache
def products() -> dict[str, int]:
    """NVIDIA's products with their compute capability."""
    return {model["product"]: int(group["sm"]) for group, model in _models()}


@functools.cache
def fitting(system: str) -> tuple[str, ...]:
    """The products that there are for a system: some exist only inside 64-bit Arm boards."""
    platform = PLATFORMS[system]
    return tuple(
        sorted(m["product"] for g, m in _models() if m.get("platform", g.get("platform", platform)) == platform)
    )


def _models() -> list[tuple[dict[str, Any], dict[str, Any]]]:
    groups = [group for group in oracle.rows("gpus") if group["vendor"] == "nvidia"]
    return [(group, model) for group in groups for model in group["models"]]


@functools.cache
def published(platform: str) -> tuple[str, ...]:
    """Every torch with its local version that was published for a platform, CPU builds included."""
    found = {
        f"{release['torch']}+{build['variant']}"
        for release in oracle.rows("torch_builds")
        for build in release["builds"]
        if platform in build["on"] and (build["variant"] == "cpu" or build["variant"].startswith("cu"))
    }
    return tuple(sorted(found))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A machine with one GPU or two."""
    system = draw(st.sampled_from(GRID_SYSTEMS))
    return Case(
        system=system,
        gpus=tuple(draw(st.lists(st.sampled_from(fitting(system)), min_size=1, max_size=2))),
        driver=draw(st.none() | st.sampled_from(drivers(system))),
        python=draw(st.sampled_from(PYTHONS)),
        torch=draw(st.none() | st.sampled_from(published(PLATFORMS[system]))),
        listed=draw(st.booleans()),
        companions=tuple(draw(st.sets(st.sampled_from(("torchaudio", "torchvision"))))),
    )


def facts(case: Case) -> list[Fact]:
    """What a probe states of the machine."""
    found = [fact("os", SYSTEMS[case.system]), fact("python", {"version": case.python})]
    found += [
        fact("gpu", {"index": i, "name": f"NVIDIA {name}", "vendor": "nvidia"}) for i, name in enumerate(case.gpus)
    ]
    if case.driver is not None:
        found.append(fact("driver", {"vendor": "nvidia", "version": case.driver}))
    if case.torch is not None:
        found.append(fact("torch", _torch(case.torch)))
        if case.listed:
            found.append(fact("package", {"name": "torch", "version": case.torch, "manager": "pip"}))
    for name in case.companions:
        found.append(fact("package", {"name": name, "version": "0.1", "manager": "pip"}))
    return found


def _torch(version: str) -> dict[str, Scalar]:
    variant = version.partition("+")[2]
    if not variant.startswith("cu"):
        return {"version": version, "cuda_built": False}
    return {"version": version, "cuda_built": True, "cuda": f"{variant[2:-1]}.{variant[-1]}"}
