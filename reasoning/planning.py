"""The planning stage: what a question asks for becomes estimates before the engine runs.

May live here: which facts a planning question adds to a session. Must not: reading the question (planrequest.py),
arithmetic (planestimates.py, planmachine.py), any verdict (the rules of area planning conclude those).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..facts import Fact, Provenance
from ..knowledge.loader import Knowledge
from ..report.messages import Words
from .planestimates import estimate, least_count
from .planmachine import option_power, power, workers
from .planrequest import Request, read_request
from .plansettings import settle, topics
from .plantables import Card, Model, Tables, tables

# Marks what this stage puts in; that is made anew whenever facts change.
ORIGIN = (Provenance("rule", "planning"),)

_Row = tuple[str, dict[str, Any]]


def planned(facts: Iterable[Fact], knowledge: Knowledge) -> list[Fact]:
    """The facts with the request, cards and estimates of a planning question, where they hold one."""
    listed = list(facts)
    given = [f for f in listed if f.provenance != ORIGIN]
    asked = request_of(given, knowledge)
    made = [Fact(t, fields, ORIGIN) for t, fields in _made(asked, tables(knowledge))] if asked.topics else []
    # Recalled from a report they are there already, each in its place.
    return listed if _same(made, [f for f in listed if f.provenance == ORIGIN]) else [*given, *made]


def request_of(facts: Iterable[Fact], knowledge: Knowledge) -> Request:
    """What the facts ask for, with its settings; without topics where they hold no planning question."""
    known = tables(knowledge)
    request = read_request([f for f in facts if f.provenance != ORIGIN], knowledge)
    if request == Request():
        return request
    settle(request, known)
    request.topics = topics(request)
    if "count" in request.topics and request.model is not None:
        # Asked how many cards are needed, the plan is for that many; where no number will do, for those named.
        card = request.machine[0]
        found = least_count(request, request.model, card, request.wanted[-1], known)
        request.machine = (replace(card, count=found or card.count),)
    return request


def _same(first: Sequence[Fact], second: Sequence[Fact]) -> bool:
    return len(first) == len(second) and {f.key() for f in first} == {f.key() for f in second}


def _made(request: Request, known: Tables) -> Iterator[_Row]:
    for topic in request.topics:
        yield "plan_request", _request_fields(topic, request)
    role = "option" if request.options else "machine"
    for card in request.cards:
        named = {"product": card.product, "label": card.label, "role": role, "count": card.count}
        yield "plan_card", {**named, **card.fields, **option_power(card, known)}
    if request.model is not None:
        yield from _estimates(request, request.model, known)
    for fields in power(request, known):
        yield "plan_power", fields
    if "workers" in request.topics:
        yield "plan_workers", workers(request, known)


def _estimates(request: Request, model: Model, known: Tables) -> Iterator[_Row]:
    instead = [name for wanted in request.wanted for name in known.methods[wanted].instead]
    lighter = [name for name in instead if model.kind.adapters or not known.methods[name].adapters]
    groups: list[tuple[Card, ...]] = [(card,) for card in request.options]
    for group in groups or [request.machine]:
        for method in dict.fromkeys([*request.wanted, *lighter]):
            yield "estimate", estimate(request, model, group, method, known)
    if len(request.machine) == 1:
        for method in request.wanted:
            yield from _count(request, model, method, known)


def _count(request: Request, model: Model, method: str, known: Tables) -> Iterator[_Row]:
    """How many of the machine's cards a method takes; nothing where their memory is not known."""
    card = request.machine[0]
    if card.number("vram_mib") is None:
        return
    count = least_count(request, model, card, method, known)
    fields = {"product": card.product, "method": method, "there": card.count, "found": count is not None}
    if count is None:
        yield "plan_count", {**fields, "more": False}
        return
    cards = (replace(card, count=count),)
    needed = estimate(replace(request, shard=True), model, cards, method, known)
    way = "one" if count == 1 else "fsdp" if known.methods[method].training else "tensor"
    fields |= {f"way_{lang}": Words(lang)(f"plan.way.{way}") for lang in ("en", "zh")}
    fields |= {name: needed[name] for name in ("model", "name_en", "name_zh", "need", "room")}
    yield "plan_count", {**fields, "cards": count, "label": cards[0].label, "more": count > card.count}


def _request_fields(topic: str, request: Request) -> dict[str, Any]:
    cards = request.cards
    fields: dict[str, Any] = {
        "topic": topic,
        "method": request.method,
        "cards": sum(c.count for c in cards),
        "different": len({c.product for c in cards}),
        "options": len(request.options),
    }
    if cards:
        fields["products"] = " + ".join(c.label for c in cards)
    if request.model is not None:
        fields["model"] = request.model.name
        fields["images"] = request.model.kind.images
    if request.budget is not None:
        fields["budget"], fields["currency"] = request.budget
    return fields
