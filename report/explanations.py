"""The answers of `why-not`, `what-if` and `how-to` as models, with their JSON form.

May live here: what those answers hold. Must not: wording, layout, reasoning.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from .model import ProofNode

WHY_NOT_SCHEMA = "gpurules.why-not/1"
WHAT_IF_SCHEMA = "gpurules.what-if/1"
HOW_TO_SCHEMA = "gpurules.how-to/1"


class _Answer:
    """What all answers can do."""

    schema: str

    def to_dict(self) -> dict[str, Any]:
        """The answer as JSON values, without what is empty; booleans and numbers are always there."""
        return {"schema": self.schema, **_plain(self)}


def _plain(value: Any) -> Any:
    if isinstance(value, ProofNode):
        return value.to_dict()
    if is_dataclass(value):
        told = {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
        return {k: v for k, v in told.items() if v not in (None, "", [], {})}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


@dataclass(frozen=True, slots=True)
class ChangeView:
    """One change: as `what-if` takes it, in words, its rank of cost, what it risks and what else is known of it."""

    change: str
    title: str
    cost: int = 0
    risk: str = ""
    note: str = ""


@dataclass(frozen=True)
class WhyNot(_Answer):
    """Why a target does not hold, or that it does (`holds`). kind: cause | fix | build | rule | fact.

    reasons: what stands in the way, best first. changes: what would change it.
    """

    target: str
    kind: str
    holds: bool
    summary: str
    reasons: tuple[ProofNode, ...] = ()
    changes: tuple[ChangeView, ...] = ()
    schema = WHY_NOT_SCHEMA


@dataclass(frozen=True, slots=True)
class Difference:
    """A finding that goes or comes, or another build that is chosen, with the reason."""

    subject: str
    title: str
    severity: str = ""
    reasons: tuple[ProofNode, ...] = ()


@dataclass(frozen=True)
class WhatIf(_Answer):
    """What changes would do: verdicts, findings and the recommended build (empty where none) before and after."""

    changes: tuple[ChangeView, ...]
    verdict_before: str
    verdict_after: str
    recommendation_before: str
    recommendation_after: str
    gone: tuple[Difference, ...] = ()
    new: tuple[Difference, ...] = ()
    stays: tuple[Difference, ...] = ()
    choice: tuple[ProofNode, ...] = ()
    schema = WHAT_IF_SCHEMA


@dataclass(frozen=True, slots=True)
class Way:
    """A smallest set of changes after which the goal holds. cost: of all; then: what to do next; proof: why so."""

    changes: tuple[ChangeView, ...]
    cost: int
    then: str = ""
    proof: tuple[ProofNode, ...] = ()


@dataclass(frozen=True)
class HowTo(_Answer):
    """How to reach a goal: already there (`holds`), the ways, or why there is none (`impossible`).

    tried: how many times the engine ran to prove it. complete: whether every set of the tried values was looked at.
    """

    goal: str
    holds: bool
    summary: str
    ways: tuple[Way, ...] = ()
    impossible: tuple[ProofNode, ...] = ()
    tried: int = 0
    complete: bool = True
    schema = HOW_TO_SCHEMA
