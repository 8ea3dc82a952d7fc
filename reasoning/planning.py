"""The planning stage: what a question asks for becomes estimates before the engine runs, its conclusions become a plan.

May live here: reading the request off the facts, applying the formulas to the cards, collecting the answer. Must not:
any figure, model, card or phrase (data in `knowledge/facts`), any verdict (the rules of area planning conclude those).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..facts import Fact, Provenance, Scalar
from ..knowledge import formulas
from ..knowledge.formulas import MIB, Shape
from ..knowledge.loader import Knowledge
from ..report.messages import Words

if TYPE_CHECKING:
    from ..knowledge.names import GpuNames

# Marks what this stage puts in; that is made anew whenever facts change.
ORIGIN = (Provenance("rule", "planning"),)
# A request comes as a question or as a goal of this name.
PLAN_GOAL = "plan"
_ENDS = ("low", "value", "high")
_TRAINING = ("full", "pretrain", "lora", "qlora")
_ALTERNATIVES = {"full": ("lora", "qlora"), "pretrain": (), "lora": ("qlora",), "qlora": (),
                 "inference": ("inference_int8", "inference_int4"), "inference_int8": ("inference_int4",),
                 "inference_int4": ()}  # fmt: skip
_NO_ADAPTERS = ("vision",)
_WEIGHTS = {"lora": "weights_16bit", "qlora": "weights_nf4", "inference": "weights_16bit",
            "inference_int8": "weights_8bit", "inference_int4": "weights_4bit"}  # fmt: skip
_PREFILL = 2048  # tokens that a server works on at a time
_OPTIMIZERS = ("adamw8bit", "adafactor", "lion", "sgd")
_UNNAMED = re.compile(r"\b[A-Z]{2,} \d{3,5}\b|\b[A-Za-z][\w.\-]*\d[\w.\-]*\b", re.ASCII)
# What one thing said of itself is not a name: sizes, units, precisions.
_NO_NAME = re.compile(r"(?:fp|bf|int|tf|nf|cu|q|rocm|sm_?|ddr|gddr|hbm|pcie|v|gen|python|x)[\d.]+\w*\Z", re.IGNORECASE)
_GIB = 1024


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure with its range."""

    low: float
    value: float
    high: float

    def of(self, end: str) -> float:
        """The figure at one end of the range, or in the middle."""
        return float(getattr(self, end))


@dataclass(frozen=True, slots=True)
class Card:
    """Cards of one product; vram_mib None where nobody knows it."""

    product: str
    count: int
    fields: Mapping[str, Scalar]

    @property
    def label(self) -> str:
        """`2x GeForce RTX 3090`."""
        return self.product if self.count == 1 else f"{self.count}x {self.product}"

    def number(self, name: str) -> int | None:
        """A figure of the product."""
        value = self.fields.get(name)
        return int(value) if value is not None else None


@dataclass(frozen=True, slots=True)
class Model:
    """The model of the question; shape None where only the number of parameters is known."""

    name: str
    params: float
    shape: Shape | None
    kind: str
    context: int = 0
    typical: bool = False  # the shape is that of a model of like size


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
    budget: tuple[int, str] | None = None
    batch: int = 1
    sequence: int = 0
    precision: str = "mixed"
    optimizer: str = "adamw"
    shard: bool = True
    checkpointing: bool = True
    assumed: list[str] = field(default_factory=list)


class Tables:
    """The catalogs that planning reads, by name."""

    def __init__(self, knowledge: Knowledge) -> None:
        rows: dict[str, list[Mapping[str, Scalar]]] = {}
        for type_name, fields in knowledge.static:
            if type_name in ("model_spec", "plan_figure", "gpu_model", "gpu_price"):
                rows.setdefault(type_name, []).append(fields)
        self.models = {str(r["model"]): r for r in rows.get("model_spec", ())}
        self.gpus = {str(r["product"]): r for r in rows.get("gpu_model", ())}
        self.prices = {str(r["product"]): r for r in rows.get("gpu_price", ())}
        self._figures = {
            str(r["name"]): Spread(*(int(r[end]) / 1000 for end in _ENDS)) for r in rows.get("plan_figure", ())
        }

    def figure(self, name: str) -> Spread:
        """A figure of the planning formulas."""
        return self._figures[name]

    @functools.cached_property
    def names(self) -> GpuNames:
        """The recogniser of model names; they are compared like those of GPUs."""
        from ..knowledge.names import GpuName, GpuNames

        return GpuNames(
            GpuName(name, tuple(a for a in str(r.get("aliases", "")).split("|") if a))
            for name, r in self.models.items()
        )

    def model(self, name: str) -> Model:
        """A model of the catalog."""
        row = self.models[name]
        return Model(name, int(row["params_m"]) * 1e6, _shape(row), str(row["kind"]), int(row.get("context", 0)))

    def of_size(self, billions: float) -> Model:
        """A model of which only the size is known, with the shape of the nearest dense decoder."""
        dense = [r for r in self.models.values() if r["kind"] == "decoder" and "active_m" not in r]
        nearest = min(dense, key=lambda r: abs(int(r["params_m"]) - billions * 1000))
        shape = _shape(nearest)
        params = billions * 1e9
        typical = replace(shape, params=int(params)) if shape else None
        name = f"{billions:g}B"
        return Model(name, params, typical, "decoder", int(nearest.get("context", 0)), typical=True)


@functools.lru_cache(maxsize=4)
def tables(knowledge: Knowledge) -> Tables:
    """The planning tables of this knowledge, made once."""
    return Tables(knowledge)


def _shape(row: Mapping[str, Scalar]) -> Shape | None:
    names = ("layers", "hidden", "heads", "kv_heads", "head_dim", "intermediate", "vocab")
    if any(name not in row for name in names):
        return None
    layers, hidden, heads, kv_heads, head_dim, intermediate, vocab = (int(row[name]) for name in names)
    return Shape(
        params=int(row["params_m"]) * 10**6,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=intermediate,
        vocab=vocab,
        gated=bool(row.get("gated")),
        tied=bool(row.get("tied")),
        kv_width=int(row.get("kv_width", 0)),
    )


# --- what is asked ----------------------------------------------------------------------------------------------------


def planned(facts: Iterable[Fact], knowledge: Knowledge) -> list[Fact]:
    """The facts with the request, cards and estimates of a planning question, where they hold one."""
    listed = list(facts)
    given = [f for f in listed if f.provenance != ORIGIN]
    request = read_request(given, knowledge)
    made = _made(request, tables(knowledge)) if request.topics else []
    # Recalled from a report they are there already, each in its place.
    return listed if _same(made, [f for f in listed if f.provenance == ORIGIN]) else [*given, *made]


def _same(first: Sequence[Fact], second: Sequence[Fact]) -> bool:
    return len(first) == len(second) and {f.key() for f in first} == {f.key() for f in second}


def read_request(facts: Sequence[Fact], knowledge: Knowledge) -> Request:
    """What the facts ask for; without topics where they hold no planning question."""
    goals = {str(f.fields["name"]): str(f.fields["value"]) for f in facts if f.type == "goal" and "value" in f.fields}
    said = [f for f in facts if f.type == "statement"]
    kinds = {str(f.fields["kind"]) for f in said}
    if not ({"question_asked"} & kinds or PLAN_GOAL in goals) or _about_trouble(facts, kinds, knowledge):
        return Request()
    request = Request(numbers={str(f.fields["kind"]): int(f.fields["number"]) for f in said if "number" in f.fields})
    for name, number in _seen(facts):
        request.numbers.setdefault(name, number)
    for name in ("method", "task", "quantization", "optimizer", "dtype", "shard"):
        if name in goals:
            kinds |= {s.kind for s in knowledge.phrases.said(f"{name.replace('dtype', '')} {goals[name]}".strip())}
    request.kinds = frozenset(kinds)
    known = tables(knowledge)
    # In an order of its own: facts come in another one when they are recalled.
    request.machine = tuple(sorted(_machine(facts, said, knowledge, known), key=lambda c: (c.product, c.count)))
    request.model = _model(goals, said, known)
    request.budget = _budget(request, goals)
    request.options = _options(request, facts, goals, knowledge, known)
    if request.options:
        request.machine = ()
    _settings(request, goals, known)
    request.topics = _topics(request, PLAN_GOAL in goals)
    return request


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


def _machine(facts: Sequence[Fact], said: Sequence[Fact], knowledge: Knowledge, known: Tables) -> tuple[Card, ...]:
    """The cards that are there, else those that the question names."""
    found: dict[tuple[str, Scalar | None], list[Fact]] = {}
    for fact in facts:
        if fact.type == "gpu" and "name" in fact.fields:
            product = knowledge.names.identify(str(fact.fields["name"])) or str(fact.fields["name"])
            found.setdefault((product, fact.fields.get("vram_mib")), []).append(fact)
    if found:
        return tuple(
            _card(
                product, len(group), known, {k: group[0].fields[k] for k in ("vram_mib", "sm") if k in group[0].fields}
            )
            for (product, _), group in found.items()
        )
    # "预算 8000 元": a bare number that is a sum of money is no model number.
    sums = {
        str(f.fields["number"]) for f in said if str(f.fields["kind"]).startswith("budget") and "number" in f.fields
    }
    named = [f for f in said if f.fields["kind"] == "gpu_mentioned" and not sums & set(str(f.fields["detail"]).split())]
    cards = [_card(str(f.fields["detail"]), int(f.fields.get("number", 1)), known, {}) for f in named]
    stated = next(
        (int(f.fields["number"]) for f in said if f.fields["kind"] == "vram_stated" and "number" in f.fields), 0
    )
    if not cards and stated:
        return (Card(f"{stated} GB", 1, {"vram_mib": stated * _GIB}),)
    total = next((int(f.fields["number"]) for f in said if f.fields["kind"] == "gpu_count" and "number" in f.fields), 0)
    if len(cards) == 1 and total > cards[0].count:
        cards = [replace(cards[0], count=total)]
    return tuple(cards)


def _card(product: str, count: int, known: Tables, own: Mapping[str, Scalar]) -> Card:
    row = known.gpus.get(product, {})
    names = ("sm", "vram_mib", "bandwidth_gbs", "tdp_w", "psu_w")
    fields = {name: row[name] for name in names if name in row}
    members = [r for p, r in known.gpus.items() if p.startswith(f"{product} ") and "vram_mib" in r]
    if "vram_mib" not in fields and members:
        # A line's name says no more than that the card is one of its members: the smallest is the safe answer.
        fields["vram_mib"] = min(int(r["vram_mib"]) for r in members)
    return Card(product, count, fields | dict(own))


def _model(goals: Mapping[str, str], said: Sequence[Fact], known: Tables) -> Model | None:
    """The model that is named, with the size that is stated in numbers where both are."""
    named = [str(f.fields["detail"]) for f in said if f.fields["kind"] in ("model_mentioned", "model_name")]
    product = next((p for text in [goals.get("model", ""), *named] if text and (p := _find(text, known))), None)
    size = _number(goals.get("model_params_b"))
    if product is not None:
        model = known.model(product)
        return replace(model, params=size * 1e9) if size and abs(size * 1e9 / model.params - 1) < 0.2 else model
    if size is None:
        sizes = [str(f.fields["detail"]) for f in said if f.fields["kind"] == "model_size_b"]
        size = _number(sizes[0]) if sizes else None
    return known.of_size(size) if size else None


def _find(text: str, known: Tables) -> str | None:
    return next((product for product, _ in known.names.find_all(text)), None)


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text else 0.0
    except ValueError:
        return None
    return value if 0 < value < 1e5 else None


def _budget(request: Request, goals: Mapping[str, str]) -> tuple[int, str] | None:
    n = request.numbers
    if "budget_wan" in n:
        return n["budget_wan"] * 10_000, "CNY"
    for kind, currency in (("budget_cny", "CNY"), ("budget_usd", "USD")):
        if kind in n:
            return n[kind], currency
    text = goals.get("budget", "")
    digits = re.sub(r"[^\d]", "", text.partition(".")[0])
    if not digits or len(digits) > 9:
        return None
    chinese = re.search(r"[¥￥元块]|cny|rmb|人民币", f"{text} {goals.get('currency', '')}", re.IGNORECASE)
    return int(digits), "CNY" if chinese else "USD"


def _options(
    request: Request,
    facts: Sequence[Fact],
    goals: Mapping[str, str],
    knowledge: Knowledge,
    known: Tables,
) -> tuple[Card, ...]:
    """The cards to choose between: named as options, named in a question of purchase, or all that the budget buys."""
    if "options" in goals:
        found = knowledge.names.find_all(goals["options"])
        return tuple(_card(product, count, known, {}) for product, count in found)
    here = any(f.type == "gpu" for f in facts)
    buying = bool({"asks_purchase", "asks_which_card"} & request.kinds)
    if buying and not here and len(request.machine) > 1 and "wants_mixed_gpus" not in request.kinds:
        return request.machine
    if (buying or request.budget) and not request.machine and (request.budget or request.model):
        amount, currency = request.budget or (10**9, "USD")
        unit = currency.lower()
        affordable = [p for p, row in known.prices.items() if unit in row and int(row[unit]) <= amount]
        return tuple(_card(p, 1, known, {"price": known.prices[p][unit]}) for p in affordable)
    return ()


def _settings(request: Request, goals: Mapping[str, str], known: Tables) -> None:
    """Method, precision, optimizer, batch and sequence; what was not said is noted as assumed."""
    kinds, numbers = request.kinds, request.numbers
    wanted: list[str] = []
    if "wants_pretrain" in kinds:
        wanted.append("pretrain")
    elif "wants_full_finetune" in kinds:
        wanted.append("full")
    elif "wants_qlora" in kinds:
        wanted.append("qlora")
    elif "wants_lora" in kinds:
        wanted.append("lora")
    elif "wants_training" in kinds:
        wanted.append("full")
    if "wants_inference" in kinds or not wanted:
        form = "inference_int4" if "wants_4bit" in kinds else "inference_int8" if "wants_8bit" in kinds else "inference"
        wanted.insert(0, form)
    request.wanted = tuple(wanted)
    first = wanted[-1].partition("_")[0]
    request.method = "training" if first == "full" and "wants_full_finetune" not in kinds else first
    request.precision = "fp32" if "wants_fp32" in kinds else "pure16" if "wants_pure16" in kinds else "mixed"
    request.optimizer = next((o for o in _OPTIMIZERS if f"optimizer_{o}" in kinds), "adamw")
    request.shard = "wants_ddp" not in kinds
    request.checkpointing = "no_checkpointing" not in kinds
    training = wanted[-1] in _TRAINING
    request.batch = numbers.get("batch_size") or int(_number(goals.get("batch_size")) or 0)
    request.sequence = (
        numbers.get("sequence_k", 0) * 1024 or numbers.get("sequence_tokens", 0)
        or int(_number(goals.get("context_length")) or 0)
    )  # fmt: skip
    if not request.batch:
        request.batch = int(known.figure("default_batch").value)
        request.assumed.append("batch")
    if not request.sequence:
        name = "default_sequence_training" if training else "default_sequence_inference"
        name = "long_sequence" if "wants_long_context" in kinds else name
        request.sequence = int(known.figure(name).value)
        if request.model and request.model.context:
            request.sequence = min(request.sequence, request.model.context)
        request.assumed.append("sequence")
    if training:
        request.assumed += [] if request.optimizer != "adamw" or "optimizer_adamw" in kinds else ["optimizer"]
        request.assumed += [] if request.precision != "mixed" or "wants_mixed" in kinds else ["precision"]
        request.assumed += ["checkpointing"] if request.checkpointing else []
        request.assumed += ["shard"] if request.shard and sum(c.count for c in request.machine) > 1 else []
    if request.model and request.model.typical:
        request.assumed.append("typical")
    if request.model and request.model.shape is None:
        request.assumed.append("shape")


def _topics(request: Request, explicit: bool) -> tuple[str, ...]:
    kinds = request.kinds
    topics = [
        topic
        for topic, kind, ready in (
            ("power", "asks_power", bool(request.machine)),
            ("workers", "asks_workers", True),
            ("place", "asks_place", True),
            ("mixed", "wants_mixed_gpus", len({c.product for c in request.machine}) > 1),
        )
        if kind in kinds and ready
    ]
    if explicit:
        several = len({c.product for c in request.machine}) > 1
        topics += ["mixed"] if several and "mixed" not in topics else []
        topics += ["power"] if "psu_w" in request.numbers and request.machine and "power" not in topics else []
        topics += ["workers"] if "cpu_cores" in request.numbers and "workers" not in topics else []
    if request.options:
        topics.append("choice" if not request.budget and "asks_budget" not in kinds else "purchase")
    asked = explicit or bool(
        kinds & {"asks_feasible", "asks_memory", "wants_training", "wants_inference", "asks_purchase", "asks_place"}
    )
    whole = "mixed" not in topics or explicit or "asks_feasible" in kinds
    if request.model and asked and not request.options and whole:
        topics.append("capacity")
    return tuple(topics)


def models_of(question: str, knowledge: Knowledge) -> list[Fact]:
    """A `model_mentioned` statement for each model of the catalog that a question names."""
    origin = (Provenance("user", "question", None, "question"),)
    named = tables(knowledge).names.find_all(question)
    return [Fact("statement", {"kind": "model_mentioned", "detail": name}, origin) for name, _ in named]


def not_understood(question: str, knowledge: Knowledge) -> list[str]:
    """Words of a question that look like the name of a card or model and are in no catalog."""
    from ..knowledge.phrases import with_lines

    known = tables(knowledge)
    strange = []
    for match in _UNNAMED.finditer(question):
        word = match.group().rstrip(".-")
        around = question[max(0, match.start() - 12) : match.end()]
        if _NO_NAME.match(word) or known.names.find_all(around) or known.names.find_all(word):
            continue
        if not knowledge.names.find_all(with_lines(around, knowledge.names)):
            strange.append(word)
    return list(dict.fromkeys(strange))


# --- estimates --------------------------------------------------------------------------------------------------------


def _made(request: Request, known: Tables) -> list[Fact]:
    found: list[tuple[str, dict[str, Any]]] = []
    cards = request.options or request.machine
    for topic in request.topics:
        found.append(("plan_request", _request_fields(topic, request)))
    role = "option" if request.options else "machine"
    for card in cards:
        found.append(
            (
                "plan_card",
                {"product": card.product, "label": card.label, "role": role, "count": card.count, **card.fields},
            )
        )
    if request.model is not None:
        groups: list[tuple[Card, ...]] = [(card,) for card in request.options] or [request.machine]
        lighter = () if request.model.kind in _NO_ADAPTERS else (a for w in request.wanted for a in _ALTERNATIVES[w])
        methods = list(dict.fromkeys([*request.wanted, *lighter]))
        found += [
            ("estimate", estimate(request, request.model, group, method, known))
            for group in groups
            for method in methods
        ]
    if request.machine:
        found += [("plan_power", fields) for fields in _power(request, known)]
    if "workers" in request.topics:
        found += [("plan_workers", fields) for fields in _workers(request, known)]
    return [Fact(t, fields, ORIGIN) for t, fields in found]


def _request_fields(topic: str, request: Request) -> dict[str, Any]:
    cards = request.options or request.machine
    fields: dict[str, Any] = {
        "topic": topic,
        "method": request.method,
        "cards": sum(c.count for c in cards),
        "different": len({c.product for c in cards}),
    }
    if cards:
        fields["products"] = " + ".join(c.label for c in cards)
    if request.model is not None:
        fields["model"] = request.model.name
    if request.budget is not None:
        fields["budget"], fields["currency"] = request.budget
    return fields


def estimate(request: Request, model: Model, cards: Sequence[Card], method: str, known: Tables) -> dict[str, Any]:
    """The fields of an estimate: what a card must hold for a method, at both ends of the range and in the middle."""
    count = sum(c.count for c in cards) or 1
    parts = {end: _parts(request, model, count, method, known, end) for end in _ENDS}
    middle = parts["value"]
    sums = {end: sum(p.values()) for end, p in parts.items()}
    # Weights that one of several unsharded cards holds are not there twice in what the method needs as a whole.
    state = {end: sum(p[k] for k in ("weights", "gradients", "optimizer")) * count for end, p in parts.items()}
    fields: dict[str, Any] = {
        "option": " + ".join(c.label for c in cards) or "-",
        "model": model.name,
        "method": method,
        "name_en": Words("en")(f"plan.method.{method}"),
        "name_zh": Words("zh")(f"plan.method.{method}"),
        "wanted": method in request.wanted,
        "rank": _rank(method, request),
        "cards": count,
        "need": _gib(sums["value"]),
        "total": _gib(sums["value"] * count),
        "state": _gib(state["value"]),
    }
    for end, name in (("low", "low_mib"), ("value", "need_mib"), ("high", "high_mib")):
        fields[name] = round(sums[end])
    for end, name in (("low", "low_"), ("value", ""), ("high", "high_")):
        fields[f"total_{name}mib"] = round(sums[end] * count)
        fields[f"state_{name}mib"] = round(state[end])
    fields |= {f"{name}_mib": round(size) for name, size in middle.items()}
    rooms = [c.number("vram_mib") for c in cards]
    if rooms and None not in rooms:
        fields["room_mib"] = min(r for r in rooms if r is not None)
        fields["room"] = _gib(fields["room_mib"])
    return fields


def _rank(method: str, request: Request) -> int:
    """0 for what was asked, then the alternatives in their order."""
    places = [_ALTERNATIVES[w].index(method) for w in request.wanted if method in _ALTERNATIVES[w]]
    return 0 if method in request.wanted or not places else 1 + min(places)


def _parts(request: Request, model: Model, count: int, method: str, known: Tables, end: str) -> dict[str, float]:
    """What one card holds, by part, in MiB."""
    training = method in _TRAINING
    share = count if request.shard or not training else 1

    def per_param(name: str) -> float:
        return known.figure(name).of(end)

    sizes = dict.fromkeys(("weights", "gradients", "optimizer", "activations", "kv_cache"), 0.0)
    if method in ("full", "pretrain"):
        pure = request.precision == "pure16" and request.optimizer == "adamw"
        moments = per_param(f"optimizer_{request.optimizer}" + ("_pure16" if pure else ""))
        sizes["weights"] = formulas.state(model.params, per_param(f"weights_{request.precision}"))
        sizes["gradients"] = formulas.state(model.params, per_param(f"gradients_{request.precision}"))
        sizes["optimizer"] = formulas.state(model.params, moments + per_param(f"master_{request.precision}"))
    else:
        sizes["weights"] = _frozen(model, method, known, end)
        if training:
            _add_adapters(sizes, model, known)
    sizes = {name: formulas.sharded(size, share) for name, size in sizes.items()}
    if model.shape is None:
        # Without a shape nothing is known but that activations are of the order of the state.
        share_of = known.figure("unknown_activations_share").of(end)
        sizes["activations"] = sum(sizes.values()) * (share_of if training else share_of / 5)
    elif training:
        sizes["activations"] = _training_activations(request, model.shape, known, end)
        if share > 1:
            held = known.figure("gather_layers").value * sizes["weights"] * share / model.shape.layers
            sizes["activations"] += held
    else:
        tokens = request.batch * request.sequence
        sizes["kv_cache"] = formulas.kv_cache(model.shape, tokens, known.figure("kv_bytes").value) / count
        chunk = min(tokens, _PREFILL)
        layer = formulas.layer_activations(model.shape, chunk, chunk, 2, flash=True)
        sizes["activations"] = (layer * known.figure("activation_spread").of(end) + model.shape.vocab * 4) / count
    mib = {name: size / MIB for name, size in sizes.items()}
    mib["context"] = known.figure("context_mib").of(end)
    mib["margin"] = known.figure("margin_share").of(end) * sum(mib.values())
    return mib


def _frozen(model: Model, method: str, known: Tables, end: str) -> float:
    width = known.figure(_WEIGHTS[method]).of(end)
    if model.shape is None or _WEIGHTS[method] == "weights_16bit":
        return formulas.state(model.params, width)
    return formulas.quantized_weights(model.shape, width, known.figure("weights_16bit").value)


def _add_adapters(sizes: dict[str, float], model: Model, known: Tables) -> None:
    rank = int(known.figure("lora_rank").value)
    trained = formulas.lora_params(model.shape, rank) if model.shape else model.params / 100
    weights, whole = known.figure("weights_16bit").value, known.figure("lora_bytes").value
    sizes["weights"] += formulas.state(trained, weights)
    sizes["gradients"] = formulas.state(trained, weights)
    sizes["optimizer"] = formulas.state(trained, whole - 2 * weights)


def _training_activations(request: Request, shape: Shape, known: Tables, end: str) -> float:
    tokens = request.batch * request.sequence
    width = int(known.figure("activation_bytes_fp32" if request.precision == "fp32" else "activation_bytes").value)
    layers = formulas.activations(
        shape, tokens, request.sequence, width, flash=True, checkpointing=request.checkpointing
    )
    scores = formulas.logits(shape, tokens, known.figure("logit_bytes").of(end))
    return layers * known.figure("activation_spread").of(end) + scores


def _power(request: Request, known: Tables) -> list[dict[str, Any]]:
    """The power of the machine's cards, where it is known of all of them."""
    watts = [c.number("tdp_w") for c in request.machine]
    if not watts or None in watts:
        return []
    total = sum(w * c.count for w, c in zip(watts, request.machine, strict=True) if w is not None)
    rest, headroom = known.figure("rest_w"), known.figure("psu_headroom")
    low, middle, high = (formulas.power_supply(total, rest.of(e), headroom.of(e)) for e in _ENDS)
    fields: dict[str, Any] = {
        "products": " + ".join(c.label for c in request.machine),
        "gpu_sum_w": total,
        "psu_low_w": low,
        "psu_min_w": middle,
        "psu_high_w": high,
    }
    supply = request.numbers.get("psu_w")
    fields["psu_known"] = bool(supply)
    if supply:
        count = sum(c.count for c in request.machine)
        fields |= {"psu_w": supply, "limit_w": formulas.power_limit(supply, count, rest.value, headroom.value)}
    return [fields]


def _workers(request: Request, known: Tables) -> list[dict[str, Any]]:
    cores = request.numbers.get("cpu_cores")
    if not cores:
        return [{"cores_known": False}]
    processes = max(1, sum(c.count for c in request.machine))
    reserve = int(known.figure("reserved_cores").value)
    workers = formulas.workers(cores, processes, reserve)
    return [
        {
            "cores_known": True,
            "cores": cores,
            "processes": processes,
            "workers": workers,
            "low": max(1, workers // 2),
            "high": workers,
        }
    ]


def _gib(mib: float) -> str:
    return f"{mib / _GIB:.1f} GiB"
