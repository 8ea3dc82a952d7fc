"""Ranking of competing causes by the words of the evidence.

May live here: the one table from words to log-odds and the softmax. Must not: any cause, symptom or prior (data).

Words: decisive +6, strong +2, weak +0.7, against -1.5, excludes takes the cause out. A symptom's causes start at their
priors and compete with "something else" at 0; confidence is the softmax over them. A cause that no present symptom
lists competes with "something else" alone, from a prior of -1. Each rule counts once for a cause, however many facts it
fired on. Equal ranks go by id. A cause at 0.5 or more is a finding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

WORDS = {"decisive": 6.0, "strong": 2.0, "weak": 0.7, "against": -1.5}
EXCLUDES = "excludes"
PRIOR_ALONE = -1.0
FINDING = 0.5


@dataclass(frozen=True, slots=True)
class Ranked:
    """A cause with its confidence (0 to 1), the symptoms it explains and whether any evidence speaks for it."""

    cause: str
    confidence: float
    symptoms: tuple[str, ...]
    supported: bool

    @property
    def is_finding(self) -> bool:
        """Whether it is more likely than not."""
        return self.confidence >= FINDING


def scores(evidence: Iterable[tuple[str, str, str]]) -> tuple[dict[str, float], set[str]]:
    """The log-odds that the evidence adds to each cause, and the causes that it takes out."""
    words = sorted(set(evidence))
    added: dict[str, float] = {}
    for cause, word, _ in words:
        if word != EXCLUDES:
            added[cause] = added.get(cause, 0.0) + WORDS[word]
    return added, {cause for cause, word, _ in words if word == EXCLUDES}


def contest(
    evidence: Iterable[tuple[str, str, str]], symptoms: Mapping[str, Mapping[str, float]]
) -> list[tuple[str, dict[str, float]]]:
    """The shares of the causes of each symptom; what is missing to 1 is something else.

    A cause that no present symptom lists stands in a group of its own, with an empty name.
    """
    added, excluded = scores(evidence)
    listed = {cause for priors in symptoms.values() for cause in priors}
    groups: list[tuple[str, Mapping[str, float]]] = [
        *sorted(symptoms.items()),
        *(("", {c: PRIOR_ALONE}) for c in sorted(added) if c not in listed),
    ]
    return [
        (symptom, _softmax({c: p + added.get(c, 0.0) for c, p in priors.items() if c not in excluded}))
        for symptom, priors in groups
    ]


def rank(evidence: Iterable[tuple[str, str, str]], symptoms: Mapping[str, Mapping[str, float]]) -> list[Ranked]:
    """Causes, best first.

    evidence: (cause, word, rule). symptoms: the present ones, each with its causes' prior log-odds.
    """
    words = set(evidence)
    supported = {cause for cause, word, _ in words if WORDS.get(word, 0) > 0}
    best: dict[str, float] = {}
    explains: dict[str, list[str]] = {}
    for symptom, shares in contest(words, symptoms):
        for cause, share in shares.items():
            best[cause] = max(best.get(cause, 0.0), share)
            if symptom:
                explains.setdefault(cause, []).append(symptom)
    ranked = [
        Ranked(cause, round(share, 4), tuple(explains.get(cause, ())), cause in supported)
        for cause, share in best.items()
    ]
    return sorted(ranked, key=lambda r: (-r.confidence, r.cause))


def _softmax(scores: Mapping[str, float]) -> dict[str, float]:
    """Each cause's share against the others and something else at 0."""
    top = max([0.0, *scores.values()])
    weights = {cause: math.exp(score - top) for cause, score in scores.items()}
    total = sum(weights.values()) + math.exp(-top)
    return {cause: weight / total for cause, weight in weights.items()}
