"""Fixes: which are offered, what they say with the values in them, and whether the engine agrees that they cure.

May live here: instantiation of fix files and simulation of their effects. Must not: any fix by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..facts import Fact, Provenance, Scalar
from ..knowledge.functions import compute
from ..knowledge.loader import Knowledge
from ..messages import closed_up
from ..report.model import Effect, Fix, Lang, Step, Verified
from ..report.quoting import quoted
from .causes import Ranked
from .session import Bindings, Session, fill

# Firings of one offer that are tried; each stands for another GPU, version or the like.
MAX_INSTANCES = 8


@dataclass(frozen=True, slots=True)
class Offer:
    """A fix whose conditions hold for a cause, with its bindings and the optional parts that apply."""

    fix: str
    cause: str
    bindings: Bindings
    options: frozenset[str]
    row: int


def offers(session: Session, cause: str) -> list[Offer]:
    """The fixes offered for a cause, by their order and id."""
    found: dict[str, Offer] = {}
    for row in session.rows("fix_offer", cause=cause):
        firing = session.because(row)
        if firing is None:
            continue
        fix = str(session.fields(row)["fix"])
        options = frozenset(str(session.fields(r)["option"]) for r in session.rows("fix_option", fix=fix, cause=cause))
        found[fix] = Offer(fix, cause, session.bindings(firing), options, row)
    order = session.knowledge.fixes
    return sorted(found.values(), key=lambda o: (order[o.fix]["order"], o.fix))


def present(offer: Offer, session: Session, finding: str, lang: Lang, verified: Verified, note: str | None) -> Fix:
    """The fix as the report shows it."""
    data = session.knowledge.fixes[offer.fix]
    text = _Filler(offer, lang)
    texts = [_Filler(o, lang) for o in _matches_of(offer, session)] if data["every_match"] else [text]
    packages = {t.fill(k): spec for t in texts for k, value in data["packages"].items() if (spec := t.optional(value))}
    return Fix.model_validate(
        {
            "id": offer.fix,
            "finding": finding,
            "kind": data["kind"],
            "action": data["action"],
            "title": closed_up(text.fill(data["title"][lang]), lang),
            "steps": list(dict.fromkeys(_step(s, t, lang) for t in texts for s in data["steps"])),
            "index_url": text.maybe(data.get("index_url")),
            "packages": packages or None,
            "driver_at_least": text.maybe(data.get("driver_at_least")),
            "driver_below": text.maybe(data.get("driver_below")),
            "python": text.maybe(data.get("python")),
            "env": {k: text.fill(v) for k, v in data["env"].items()} or None,
            "env_unset": data["env_unset"] or None,
            "numbers": text.numbers(data["numbers"]) or None,
            "effects": [_effect(e, text) for e in data["effects"]],
            "verified": verified,
            "verified_note": note,
            "verify": _verify(data, text, lang),
            "verify_argv": [text.fill(w) for w in data["verify_run"]] or None,
            "risks": [text.fill(data["risks"][lang])] if "risks" in data else None,
            "undo": text.fill(data["undo"][lang]) if "undo" in data else None,
            "sources": [s["url"] for s in data["sources"]],
        }
    )


def instances(offer: Offer, session: Session) -> list[Offer]:
    """The offer as each firing of it reads, the least proof first: several GPUs may each ask for another version."""
    by_effect: dict[Any, Offer] = {}
    for instance in _matches_of(offer, session):
        text = _Filler(instance, "en")
        effects = [_effect(e, text).to_json() for e in session.knowledge.fixes[offer.fix]["effects"]]
        by_effect.setdefault(tuple(effects), instance)
    return list(by_effect.values())


def _matches_of(offer: Offer, session: Session) -> list[Offer]:
    """The offer for each of its firings, the one with the least proof first."""
    found = {_content(offer.bindings): offer}
    for firing in session.memory.justifications(offer.row)[:MAX_INSTANCES]:
        bindings = session.bindings(firing)
        found.setdefault(_content(bindings), Offer(offer.fix, offer.cause, bindings, offer.options, offer.row))
    return list(found.values())


def _content(bindings: Bindings) -> Any:
    return tuple((alias, tuple(sorted(fields.items()))) for alias, fields in sorted(bindings.items()))


@dataclass(frozen=True, slots=True)
class Simulation:
    """The session with a fix's effects, and the identities of what they put in place."""

    session: Session
    placed: frozenset[tuple[Scalar | None, ...]]


def simulate(offer: Offer, session: Session) -> Simulation | None:
    """What a fix leads to, None where it changes nothing."""
    after = simulated(offer, session)
    if after is None:
        return None
    types = session.knowledge.vocabulary.types
    text = _Filler(offer, "en")
    placed = set()
    for effect in session.knowledge.fixes[offer.fix]["effects"]:
        for type_name, fields in (effect.get("add") or {}).items():
            identity = (text.value(fields[k]) if k in fields else None for k in types[type_name].identity)
            placed.add((type_name, *identity))
    return Simulation(after, frozenset(placed))


def simulated(offer: Offer, session: Session) -> Session | None:
    """The session as it would be with the fix's effects, None where it changes nothing."""
    after = applied(offer, session.knowledge, session.facts)
    added = [f for f in after if f.provenance == (Provenance("rule", offer.fix),)]
    if added and all(any(_states(f, a) for f in session.facts) for a in added):
        return None
    return Session(session.knowledge, after, session.engine)


def applied(offer: Offer, knowledge: Knowledge, given: Iterable[Fact]) -> list[Fact]:
    """The facts as they would be with the fix's effects."""
    text = _Filler(offer, "en")
    facts = list(given)
    added: list[Fact] = []
    for effect in knowledge.fixes[offer.fix]["effects"]:
        if "remove" in effect:
            ((type_name, wanted),) = effect["remove"].items()
            wanted = {k: text.value(v) for k, v in wanted.items()}
            facts = [f for f in facts if not _matches(f, type_name, wanted)]
        if "add" in effect:
            ((type_name, fields),) = effect["add"].items()
            typed = {k: knowledge.vocabulary.coerce(type_name, k, text.value(v)) for k, v in fields.items()}
            added.append(Fact(type_name, typed, (Provenance("rule", offer.fix),)))
    return [*facts, *added]


def cures(before: Iterable[Ranked], after: Iterable[Ranked], cause: str, errors: frozenset[str]) -> bool:
    """Whether a cause is gone and no other error (a cause in `errors`) came up."""
    known = {r.cause for r in before if r.is_finding}
    left = {r.cause for r in after if r.is_finding}
    return cause not in left and not ((left - known) & errors)


def _matches(fact: Fact, type_name: str, wanted: Mapping[str, Scalar]) -> bool:
    return fact.type == type_name and all(fact.fields.get(k) == v for k, v in wanted.items())


def _states(fact: Fact, other: Fact) -> bool:
    return fact.type == other.type and all(fact.fields.get(k) == v for k, v in other.fields.items())


class _Filler:
    """Fills the texts of one offer."""

    def __init__(self, offer: Offer, lang: Lang) -> None:
        self.offer = offer
        self.lang = lang

    def fill(self, template: str) -> str:
        return fill(template, self.offer.bindings)

    def maybe(self, template: str | None) -> str | None:
        return self.fill(template) if template else None

    def value(self, value: Scalar) -> Scalar:
        return self.fill(value) if isinstance(value, str) else value

    def optional(self, item: str | Mapping[str, Any]) -> str | None:
        """The text of a plain item, or of a conditional one whose option applies."""
        if isinstance(item, str):
            return self.fill(item)
        return self.fill(str(item["text"])) if item["if"] in self.offer.options else None

    def numbers(self, wanted: Mapping[str, Sequence[str | int]]) -> dict[str, int]:
        """The figures of a fix that can be computed from the matched facts."""
        found = {}
        for name, (function, *operands) in wanted.items():
            number = compute(str(function), [self._operand(o) for o in operands])
            if number is not None:
                found[name] = number
        return found

    def _operand(self, operand: str | int) -> Scalar | None:
        if isinstance(operand, int):
            return operand
        alias, _, field = operand.removeprefix("$").partition(".")
        return self.offer.bindings.get(alias, {}).get(field.replace(".", "__"))


def _step(data: Mapping[str, Any], text: _Filler, lang: Lang) -> Step:
    words = [w for item in data["run"] if (w := text.optional(item)) is not None]
    return Step(
        platform=data["platform"],
        command=quoted(words, data["platform"]) if words else None,
        text=text.fill(data["say"][lang]) if "say" in data else None,
        tool=data.get("tool"),
        argv=tuple(words) or None,
        needs_root=data["needs_root"],
        reversible=data["reversible"],
    )


def _verify(data: Mapping[str, Any], text: _Filler, lang: Lang) -> str | None:
    if data["verify_run"]:
        return quoted([text.fill(w) for w in data["verify_run"]], "any")
    return text.fill(data["verify"][lang]) if "verify" in data else None


def _effect(data: Mapping[str, Any], text: _Filler) -> Effect:
    if "remove" in data:
        ((type_name, where),) = data["remove"].items()
        return Effect(op="remove", type=type_name, where={k: text.value(v) for k, v in where.items()} or None)
    ((type_name, fields),) = data["add"].items()
    return Effect(op="add", type=type_name, fields={k: text.value(v) for k, v in fields.items()})
