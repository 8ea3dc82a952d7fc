"""From a session with a planning question to the report's plan: verdict, numbers, choices, claims and reasons.

May live here: collecting what the rules of area planning concluded and what the estimates say. Must not: any verdict of
its own, any figure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from ..facts import Scalar
from ..report.messages import Words
from ..report.model import Lang, Plan, Reason
from .planning import request_of
from .planrequest import Request
from .session import Session

# The least favourable verdict of several stands for the whole.
_ORDER: tuple[Literal["no", "conditional", "yes"], ...] = ("no", "conditional", "yes")
_PARTS = ("weights", "gradients", "optimizer", "activations", "kv_cache", "context", "margin")
_LORA = ("lora", "qlora")
_FULL = ("full", "pretrain")
_MIB = 1024
_MAX_REASONS = 14
_MAX_SENTENCES = 4

_Row = Mapping[str, Scalar]


def plan_of(session: Session, lang: Lang) -> Plan | None:
    """The plan of a session, None where nothing was asked to be planned."""
    verdicts = [str(row["verdict"]) for row in _rows(session, "plan_verdict")]
    if not verdicts:
        return None
    words = Words(lang)
    request = request_of(session.facts, session.knowledge)
    estimates = _rows(session, "estimate")
    numbers, ranges = _memory(estimates)
    for more, spans in (_counts(session, request), _power(session), _workers(session)):
        numbers |= more
        ranges |= spans
    choices = tuple(_choices(session, request))
    numbers |= _within_budget(session, choices)
    return Plan(
        verdict=next(v for v in _ORDER if v in verdicts),
        choices=choices,
        numbers=numbers,
        ranges=ranges,
        claims=tuple(sorted({str(row["claim"]) for row in _rows(session, "plan_claim")})),
        reasons=tuple(
            [
                *_said(session, choices, lang),
                *_noted(session, choices, lang),
                *_parts(estimates, words),
                *_assumed(request, words),
            ][:_MAX_REASONS]
        ),
    )


def _within_budget(session: Session, choices: Sequence[str]) -> dict[str, int | float]:
    """How many of the first choice the budget buys."""
    found = {str(row["label"]): int(row["affordable"]) for row in _rows(session, "plan_card") if "affordable" in row}
    return {"cards_affordable": found[choices[0]]} if choices and found.get(choices[0]) else {}


def _rows(session: Session, type_name: str) -> list[_Row]:
    return [session.fields(i) for i in session.memory.of_type(type_name)]


def _memory(estimates: Sequence[_Row]) -> tuple[dict[str, int | float], dict[str, tuple[float, float]]]:
    """The memory over all cards, of what was asked and of the usual methods of training."""
    numbers: dict[str, int | float] = {}
    ranges: dict[str, tuple[float, float]] = {}

    def note(name: str, row: _Row) -> None:
        numbers.setdefault(name, _gib(row["total_mib"]))
        ranges.setdefault(name, (_gib(row["total_low_mib"]), _gib(row["total_high_mib"])))

    for row in _in_order(estimates):
        if row["wanted"]:
            note("vram_needed_gib", row)
        if row["method"] in _FULL:
            note("full_ft_vram_gib", row)
        if row["method"] in _LORA:
            note(f"{row['method']}_vram_gib", row)
        if row["wanted"] and "ram_mib" in row:
            numbers["cpu_ram_gib"] = _gib(row["ram_mib"])
            ranges["cpu_ram_gib"] = (_gib(row["ram_low_mib"]), _gib(row["ram_high_mib"]))
    return numbers, ranges


def _in_order(estimates: Sequence[_Row]) -> list[_Row]:
    """What was asked first; the engine keeps no order."""
    return sorted(estimates, key=lambda r: (not r["wanted"], str(r["method"]), str(r["option"])))


def _counts(session: Session, request: Request) -> tuple[dict[str, int | float], dict[str, tuple[float, float]]]:
    """How many cards the method takes, where it was asked or those named are too few."""
    asked = "count" in request.topics
    found = (r for r in _rows(session, "plan_count") if r["found"] and (asked or r["more"]))
    needed = next((int(r["cards"]) for r in found if r["method"] == request.wanted[-1]), None)
    return ({} if needed is None else {"cards_needed": needed}), {}


def _power(session: Session) -> tuple[dict[str, int | float], dict[str, tuple[float, float]]]:
    numbers: dict[str, int | float] = {}
    ranges: dict[str, tuple[float, float]] = {}
    for row in _rows(session, "plan_power"):
        numbers |= {"gpu_power_sum_w": int(row["gpu_sum_w"]), "psu_w_min": int(row["psu_min_w"])}
        ranges["psu_w_min"] = (int(row["psu_low_w"]), int(row["psu_high_w"]))
        if "limit_w" in row and int(row["psu_w"]) < int(row["psu_min_w"]):
            numbers["power_limit_w"] = int(row["limit_w"])
    return numbers, ranges


def _workers(session: Session) -> tuple[dict[str, int | float], dict[str, tuple[float, float]]]:
    known = [row for row in _rows(session, "plan_workers") if row["cores_known"]]
    if not known:
        return {}, {}
    row = known[0]
    return {"num_workers": int(row["workers"])}, {"num_workers": (int(row["low"]), int(row["high"]))}


def _choices(session: Session, request: Request) -> list[str]:
    """The options, the least beaten first; cards without a figure to compare come last."""
    losses = Counter(str(row["loser"]) for row in _rows(session, "plan_beats"))
    wins = Counter(str(row["winner"]) for row in _rows(session, "plan_beats"))
    counted = [str(r["label"]) for r in _rows(session, "plan_count") if r["found"]]
    if "count" in request.topics:
        return counted
    names = [card.label for card in request.options]
    return sorted(names, key=lambda n: (losses[n] - wins[n], names.index(n)))


def _parts(estimates: Sequence[_Row], words: Words) -> list[Reason]:
    """How the first estimate of each wanted or training method is made up."""
    reasons: dict[str, Reason] = {}
    for row in _in_order(estimates):
        method = str(row["method"])
        if method in reasons:
            continue
        parts = [
            words("plan.part", name=words(f"plan.part.{part}"), size=_shown(row[f"{part}_mib"]))
            for part in _PARTS
            if int(row[f"{part}_mib"]) > 0
        ]
        low, high = (_shown(row[f"{end}_mib"]) for end in ("low", "high"))
        reasons[method] = Reason(
            text=words(
                "plan.parts", method=words(f"plan.method.{method}"), parts=words("list.and").join(parts),
                need=str(row["need"]), low=low, high=high,
            )
        )  # fmt: skip
    return list(reasons.values())


def _said(session: Session, choices: Sequence[str], lang: Lang) -> list[Reason]:
    """Why the first choice is ahead of the others, the nearest first: the sentences of the rules that compare them."""
    rows = [row for row in session.memory.of_type("plan_beats") if session.fields(row)["winner"] in choices[:1]]
    return _sentences(session, sorted(rows, key=lambda row: choices.index(str(session.fields(row)["loser"]))), lang)


def _noted(session: Session, choices: Sequence[str], lang: Lang) -> list[Reason]:
    """What is to know beside the answer: of the question first, then of the choices in their order."""
    places = {"": -1} | {label: place for place, label in enumerate(choices)}

    def place(row: int) -> tuple[int, str]:
        fields = session.fields(row)
        return places.get(str(fields.get("about", "")), len(choices)), str(fields["kind"])

    return _sentences(session, sorted(session.memory.of_type("plan_note"), key=place), lang)


def _sentences(session: Session, rows: Sequence[int], lang: Lang) -> list[Reason]:
    """What the rules say that concluded these rows; one sentence once, the first few."""
    found: dict[str, Reason] = {}
    for row in rows:
        firing = session.because(row)
        if firing is not None:
            text = session.rule_text(firing.rule, "because", session.bindings(firing), lang)
            found.setdefault(text, Reason(text=text))
    return list(found.values())[:_MAX_SENTENCES]


def _assumed(request: Request, words: Words) -> list[Reason]:
    """What was not said and taken to be usual."""
    values = {
        "batch": request.batch,
        "sequence": request.sequence,
        "model": request.model.name if request.model else "",
    }
    settings = [words(f"plan.assumed.{name}", **values) for name in request.assumed if request.model]
    cards = [
        words("plan.assumed.card", product=card.product, member=card.assumed, size=_shown(card.fields["vram_mib"]))
        for card in request.cards
        if card.assumed
    ]
    return [Reason(text=text) for text in (*cards, *settings)]


def _gib(mib: Scalar) -> float:
    return round(int(mib) / _MIB, 1)


def _shown(mib: Scalar) -> str:
    return f"{int(mib) / _MIB:.1f} GiB"
