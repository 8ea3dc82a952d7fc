"""Machines and reports for the tests of fixing, through the public functions."""

from __future__ import annotations

from collections.abc import Mapping

from gpurules.facts import Fact, Provenance, Scalar
from gpurules.knowledge.loader import load_knowledge
from gpurules.reasoning.diagnosis import Diagnosis
from gpurules.reasoning.session import Session
from gpurules.report.model import FixPlan, Lang, Report

LINUX: Mapping[str, Scalar] = {"family": "linux", "machine": "x86_64", "wsl": False}


def fact(type_name: str, /, **fields: Scalar) -> Fact:
    return Fact(type_name, fields, (Provenance("user", "test"),))


def gpu(name: str, index: int = 0) -> Fact:
    return fact("gpu", index=index, name=name, vendor="nvidia")


def machine(*gpus: str, driver: str | None, torch: str | None, python: str = "3.12.3") -> list[Fact]:
    """A Linux machine; torch with its local version."""
    facts = [fact("os", **LINUX), fact("python", version=python), *(gpu(n, i) for i, n in enumerate(gpus))]
    if driver is not None:
        facts.append(fact("driver", vendor="nvidia", version=driver))
    if torch is not None:
        variant = torch.partition("+")[2]
        cuda = {"cuda": f"{variant[2:-1]}.{variant[-1]}"} if variant.startswith("cu") else {"cuda_built": False}
        facts.append(fact("torch", version=torch, **cuda))
    return facts


def report(facts: list[Fact], lang: Lang = "en") -> Report:
    return Diagnosis(Session(load_knowledge(), facts), lang).report()


def plan(facts: list[Fact]) -> FixPlan:
    found = report(facts).fix_plan
    assert found is not None
    return found
