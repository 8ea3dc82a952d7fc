"""The memory that a model and a method need of each card, part by part, and the least number of cards that holds it.

May live here: applying the formulas to a request. Must not: a formula (knowledge/formulas.py), any figure (data in
`knowledge/facts`), any verdict (the rules of area planning conclude those).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..knowledge import formulas
from ..knowledge.formulas import MIB, Widths
from ..report.messages import Words
from .planrequest import Request
from .plantables import ENDS, Card, Method, Model, Tables

_GIB = 1024
_STATE = ("weights", "gradients", "optimizer")


def estimate(request: Request, model: Model, cards: Sequence[Card], name: str, known: Tables) -> dict[str, Any]:
    """The fields of an estimate: what a card must hold for a method, at both ends of the range and in the middle."""
    method = known.methods[name]
    count = sum(c.count for c in cards) or 1
    parts = {end: _parts(request, model, count, method, known, end) for end in ENDS}
    middle = parts["value"]
    sums = {end: sum(p.values()) for end, p in parts.items()}
    # Weights that one of several unsharded cards holds are not there twice in what the method needs as a whole.
    state = {end: sum(p[k] for k in _STATE) * count for end, p in parts.items()}
    fields: dict[str, Any] = {
        "option": " + ".join(c.label for c in cards) or "-",
        "model": model.name,
        "method": name,
        "name_en": Words("en")(f"plan.method.{name}"),
        "name_zh": Words("zh")(f"plan.method.{name}"),
        "wanted": name in request.wanted,
        "rank": _rank(name, request, known),
        "cards": count,
        "need": _gib(sums["value"]),
        "total": _gib(sums["value"] * count),
        "state": _gib(state["value"]),
    }
    for end, field in (("low", "low_mib"), ("value", "need_mib"), ("high", "high_mib")):
        fields[field] = round(sums[end])
    for end, prefix in (("low", "low_"), ("value", ""), ("high", "high_")):
        fields[f"total_{prefix}mib"] = round(sums[end] * count)
        fields[f"state_{prefix}mib"] = round(state[end])
    fields |= {f"{part}_mib": round(size) for part, size in middle.items()}
    if method.host:
        ram = {end: round(_host_memory(request, model, known, end) / MIB) for end in ENDS}
        fields |= {"ram_low_mib": ram["low"], "ram_mib": ram["value"], "ram_high_mib": ram["high"]}
        fields["ram"] = _gib(ram["value"])
    rooms = [c.number("vram_mib") for c in cards]
    if rooms and None not in rooms:
        fields["room_mib"] = min(r for r in rooms if r is not None)
        fields["room"] = _gib(fields["room_mib"])
    return fields


def least_count(request: Request, model: Model, card: Card, name: str, known: Tables) -> int | None:
    """The least number of these cards that holds a method even at the high end, divided among them; None for none."""
    room = card.number("vram_mib")
    if room is None:
        return None
    method, divided = known.methods[name], replace(request, shard=True)

    def fits(count: int) -> bool:
        return sum(_parts(divided, model, count, method, known, "high").values()) <= room

    counts = _counts(method, model, known.whole("most_cards"))
    if fits(counts[0]):
        return counts[0]
    # From two cards on, what each must hold only falls with their number.
    rest = counts[1:]
    found = bisect_left(rest, True, key=fits)
    return rest[found] if found < len(rest) else None


def _counts(method: Method, model: Model, most: int) -> Sequence[int]:
    """Numbers of cards that a method can be divided among: training any, tensor parallelism powers of two."""
    if method.training:
        return range(1, most + 1)
    powers = [2**n for n in range(most.bit_length())]
    return [n for n in powers if model.shape is None or model.shape.heads % n == 0]


def _rank(name: str, request: Request, known: Tables) -> int:
    """0 for what was asked, then the alternatives in their order."""
    places = [i.index(name) for w in request.wanted if name in (i := known.methods[w].instead)]
    return 0 if name in request.wanted or not places else 1 + min(places)


def _parts(request: Request, model: Model, count: int, method: Method, known: Tables, end: str) -> dict[str, float]:
    """What one card holds, by part, in MiB."""
    share = count if request.shard or not method.training else 1
    sizes = dict.fromkeys((*_STATE, "activations", "kv_cache"), 0.0)
    if method.weights:
        sizes["weights"] = _frozen(model, method, known, end)
        if method.adapters:
            _add_adapters(sizes, model, known)
    elif method.host:
        sizes["weights"] = formulas.state(model.params, known.figure(f"offload_weights_{request.precision}").of(end))
    else:
        sizes |= _trained(request, model, known, end, whole=share == 1)
    sizes = {name: formulas.sharded(size, share) for name, size in sizes.items()}
    if method.training:
        sizes["activations"] = _training(request, model, method, known, end, sizes)
        if share > 1 and model.shape is not None:
            width = known.whole("activation_bytes_mixed")
            sizes["activations"] += formulas.gathered(model.shape, known.figure("gather_layers").value, width)
        if not method.weights and not method.host:
            # The optimizer's step comes when the activations are gone: only the larger of both counts.
            step = formulas.state(model.params, known.special("step_bytes", request.optimizer).of(end))
            sizes["activations"] = max(sizes["activations"], formulas.sharded(step, share))
    else:
        sizes |= _serving(request, model, count, known, end, sum(sizes.values()))
    mib = {name: size / MIB for name, size in sizes.items()}
    mib["context"] = known.figure("context_mib").of(end)
    if method.host:
        mib["gradients"] = known.figure("offload_buffer_mib").of(end)
    mib["margin"] = known.figure("margin_share").of(end) * sum(mib.values())
    return mib


# --- state ------------------------------------------------------------------------------------------------------------


def _trained(request: Request, model: Model, known: Tables, end: str, *, whole: bool) -> dict[str, float]:
    """Weights, gradients and optimizer state where every parameter is trained. whole: on one card, not divided."""
    precision = request.precision
    # Where the state is divided, copies in fewer bits are made of the layers at hand only.
    copies = known.figure(f"copies_{precision}").of(end) if whole else 0.0
    moments = known.special(f"optimizer_{request.optimizer}", precision).of(end)
    return {
        "weights": formulas.state(model.params, known.figure(f"weights_{precision}").of(end) + copies),
        "gradients": formulas.state(model.params, known.figure(f"gradients_{precision}").of(end)),
        "optimizer": formulas.state(model.params, moments),
    }


def _host_memory(request: Request, model: Model, known: Tables, end: str) -> float:
    """What the machine's own memory holds where the optimizer works there: weights, gradients, moments, and buffers."""
    state = sum(_trained(request, model, known, end, whole=False).values())
    return state * known.figure("host_buffers").of(end)


def _frozen(model: Model, method: Method, known: Tables, end: str) -> float:
    width = known.figure(method.weights).of(end)
    plain = known.figure("weights_16bit").value
    if model.shape is None or width >= plain:
        return formulas.state(model.params, width)
    return formulas.quantized_weights(model.shape, width, plain)


def _add_adapters(sizes: dict[str, float], model: Model, known: Tables) -> None:
    rank = known.whole("lora_rank")
    trained = formulas.lora_params(model.shape, rank) if model.shape else model.params / 100
    for part in ("weights", "gradients", "optimizer"):
        sizes[part] += formulas.state(trained, known.figure(f"{part}_adapters").value)


# --- activations ------------------------------------------------------------------------------------------------------


def _training(
    request: Request, model: Model, method: Method, known: Tables, end: str, state: dict[str, float]
) -> float:
    """What waits for the backward pass, and its busiest moment."""
    widths = _widths(request, method, known, end)
    spread = known.figure("activation_spread").of(end)
    if model.saved:
        return formulas.state(request.batch * model.saved, widths.element) * spread
    if model.shape is None:
        # Without a shape nothing is known but that activations are of the order of the state.
        return sum(state.values()) * known.figure("unknown_activations_share").of(end)
    size = (model.shape, request.batch * request.sequence, request.sequence, widths)
    kept = formulas.kept_activations(*size, checkpointing=request.checkpointing)
    working = formulas.working_activations(*size, checkpointing=request.checkpointing)
    scores = known.figure("logit_bytes").of(end)
    output = formulas.output_activations(model.shape, _scored(request, model, method), widths, scores)
    return kept * spread + max(working * spread, output)


def _scored(request: Request, model: Model, method: Method) -> int:
    """For how many tokens the output layer gives scores: a decoder's for each, another's for each example."""
    each = model.kind.every_token or (method.name == "pretrain" and not model.kind.images)
    return request.batch * (request.sequence if each else 1)


def _widths(request: Request, method: Method, known: Tables, end: str) -> Widths:
    # Frozen weights, and those that a host's optimizer sends in 16 bits, need no autocast.
    in_16_bits = method.weights or (method.host and request.precision == "mixed")
    form = "16bit" if in_16_bits else request.precision
    return Widths(known.whole(f"activation_bytes_{form}"), int(known.figure(f"stream_bytes_{form}").of(end)))


def _serving(request: Request, model: Model, count: int, known: Tables, end: str, weights: float) -> dict[str, float]:
    """The cached keys and values of all that is served at once, and one chunk of a prompt at work."""
    if model.shape is None:
        return {"activations": weights * known.figure("unknown_activations_share").of(end) / 5}
    tokens = request.batch * request.sequence
    chunk = min(tokens, known.whole("prefill_tokens"))
    width = known.whole("activation_bytes_pure16")
    layer = formulas.layer_activations(model.shape, chunk, chunk, Widths(width, width), fused=True)
    scores = model.shape.vocab * 4
    # What gives scores for one example only does not go on writing, so it keeps nothing for the next token.
    cache = formulas.kv_cache(model.shape, tokens if model.kind.every_token else 0, known.figure("kv_bytes").value)
    spread = known.figure("activation_spread").of(end)
    return {"kv_cache": formulas.sharded(cache, count), "activations": (layer * spread + scores) / count}


def _gib(mib: float) -> str:
    return f"{mib / _GIB:.1f} GiB"
