"""How the work of a planning question is to be done, and what the question is about.

May live here: method, precision, optimizer, batch and sequence, with a note of what was assumed; the topics. Must not:
any figure or phrase (data in `knowledge/facts`), any estimate, any verdict.
"""

from __future__ import annotations

from .planrequest import PLAN_GOAL, Request, number_in
from .plantables import Method, Tables

_OPTIMIZER = "optimizer_"


def settle(request: Request, known: Tables) -> None:
    """Sets how the work is done; what was not said is noted as assumed."""
    wanted = _wanted(request, known)
    request.wanted = tuple(method.name for method in wanted)
    last = wanted[-1]
    unsaid = last.training and not {m.said for m in wanted} & request.kinds
    request.method = "training" if unsaid else last.name.partition("_")[0]
    _set_choices(request)
    _set_sizes(request, known, last)
    request.assumed += _assumptions(request, last)


def _wanted(request: Request, known: Tables) -> list[Method]:
    """The methods that are asked for: serving first, then the first kind of training that was named."""
    kinds, methods = request.kinds, known.methods.values()
    trained = [m for m in methods if m.training and m.said in kinds]
    if not trained and {"wants_training", "wants_offload"} & kinds:
        trained = [next(m for m in methods if m.offloaded)]
    if trained and trained[0].offloaded and "wants_offload" in kinds:
        trained = [known.methods[trained[0].offloaded]]
    if trained and "wants_inference" not in kinds:
        return trained[:1]
    served = [m for m in methods if not m.training]
    published = next((m for m in served if request.model and m.name == request.model.published), served[-1])
    return [next((m for m in served if m.said in kinds), published), *trained[:1]]


def _set_choices(request: Request) -> None:
    kinds = request.kinds
    request.precision = "fp32" if "wants_fp32" in kinds else "pure16" if "wants_pure16" in kinds else "mixed"
    named = sorted(kind for kind in kinds if kind.startswith(_OPTIMIZER))
    # A name that holds another's ("8-bit AdamW") is the longer one.
    request.optimizer = max(named, key=len, default=f"{_OPTIMIZER}adamw").removeprefix(_OPTIMIZER)
    request.shard = "wants_ddp" not in kinds
    usual = request.model is None or request.model.kind.checkpointed
    request.checkpointing = "no_checkpointing" not in kinds and (usual or "wants_checkpointing" in kinds)


def _set_sizes(request: Request, known: Tables, method: Method) -> None:
    numbers, goals, model = request.numbers, request.goals, request.model
    images = model is not None and model.kind.images
    request.batch = numbers.get("batch_size") or int(number_in(goals.get("batch_size")) or 0)
    if not request.batch:
        request.batch = known.whole("default_batch_images" if images and method.training else "default_batch")
        request.assumed.append("images" if images else "batch")
    if images and model is not None:
        request.sequence = model.tokens
        return
    request.sequence = (
        numbers.get("sequence_k", 0) * 1024 or numbers.get("sequence_tokens", 0)
        or int(number_in(goals.get("context_length")) or 0)
    )  # fmt: skip
    if not request.sequence:
        name = "default_sequence_training" if method.training else "default_sequence_inference"
        request.sequence = known.whole("long_sequence" if "wants_long_context" in request.kinds else name)
        if model is not None and model.context:
            request.sequence = min(request.sequence, model.context)
        request.assumed.append("sequence")


def _assumptions(request: Request, method: Method) -> list[str]:
    kinds, model = request.kinds, request.model
    training = (
        ("optimizer", request.optimizer == "adamw" and f"{_OPTIMIZER}adamw" not in kinds),
        ("precision", request.precision == "mixed" and "wants_mixed" not in kinds),
        ("checkpointing", request.checkpointing and "wants_checkpointing" not in kinds),
        ("shard", request.shard and "wants_fsdp" not in kinds and sum(c.count for c in request.machine) > 1),
    )
    found = [name for name, holds in training if method.training and holds]
    if model is not None and model.typical:
        found.append("typical")
    if model is not None and model.shape is None and not model.saved:
        found.append("shape")
    return found


def topics(request: Request) -> tuple[str, ...]:
    """What is asked: whether it fits, how many cards, which card, power, workers ..."""
    kinds = request.kinds
    explicit = PLAN_GOAL in request.goals
    several = len({c.product for c in request.machine}) > 1
    found = [
        topic
        for topic, kind, ready in (
            ("power", "asks_power", bool(request.machine)),
            ("workers", "asks_workers", True),
            ("place", "asks_place", True),
            ("mixed", "wants_mixed_gpus", several),
        )
        if kind in kinds and ready
    ]
    if explicit:
        found += ["mixed"] if several and "mixed" not in found else []
        found += ["power"] if "psu_w" in request.numbers and request.machine and "power" not in found else []
        found += ["workers"] if "cpu_cores" in request.numbers and "workers" not in found else []
    if request.options:
        found.append("choice" if not request.budget and "asks_budget" not in kinds else "purchase")
    asked = explicit or bool(
        kinds
        & {
            *("asks_feasible", "asks_memory", "asks_count", "wants_training"),
            *("wants_inference", "asks_purchase", "asks_place"),
        }
    )
    whole = "mixed" not in found or explicit or "asks_feasible" in kinds
    if request.model and asked and not request.options and whole:
        counted = "asks_count" in kinds and request.machine and not several
        found.append("count" if counted else "capacity")
    return tuple(found)
