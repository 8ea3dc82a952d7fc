"""Which question is worth asking: what each of its answers would change, and how much that narrows the causes down.

May live here: simulation of answers, entropy and the order of questions. Must not: any question or answer (they are
data), the course of a dialogue.

Uncertainty is the entropy, in bits, of the causes of each symptom that is present before the answer, with "something
else" among them; where nothing speaks of any cause it is one bit: is anything wrong at all? The gain of a question is
the uncertainty now less what is expected after the answer. The evidence that an answer brings is read as odds: a cause
gives an answer e^w times as often as "something else" does, and what is decisive for one cause is rare for the others.
Once a cause is found, an answer that would change what is recommended is worth `REMEDY_BITS`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..facts import Fact, Provenance, Scalar
from ..report.messages import Words
from ..report.model import Lang, Question
from .causes import Ranked, contest, rank, scores
from .diagnosis import evidence_of, priors_of
from .fixes import offers, present
from .gaps import MAX_QUESTIONS, decided, one, unanswered
from .session import Session

Evidence = frozenset[tuple[str, str, str]]

MIN_GAIN = 0.02
# A cause is named as a reason for a question if some answer raises its share by so much; so many are named.
MIN_RAISED = 0.1
MAX_NAMED = 3
REMEDY_BITS = 0.25
# What a command answers needs no memory and no judgement of the user's: it is preferred when it is nearly as good.
COMMAND_BONUS = 1.1


class State:
    """What a session believes: shares of the causes, uncertainty, and what it would recommend."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.evidence: Evidence = frozenset(evidence_of(session))
        priors = priors_of(session)
        self.groups = contest(self.evidence, priors)
        self.ranked: list[Ranked] = rank(self.evidence, priors)
        self.found = frozenset(r.cause for r in self.ranked if r.is_finding)
        explained = {s for r in self.ranked if r.is_finding for s in r.symptoms}
        self.symptoms = frozenset(priors)
        self.open = tuple(s for s in priors if s not in explained)

    def uncertainty(self, before: State | None = None) -> float:
        """In bits, over the causes that compete here, or over those that competed before."""
        groups = {_name(g): g[1] for g in self.groups}
        named = [_name(g) for g in (before or self).groups]
        if not named:
            return 0.0 if self.found else 1.0
        return sum(
            entropy([*shares.values(), 1 - sum(shares.values())]) for n in named for shares in [groups.get(n, {})]
        )

    def remedy(self, causes: Iterable[str]) -> frozenset[str]:
        """The fixes of those causes, as they would be shown."""
        return frozenset(
            present(o, self.session, "", "en", "not_applicable", None).model_dump_json(exclude={"sources"})
            for cause in causes
            for o in offers(self.session, cause)
        )

    @cached_property
    def standing(self) -> object:
        """Two states with equal standings are the same to the user."""
        return [(r.cause, r.confidence) for r in self.ranked], self.open, self.remedy(self.found)


def _name(group: tuple[str, Mapping[str, float]]) -> str:
    """What a group of competing causes is known by: its symptom, or its only cause."""
    symptom, shares = group
    return symptom or "/".join(shares)


def entropy(shares: Iterable[float]) -> float:
    """The entropy of a distribution in bits."""
    return -sum(p * math.log2(p) for p in shares if p > 0)


@dataclass(frozen=True)
class Outlook:
    """What follows from one answer: the answer's data, how likely it is, and the state after it."""

    answer: Mapping[str, Any]
    weight: float
    after: State


@dataclass(frozen=True)
class Weighed:
    """A question with what its answers would change."""

    slug: str
    data: Mapping[str, Any]
    gain: float
    outlooks: tuple[Outlook, ...]


def best(before: State, skip: Iterable[str] = ()) -> list[Weighed]:
    """The questions that are worth asking, the best first; `skip` are those already asked.

    What the answer to a question needs comes before all that tells causes apart.
    """
    skipped = set(skip)
    known = before.session.knowledge
    needed = [
        slug for slug in _needed(before) if slug not in skipped and not decided(before.session, known.questions[slug])
    ]
    if needed:
        return [Weighed(slug, known.questions[slug], 0.0, ()) for slug in needed]
    found = [
        w
        for slug, data in known.questions.items()
        if slug not in skipped and not decided(before.session, data)
        if (w := weigh(before, slug, data)) is not None
    ]
    return sorted(found, key=lambda w: (-w.gain * (COMMAND_BONUS if w.data.get("command") else 1), w.slug))


def _needed(state: State) -> list[str]:
    """What is asked for by the symptoms that only an answer explains, and that nothing explains yet."""
    known = state.session.knowledge
    waiting = [
        s for s in state.open if all(known.causes.get(c, {}).get("answers") for c in known.symptoms[s]["causes"])
    ]
    return [slug for s in waiting for slug in known.symptoms[s]["asks"]]


def ordered(session: Session, slugs: Iterable[str], causes: Iterable[str], lang: Lang) -> tuple[Question, ...]:
    """The questions of those ids that are still open, what decides most first, each with why it is asked."""
    open_ones = unanswered(session, slugs)
    before = State(session)
    weighed = [w for slug in open_ones if (w := weigh(before, slug, session.knowledge.questions[slug]))]
    first = {w.slug: _why(w, before, lang) for w in sorted(weighed, key=lambda w: -w.gain)}
    reasons = first | {slug: Words(lang)("question.why.basis") for slug in open_ones if slug not in first}
    named = tuple(causes) or None
    return tuple(
        Question(id=slug, text=data["text"][lang], command=session.command(data), separates=named, why=why)
        for slug, why in list(reasons.items())[:MAX_QUESTIONS]
        for data in [session.knowledge.questions[slug]]
    )


def _why(weighed: Weighed, before: State, lang: Lang) -> str:
    """Which causes the answers would make likelier."""
    now = _shares(before)
    titles = before.session.knowledge.causes
    raised: dict[str, float] = {}
    for outlook in weighed.outlooks:
        for cause, share in _shares(outlook.after).items():
            raised[cause] = max(raised.get(cause, 0.0), share - now.get(cause, 0.0))
    best_first = sorted((c for c, gain in raised.items() if gain > MIN_RAISED), key=lambda c: (-raised[c], c))
    words = Words(lang)
    named = [titles[c]["title"][lang] for c in best_first[:MAX_NAMED] if c in titles]
    return words("question.why", causes=words("list.dot").join(named)) if named else words("question.why.excludes")


def _shares(state: State) -> dict[str, float]:
    """The share of each cause, in the group where it is likeliest."""
    return {r.cause: r.confidence for r in state.ranked}


def questions(session: Session, weighed: Sequence[Weighed], causes: Iterable[str], lang: Lang) -> tuple[Question, ...]:
    """The first of the questions as a report lists them, with the answers that can be chosen."""
    named = tuple(causes)
    return tuple(
        Question(
            id=w.slug,
            text=w.data["text"][lang],
            answers=tuple(a["text"][lang] for a in w.data["answers"] if a["gives"]) or None,
            command=session.command(w.data),
            separates=named or None,
        )
        for w in weighed[:MAX_QUESTIONS]
    )


def weigh(before: State, slug: str, data: Mapping[str, Any]) -> Weighed | None:
    """The question with its gain; None where no answer changes anything, or too little to be worth it."""
    after = [State(_with(before.session, facts_of(before.session, a, whole=True))) for a in data["answers"]]
    open_ended = not all(a["gives"] for a in data["answers"])
    if all(state.standing == before.standing for state in after):
        return None
    # What comes by pasting may be something else again, which tells nothing.
    weights = _likelihoods(before, [*after, before] if open_ended else after)
    left = weights.pop() if open_ended else 0.0
    gain = before.uncertainty() * (1 - left)
    gain -= sum(w * s.uncertainty(before) for w, s in zip(weights, after, strict=True))
    if not before.groups:
        # Nobody spoke of a symptom: an answer that would be one is not expected.
        gain = sum(w for w, s in zip(weights, after, strict=True) if s.found and not s.symptoms)
    elif before.found and not before.open:
        # A cause is found: only what would overturn it, or change its remedy, is still worth a question.
        remedy = before.remedy(before.found)
        turned = sum(w for w, s in zip(weights, after, strict=True) if before.found - s.found)
        other = sum(w for w, s in zip(weights, after, strict=True) if s.remedy(before.found) != remedy)
        if not turned and not other:
            return None
        gain = max(gain, 0.0) * bool(turned) + REMEDY_BITS * other
    if gain < MIN_GAIN:
        return None
    outlooks = tuple(Outlook(a, w, s) for a, w, s in zip(data["answers"], weights, after, strict=True))
    return Weighed(slug, data, gain, outlooks)


def facts_of(session: Session, answer: Mapping[str, Any], *, whole: bool = False) -> list[Fact]:
    """The facts that an answer gives; `whole` adds those that it might bring and that nobody stated yet."""
    vocabulary = session.knowledge.vocabulary
    entries = [*answer["gives"]]
    if whole:
        entries += [e for e in answer["instance"] if not _told(session, *one(e))]
    return [
        Fact(t, {k: vocabulary.coerce(t, k, v) for k, v in fields.items()}, (Provenance("user", "answer"),))
        for t, fields in map(one, entries)
    ]


def _with(session: Session, facts: Sequence[Fact]) -> Session:
    # Engines agree, and this one is fast enough to try out dozens of answers.
    return Session(session.knowledge, [*session.facts, *facts])


def _told(session: Session, type_name: str, fields: Mapping[str, Scalar]) -> bool:
    """Whether facts tell some of these fields already, beyond what they are of."""
    own = set(fields) - set(session.knowledge.vocabulary.types[type_name].identity)
    return any(f.type == type_name and own & set(f.fields) for f in session.facts)


def _likelihoods(before: State, after: Sequence[State]) -> list[float]:
    """How likely each answer is, by the present shares of the causes."""
    groups = [g for g in before.groups if g[0]] or before.groups
    causes = {c for _, shares in groups for c in shares}
    added = [_added(before, s, causes) for s in after]
    rare = [1 / max([1.0, *(math.exp(w) for w in words.values())]) for words in added]
    spread = {c: _normalised([r * math.exp(words[c]) for r, words in zip(rare, added, strict=True)]) for c in causes}
    other = _normalised(rare)
    if not groups:
        return other
    weights = [0.0] * len(after)
    for _, shares in groups:
        parts = [(share, spread[c]) for c, share in shares.items()] + [(1 - sum(shares.values()), other)]
        for share, spreads in parts:
            weights = [w + share * p / len(groups) for w, p in zip(weights, spreads, strict=True)]
    return weights


def _added(before: State, after: State, causes: Iterable[str]) -> dict[str, float]:
    """The log-odds that an answer adds to each cause; minus infinity where it takes the cause out."""
    known, new = scores(before.evidence)[0], scores(after.evidence)
    return {c: -math.inf if c in new[1] else new[0].get(c, 0.0) - known.get(c, 0.0) for c in causes}


def _normalised(parts: Sequence[float]) -> list[float]:
    total = sum(parts)
    return [p / total for p in parts] if total else [1 / len(parts)] * len(parts)
