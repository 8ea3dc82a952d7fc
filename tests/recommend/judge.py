"""Judging a recommendation by the oracle: what is wrong with it, in words.

May live here: the comparison. Must not: machines, what is right (the oracle's).
"""

from __future__ import annotations

import dataclasses
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
    lines = (f"pip install torch=={right} --index-url {INDEX}{expected.variant}", f"uv pip install torch=={right} --index-url {INDEX}{expected.variant}")
    if tuple((result.commands or {}).get(tool) for tool in ("pip", "uv")) != lines:
        found.append(f"commands {result.commands}")
    return found


def _faults_of_none(machine: Machine, none: NoBuild) -> list[str]:
    """Every change named must be needed, and all together must do."""
    kinds = tuple(c.what for c in none.changes)
    free = {what: oracle.best_over(machine, driver="driver" in what, python="python" in what) for what in _CHOICES}
    if kinds == ("card",):
        helps = [" and ".join(what) for what, build in free.items() if build]
        return [f"asks for another card, but another {helps[0]} helps"] if helps else []
    if kinds not in _CHOICES:
        return [f"asks for {kinds or 'nothing'}"]
    to = {c.what: c.to for c in none.changes}
    changed = dataclasses.replace(machine, driver=to.get("driver", machine.driver), python=to.get("python", machine.python))
    found = [] if oracle.best(changed) else [f"with {to} nothing runs either"]
    if len(kinds) > 1:
        found += [f"asks for {' and '.join(kinds)}, but {what[0]} alone helps" for what in _CHOICES[:2] if free[what]]
    return found


_CHOICES = (("driver",), ("python",), ("driver", "python"))
_REASONS = {
    "newer, after a driver change": (True, False),
    "newer, with another Python": (False, True),
    "newer, after a change of driver and Python": (True, True),
}


def _faults_of_alternative(machine: Machine, alternative: Alternative, pick: Build | None) -> list[str]:
    """It must be the best that its change allows, and better than the pick."""
    said = f"alternative {alternative.torch}+{alternative.index}"
    driver, python = _REASONS[alternative.reason]
    best = oracle.best_over(machine, driver=driver, python=python)
    found = [] if alternative.needs else [f"{said} says no need"]
    if best is None or (best.torch, best.variant) != (alternative.torch, alternative.index):
        found.append(f"{said}, not {best and f'{best.torch}+{best.variant}'}")
    elif pick is not None and best.order <= pick.order:
        found.append(f"{said} is no better than the pick")
    elif pick is not None and oracle.version(best.torch) < oracle.version(pick.torch):
        found.append(f"{said} is called newer than {pick.torch}")
    return found
