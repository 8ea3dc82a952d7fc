"""What the grid leaves out: companions, replaced versions, CPU, AMD, macOS, other processors and GPUs nobody named."""

from __future__ import annotations

import pytest
from gpurules.facts import Fact, Scalar
from gpurules.knowledge.loader import load_knowledge
from gpurules.reasoning.selection import Selection
from gpurules.reasoning.session import Session
from gpurules.report.model import RecommendResult

from . import judge
from .machines import SYSTEMS, fact
from .oracle import Machine, best, rows

RELEASES = {r["torch"]: r for r in rows("torch_builds")}
NEWEST = next(iter(RELEASES))
NO_GPU = [fact("coverage", {"domain": d, "complete": True}) for d in ("pci", "gpus")]
T4 = Machine("linux", (75,), "580.95.05", "3.12.3")


def recommend(*facts: Fact) -> RecommendResult:
    return Selection(Session(load_knowledge(), facts), "en").result()


def system(name: str, **fields: Scalar) -> Fact:
    return fact("os", {**SYSTEMS[name], **fields})


def package(name: str, version: str) -> Fact:
    return fact("package", {"name": name, "version": version, "manager": "pip"})


def change(result: RecommendResult) -> list[tuple[str, str | None]]:
    return [(c.what, c.command) for c in result.none.changes] if result.none else []


def test_installed_companions_come_along() -> None:
    right = best(T4)
    assert right is not None
    result = judge.recommended(T4, [package("torchvision", "0.20.0"), package("torchaudio", "2.5.0")])
    release = RELEASES[right.torch]
    assert result.packages == {
        "torch": f"=={right.torch}+{right.variant}",
        "torchvision": f"=={release['torchvision']}+{right.variant}",
        "torchaudio": f"=={release['torchaudio']}",
    }
    specs = [f"{name}{spec}" for name, spec in result.packages.items()]
    assert (result.commands or {})["pip"] == f"pip install {' '.join(specs)} --index-url {result.index_url}"


@pytest.mark.parametrize(
    ("installed", "forced"),
    [("{torch}+cpu", True), ("{torch}+{variant}", False), ("1.13.1+cu117", False), (None, False)],
)
def test_only_another_build_of_the_same_version_is_forced(installed: str | None, forced: bool) -> None:
    right = best(T4)
    assert right is not None
    version = installed and installed.format(torch=right.torch, variant=right.variant)
    result = judge.recommended(T4, [fact("torch", {"version": version})] if version else [])
    commands = result.commands or {}
    assert ("--force-reinstall" in commands["pip"], "--reinstall" in commands["uv"]) == (forced, forced)


@pytest.mark.parametrize("name", ["linux", "windows", "wsl", "aarch64"])
def test_without_a_gpu_the_cpu_build(name: str) -> None:
    result = recommend(system(name), *NO_GPU, fact("python", {"version": "3.12.3"}))
    torch = next(t for t in RELEASES if t == result.torch)
    assert (result.index, result.confirmed) == ("cpu", True)
    assert result.packages == {"torch": f"=={torch}+cpu"}
    assert "cuda" not in (result.verify or "")


def test_macos_wheels_carry_no_variant() -> None:
    result = recommend(system("macos"), fact("python", {"version": "3.12.3"}))
    assert result.packages == {"torch": f"=={NEWEST}"}
    assert result.summary == f"Install torch {NEWEST}"
    assert (result.commands or {})["pip"] == f"pip install torch=={NEWEST} --index-url {judge.INDEX}cpu"
    again = recommend(system("macos"), fact("torch", {"version": NEWEST}))
    assert "--force-reinstall" not in (again.commands or {})["pip"]


@pytest.mark.parametrize(
    "os",
    [
        {"family": "macos", "machine": "x86_64"},
        {"family": "linux", "machine": "ppc64le"},
        {"family": "linux", "machine": "i686"},
    ],
)
def test_no_wheels_for_other_processors(os: dict[str, Scalar]) -> None:
    card = fact("gpu", {"index": 0, "name": "Tesla V100-SXM2-32GB", "vendor": "nvidia"})
    assert change(recommend(fact("os", os), card)) == [("system", None)]
    assert change(recommend(fact("os", os), *NO_GPU)) == [("system", None)]


def test_an_arm_system_of_unknown_family_is_not_taken_for_x86() -> None:
    card = fact("gpu", {"index": 0, "name": "Tesla T4", "vendor": "nvidia"})
    result = recommend(fact("os", {"machine": "aarch64"}), card)
    assert result.torch is None


def test_amd_on_linux_gets_rocm_and_nowhere_else() -> None:
    card = fact("gpu", {"index": 0, "name": "AMD Radeon RX 7900 XTX", "vendor": "amd"})
    result = recommend(system("linux"), card, fact("python", {"version": "3.12.3"}))
    variants = {b["variant"]: r for r in rows("torch_builds") for b in r["builds"] if r["torch"] == result.torch}
    assert result.index in variants
    assert str(result.index).startswith("rocm")
    assert result.packages == {"torch": f"=={result.torch}+{result.index}"}
    for name in ("windows", "aarch64"):
        assert change(recommend(system(name), card)) == [("system", None)]


def test_beside_an_amd_gpu_the_nvidia_one_decides() -> None:
    amd = fact("gpu", {"index": 1, "name": "AMD Radeon Graphics", "vendor": "amd"})
    assert judge.faults(T4, judge.recommended(T4, [amd])) == []


@pytest.mark.parametrize(
    "facts",
    [
        [system("linux")],
        [system("windows"), fact("python", {"version": "3.12.3"})],
        [system("linux"), fact("gpu", {"index": 0, "name": "NVIDIA GeForce ...", "vendor": "nvidia"})],
        [system("linux"), fact("driver", {"vendor": "nvidia", "version": "470.256.02", "cuda_max": "11.4"})],
        [],
    ],
)
def test_an_unknown_gpu_is_asked_for(facts: list[Fact]) -> None:
    result = recommend(*facts)
    assert change(result) == [("gpu", "nvidia-smi")]
    assert (result.alternatives, result.struck, result.exit_status()) == ((), (), 1)


@pytest.mark.parametrize(
    ("name", "sm", "where"),
    [
        ("NVIDIA GeForce RTX 5090", 120, "linux"),
        ("NVIDIA GeForce RTX 4070 Laptop GPU", 89, "windows"),
        ("NVIDIA GeForce GTX 1080 Ti", 61, "wsl"),
        ("Tesla V100-SXM2-32GB", 70, "linux"),
        ("NVIDIA GH200 480GB", 90, "aarch64"),
        ("NVIDIA GB10", 121, "aarch64"),
        ("NVIDIA Thor", 110, "aarch64"),
        ("Orin", 87, "aarch64"),
    ],
)
def test_a_gpu_known_by_its_name(name: str, sm: int, where: str) -> None:
    card = fact("gpu", {"index": 0, "name": name, "vendor": "nvidia"})
    driver = fact("driver", {"vendor": "nvidia", "version": "580.95.05"})
    result = recommend(system(where), card, driver, fact("python", {"version": "3.12.3"}))
    assert judge.faults(Machine(where, (sm,), "580.95.05", "3.12.3"), result) == []


def test_eight_equal_gpus_are_judged_like_one() -> None:
    cards = [fact("gpu", {"index": i, "name": "NVIDIA H100 80GB HBM3", "vendor": "nvidia"}) for i in range(8)]
    machine = Machine("linux", (90,), "550.54.15", "3.11.9")
    driver = fact("driver", {"vendor": "nvidia", "version": machine.driver or ""})
    result = recommend(system("linux"), *cards, driver, fact("python", {"version": "3.11.9"}))
    assert judge.faults(machine, result) == []


def test_a_whole_build_can_be_asked_for() -> None:
    machine = Machine("linux", (89,), "550.54.15", "3.11.9", "2.6.0+cu124")
    result = judge.recommended(machine)
    assert judge.faults(machine, result) == []
    assert (result.torch, result.index) == ("2.6.0", "cu124")


def test_why_a_wish_cannot_be_met() -> None:
    result = judge.recommended(Machine("linux", (120,), "580.95.05", "3.12.3", "2.6.0"))
    assert result.none is not None
    assert result.none.reason == "No torch of the version asked for runs on this machine; another version does"
    assert [c.what for c in result.none.changes] == ["torch"]
    assert any("no_kernels" not in s.text and "holds code for" in s.text for s in result.struck)


def test_kepler_is_sent_to_its_last_branch() -> None:
    result = judge.recommended(Machine("linux", (37,), "535.183.01", "3.10.13"))
    assert result.none is not None
    (driver,) = result.none.changes
    assert (driver.what, driver.to) == ("driver", "470")
    assert driver.text.endswith("branch 470 is the newest that supports every GPU here")


def test_ptx_asks_for_the_driver_that_compiles_it() -> None:
    machine = Machine("windows", (120,), None, "3.9.18", "2.5.1")
    result = judge.recommended(machine)
    assert judge.faults(machine, result) == []
    assert result.none is not None
    assert result.none.changes[0].text.startswith("Its PTX needs driver 520.06 or newer for this GPU")
