"""Judging a recommendation by the oracle: what is wrong with it, in words.

May live here: the comparison. Must not: machines, what is right (the oracle's).
"""

from __future__ import annotations

from collections.abc import Sequence

from gpurules.facts import Fact
from gpurules.knowledge.loader import load_knowledge
from gpurules.reasoning.selection import Selection
from gpurules.reasoning.session import Session
from gpurules.report.model import Alternative, NoBuild, RecommendResult

from . import oracle
from .machines import facts
from .oracle import Build, Machine

INDEX = "https://download.pytorch.org/whl/"


def recommended(machine: Machine, extra: Sequence[Fact] = ()) -> RecommendResult:
    """What gpurules says, through a session as every interface runs it."""
    return Selection(Session(load_knowledge(), facts(machine, extra)), "en").result()


def faults(machine: Machine, result: RecommendResult) -> list[str]:
    """Everything that is wrong with the result for this machine."""
    expected = oracle.best(machine)
    found = [] if expected is None or result.none is None else [f"none, but {expected.torch}+{expected.variant} runs"]
    if result.none is None:
        found += _faults_of_pick(result, expected)
    elif expected is None:
        found += _faults_of_none(machine, result.none)
    return found + [f for a in result.alternatives for f in _faults_of_alternative(machine, a, expected)]


def _faults_of_pick(result: RecommendResult, expected: Build | None) -> list[str]:
    said = f"{result.torch}+{result.index}"
    if expected is None:
        return [f"{said}, but nothing runs"]
    right = f"{expected.torch}+{expected.variant}"
    found = [] if said == right else [f"{said}, not {right}"]
    if result.confirmed is not expected.confirmed:
        found.append("says the wrong thing of being confirmed")
    if result.index_url != f"{INDEX}{result.index}":
        found.append(f"index {result.index_url}")
    if (result.packages or {}).get("torch") != f"=={right}":
        found.append(f"packages {result.packages}")
    pip = f"pip install torch=={right} --index-url {INDEX}{expected.variant}"
    if result.commands != {"pip": pip, "uv": f"uv {pip}"}:
        found.append(f"commands {result.commands}")
    return found


def _faults_of_none(machine: Machine, none: NoBuild) -> list[str]:
    """All changes named together must do, and no smaller change may."""
    kinds = tuple(c.what for c in none.changes)
    helping = [c for c in _CHOICES if oracle.best_over(machine, **dict.fromkeys(c, True))]
    if kinds == ("card",):
        return [f"asks for another card, but another {' and '.join(helping[0])} helps"] if helping else []
    if kinds not in _CHOICES:
        return [f"asks for {kinds or 'nothing'}"]
    smaller = [c for c in helping if len(c) < len(kinds)]
    found = [f"asks for {' and '.join(kinds)}, but {' and '.join(smaller[0])} alone helps"] if smaller else []
    to = {c.what: c.to for c in none.changes}
    driver, python = to.get("driver", machine.driver), to.get("python", machine.python)
    changed = Machine(machine.system, machine.sms, driver, python, to.get("torch", machine.pin))
    return found if oracle.best(changed) else [*found, f"with {to} nothing runs either"]


_CHOICES: tuple[tuple[str, ...], ...] = (
    ("driver",),
    ("python",),
    ("torch",),
    ("driver", "python"),
    ("torch", "driver"),
    ("torch", "python"),
    ("torch", "driver", "python"),
)
# What an alternative says must change: driver, Python, the torch asked for.
_REASONS = {
    "after a driver change": (True, False, False),
    "with another Python": (False, True, False),
    "after a change of driver and Python": (True, True, False),
    "but not the torch that was asked for": (False, False, True),
    "after a driver change, but not the torch that was asked for": (True, False, True),
    "with another Python, but not the torch that was asked for": (False, True, True),
    "after a change of driver and Python, and another torch than asked for": (True, True, True),
}


def _faults_of_alternative(machine: Machine, alternative: Alternative, pick: Build | None) -> list[str]:
    """It must be the best that its change allows, better than the pick, and in the way it says."""
    said = f"alternative {alternative.torch}+{alternative.index}"
    better, _, change = alternative.reason.partition(", ")
    driver, python, torch = _REASONS[change]
    best = oracle.best_over(machine, driver=driver, python=python, torch=torch)
    found = [] if alternative.needs else [f"{said} says no need"]
    if best is None or (best.torch, best.variant) != (alternative.torch, alternative.index):
        found.append(f"{said}, not {best and f'{best.torch}+{best.variant}'}")
    elif _better(best, pick) != better:
        found.append(f"{said} is called {better}, but is {_better(best, pick)}")
    return found


def _better(build: Build, pick: Build | None) -> str:
    if pick is None:
        return "works"
    if build.order <= pick.order:
        return "no better"
    if build.confirmed and not pick.confirmed:
        return "confirmed"
    return "newer" if build.torch != pick.torch else "the preferred variant"
