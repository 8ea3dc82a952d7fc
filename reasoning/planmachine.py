"""The power and the DataLoader workers of what a planning question is about.

May live here: applying the formulas to the machine's cards and cores, and to cards to choose between. Must not: a
formula (knowledge/formulas.py), any figure (data in `knowledge/facts`), any verdict.
"""

from __future__ import annotations

from typing import Any

from ..knowledge import formulas
from .planrequest import Request
from .plantables import ENDS, Card, Tables


def power(request: Request, known: Tables) -> list[dict[str, Any]]:
    """The power of the machine's cards, where it is known of all of them."""
    watts = [c.number("tdp_w") for c in request.machine]
    if not watts or None in watts:
        return []
    total = sum(w * c.count for w, c in zip(watts, request.machine, strict=True) if w is not None)
    rest, headroom = known.figure("rest_w"), known.figure("psu_headroom")
    low, middle, high = (formulas.power_supply(total, rest.of(e), headroom.of(e)) for e in ENDS)
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


def option_power(card: Card, known: Tables) -> dict[str, int]:
    """The power in W that cards of one kind draw together, and the supply for a machine with them."""
    watts = card.number("tdp_w")
    if watts is None:
        return {}
    total = watts * card.count
    supply = formulas.power_supply(total, known.figure("rest_w").value, known.figure("psu_headroom").value)
    return {"power_w": total, "supply_w": supply}


def workers(request: Request, known: Tables) -> dict[str, Any]:
    """The DataLoader workers of each training process, where the cores are known."""
    cores = request.numbers.get("cpu_cores")
    if not cores:
        return {"cores_known": False}
    processes = max(
        1,
        sum(c.count for c in request.machine),
        request.numbers.get("gpu_count", 0),
        request.numbers.get("gpu_number", 0),
    )
    most = formulas.workers(cores, processes, known.whole("reserved_cores"))
    least = max(1, most // 2)
    sizes = {"cores": cores, "processes": processes, "workers": most, "low": least, "high": most}
    return {"cores_known": True, **sizes}
