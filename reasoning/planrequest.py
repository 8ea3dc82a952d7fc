"""What a planning question asks for: the model, the cards and the budget, read off the facts.

May live here: from statements, goals and facts to a `Request`. Must not: any figure, model, card or phrase (data in
`knowledge/facts`), any estimate (planestimates.py), any verdict (the rules of area planning conclude those).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..facts import Fact, Scalar
from ..knowledge.loader import Knowledge
from .plantables import Card, Model, Tables, tables

# A request comes as a question or as a goal of this name.
PLAN_GOAL = "plan"
# Goals that say how: `NAME: VALUE`, or the value alone, is read as a phrase.
_SPOKEN = ("method", "task", "quantization", "optimizer", "dtype", "shard", "offload", "checkpointing")
_MIB_PER_GIB = 1024


@dataclass(slots=True)
class Request:
    """What was asked, as far as it was understood."""

    topics: tuple[str, ...] = ()
    method: str = "none"
    wanted: tuple[str, ...] = ()
    model: Model | None = None
    machine: tuple[Card, ...] = ()
    options: tuple[Card, ...] = ()
    kinds: frozenset[str] = frozenset()
    numbers: dict[str, int] = field(default_factory=dict)
    goals: Mapping[str, str] = field(default_factory=dict)
    budget: tuple[int, str] | None = None
    batch: int = 1
    sequence: int = 0
    precision: str = "mixed"
    optimizer: str = "adamw"
    shard: bool = True
    checkpointing: bool = True
    assumed: list[str] = field(default_factory=list)

    @property
    def cards(self) -> tuple[Card, ...]:
        """The cards that the question is about."""
        return self.options or self.machine


def read_request(facts: Sequence[Fact], knowledge: Knowledge) -> Request:
    """What the facts ask for, without its settings and topics; None is asked where they hold no planning question."""
    goals = {str(f.fields["name"]): str(f.fields["value"]) for f in facts if f.type == "goal" and "value" in f.fields}
    said = [f for f in facts if f.type == "statement"]
    kinds = {str(f.fields["kind"]) for f in said}
    if not ({"question_asked"} & kinds or PLAN_GOAL in goals) or _about_trouble(facts, kinds, knowledge):
        return Request()
    for name in _SPOKEN:
        if name in goals:
            kinds |= {s.kind for s in knowledge.phrases.said(f"{name}: {goals[name]}")}
    known = tables(knowledge)
    request = Request(numbers=_numbers(facts, said), goals=goals, kinds=frozenset(kinds))
    # In an order of its own: facts come in another one when they are recalled.
    request.machine = tuple(sorted(_machine(facts, said, knowledge, known), key=lambda c: (c.product, c.count)))
    request.model = _model(goals, said, known)
    request.budget = _budget(request)
    request.options = _options(request, facts, knowledge, known)
    if request.options:
        request.machine = ()
    return request


def number_in(text: str | None) -> float | None:
    """The number that a goal's value is, where it is one of a sensible size."""
    try:
        value = float(text) if text else 0.0
    except ValueError:
        return None
    return value if 0 < value < 1e5 else None


def _numbers(facts: Sequence[Fact], said: Iterable[Fact]) -> dict[str, int]:
    numbers = {str(f.fields["kind"]): int(f.fields["number"]) for f in said if "number" in f.fields}
    for name, number in _seen(facts):
        numbers.setdefault(name, number)
    return numbers


def _seen(facts: Sequence[Fact]) -> Iterator[tuple[str, int]]:
    """Figures of the machine that nobody has to state: processor cores, and the supply where there is just one."""
    for fact in facts:
        if fact.type == "cpu" and "cores" in fact.fields:
            yield "cpu_cores", min(int(fact.fields["cores"]), int(fact.fields.get("usable", fact.fields["cores"])))
    supplies = [f for f in facts if f.type == "power_supply" and f.fields.get("present") is not False]
    if len(supplies) == 1 and "max_w" in supplies[0].fields:
        yield "psu_w", int(supplies[0].fields["max_w"])


def _about_trouble(facts: Sequence[Fact], kinds: set[str], knowledge: Knowledge) -> bool:
    """Whether the input tells of an error or a symptom: then it wants a diagnosis, not a plan."""
    troubles = {k for d in knowledge.symptoms.values() for k in d.get("statements", ())} - {"question_asked"}
    return any(f.type == "error" for f in facts) or bool(kinds & troubles)


# --- cards ------------------------------------------------------------------------------------------------------------


def _machine(facts: Sequence[Fact], said: Sequence[Fact], knowledge: Knowledge, known: Tables) -> tuple[Card, ...]:
    """The cards that are there, else those that the question names."""
    return _cards_there(facts, knowledge, known) or _cards_named(said, known)


def _cards_there(facts: Iterable[Fact], knowledge: Knowledge, known: Tables) -> tuple[Card, ...]:
    found: dict[tuple[str, Scalar | None], list[Fact]] = {}
    for fact in facts:
        if fact.type == "gpu" and "name" in fact.fields:
            product = knowledge.names.identify(str(fact.fields["name"])) or str(fact.fields["name"])
            found.setdefault((product, fact.fields.get("vram_mib")), []).append(fact)
    return tuple(
        known.card(product, len(group), {k: group[0].fields[k] for k in ("vram_mib", "sm") if k in group[0].fields})
        for (product, _), group in found.items()
    )


def _cards_named(said: Iterable[Fact], known: Tables) -> tuple[Card, ...]:
    of_kind: dict[str, list[Fact]] = {}
    for fact in said:
        of_kind.setdefault(str(fact.fields["kind"]), []).append(fact)
    # "预算 8000 元": a bare number that is a sum of money is no model number.
    sums = {str(f.fields.get("number")) for kind, given in of_kind.items() if kind.startswith("budget") for f in given}
    mentioned = [f for f in of_kind.get("gpu_mentioned", ()) if "detail" in f.fields]
    named = [f for f in mentioned if not sums & set(str(f.fields["detail"]).split())]
    cards = [known.card(str(f.fields["detail"]), int(f.fields.get("number", 1))) for f in named]
    stated, own, total, cards_said = (
        next((int(f.fields["number"]) for f in of_kind.get(kind, ()) if "number" in f.fields), 0)
        for kind in ("vram_stated", "card_memory", "gpu_count", "gpu_number")
    )
    if len(cards) == 1 and own and own * _MIB_PER_GIB != cards[0].number("vram_mib"):
        # A card with other memory than the product has: "a 4090 with 48 GB" was rebuilt.
        cards = [known.card(cards[0].product, cards[0].count, {"vram_mib": own * _MIB_PER_GIB})]
    if not cards and stated:
        return (Card(f"{stated} GB", 1, {"vram_mib": stated * _MIB_PER_GIB}),)
    total = total or cards_said
    if len(cards) == 1 and total > cards[0].count:
        cards = [replace(cards[0], count=total)]
    return tuple(cards)


def _options(request: Request, facts: Iterable[Fact], knowledge: Knowledge, known: Tables) -> tuple[Card, ...]:
    """The cards to choose between: named as options, named in a question of purchase, or all that the budget buys."""
    if "options" in request.goals:
        found = knowledge.names.find_all(request.goals["options"])
        return _priced([known.card(product, count) for product, count in found], request, known)
    here = any(f.type == "gpu" for f in facts)
    # To rent or to buy is a question of its own.
    buying = bool({"asks_purchase", "asks_which_card"} & request.kinds) and "asks_place" not in request.kinds
    comparing = "compares_cards" in request.kinds or (buying and "wants_mixed_gpus" not in request.kinds)
    if not here and ((comparing and len(request.machine) > 1) or ("asks_worth" in request.kinds and request.machine)):
        return _priced(_alike(request.machine, known), request, known)
    if (buying or request.budget) and not request.machine and (request.budget or request.model):
        priced = _priced([known.card(product, 1) for product in known.prices], request, known)
        return tuple(card for card in priced if "price" in card.fields and card.fields.get("affordable", 1) != 0)
    return ()


def _priced(cards: Iterable[Card], request: Request, known: Tables) -> tuple[Card, ...]:
    """The cards with their price at launch, what they cost together, and how many of them the budget buys."""
    unit = request.budget[1].lower() if request.budget else "usd"
    return tuple(_with_price(card, known.prices.get(card.product, {}).get(unit), request.budget) for card in cards)


def _with_price(card: Card, price: Scalar | None, budget: tuple[int, str] | None) -> Card:
    if price is None:
        return card
    bought = {"affordable": budget[0] // int(price)} if budget else {}
    return replace(card, fields={**card.fields, "price": int(price), "cost": int(price) * card.count, **bought})


def _alike(cards: Sequence[Card], known: Tables) -> tuple[Card, ...]:
    """Cards to compare: where only the name of a line was said, the member with as much memory as another card has."""
    sizes = {card.number("vram_mib") for card in cards}
    return tuple(
        next((known.card(p, card.count) for p, mib in known.members(card.product) if mib == size), card)
        if card.assumed and (size := max((s for s in sizes if s), default=0)) != card.number("vram_mib")
        else card
        for card in cards
    )


# --- model and budget -------------------------------------------------------------------------------------------------


def _model(goals: Mapping[str, str], said: Sequence[Fact], known: Tables) -> Model | None:
    """The model that is named, with the size that is stated in numbers where both are."""
    named = [str(f.fields["detail"]) for f in said if f.fields["kind"] in ("model_mentioned", "model_name")]
    product = next((p for text in [goals.get("model", ""), *named] if text and (p := _find(text, known))), None)
    size = number_in(goals.get("model_params_b"))
    if product is not None:
        model = known.model(product)
        return replace(model, params=size * 1e9) if size and abs(size * 1e9 / model.params - 1) < 0.2 else model
    if size is None:
        sizes = [str(f.fields["detail"]) for f in said if f.fields["kind"] == "model_size_b"]
        size = number_in(sizes[0]) if sizes else None
    return known.of_size(size) if size else None


def _find(text: str, known: Tables) -> str | None:
    return next((product for product, _ in known.names.find_all(text)), None)


def _budget(request: Request) -> tuple[int, str] | None:
    n = request.numbers
    if "budget_wan" in n:
        return n["budget_wan"] * 10_000, "CNY"
    for kind, currency in (("budget_cny", "CNY"), ("budget_usd", "USD")):
        if kind in n:
            return n[kind], currency
    text = request.goals.get("budget", "")
    digits = re.sub(r"[^\d]", "", text.partition(".")[0])
    if not digits or len(digits) > 9:
        return None
    said = f"{text} {request.goals.get('currency', '')}"
    return int(digits), "CNY" if re.search(r"[¥￥元块]|cny|rmb|人民币", said, re.IGNORECASE) else "USD"
