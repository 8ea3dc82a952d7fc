"""Reader of what the watchdog of torch's NCCL process groups prints: which operation each rank waited for in vain.

May live here: the layouts of those lines, and gathering ranks that say the same. Must not: what a difference means.
Thousands of ranks print alike, so one fact stands for all ranks at one operation, and only so many operations count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...facts import Fact, Scalar
from .emit import make
from .line import Line

READER = "watchdog"
# A job that disagrees on more operations than that disagrees.
_MOST = 32

_WAITED = re.compile(
    r"\[Rank (?P<rank>[0-9]{1,6})\] Watchdog caught collective operation timeout: WorkNCCL\("
    r"(?:SeqNum=(?P<seq>[0-9]{1,12}), )?OpType=(?P<op>[A-Z0-9_]{1,40})"
    r"(?:, NumelIn=(?P<size>[0-9]{1,20}), NumelOut=[0-9]{1,20}|, TensorShape=\[[0-9, ]{0,200}\])?"
    r", Timeout\(ms\)=(?P<timeout_ms>[0-9]{1,12})\)",
    re.ASCII,
)
_PROGRESS = re.compile(
    r"\[PG (?:ID )?(?P<group>[0-9]{1,6})(?: PG GUID [0-9]{1,9})?(?: ?\([^)]{0,80}\))? Rank (?P<rank>[0-9]{1,6})\]"
    r".{0,120}(?:detected by watchdog at work(?: sequence id)?|Timeout at NCCL work): (?P<at>[0-9]{1,12})"
    r"(?:,| PG status:) last enqueued (?:NCCL )?work: (?P<enqueued>[0-9]{1,12}), "
    r"last completed (?:NCCL )?work: (?P<completed>-?[0-9]{1,12})",
    re.ASCII,
)
_NUMBERS = frozenset({"seq", "timeout_ms", "at", "enqueued", "completed"})
# What tells two facts of a type apart.
_APART = {"collective": ("group", "seq", "op", "size"), "rank_progress": ("group", "at")}


@dataclass
class _Place:
    """An operation at which ranks wait."""

    line: int
    fields: Mapping[str, Scalar | None]
    ranks: set[int] = field(default_factory=set)


def read(lines: Sequence[Line], source: str) -> list[Fact]:
    """One fact for each operation at which ranks stopped, with the ranks that did."""
    progress = [(line, m) for line in lines if "last enqueued" in line.text and (m := _PROGRESS.search(line.text))]
    groups = _groups([m for _, m in progress])
    waited = [(line, m) for line in lines if "Watchdog caught" in line.text and (m := _WAITED.search(line.text))]
    stops = [("rank_progress", line, m.groupdict()) for line, m in progress]
    for line, m in waited:
        group = groups.get((m["rank"], m["seq"]), groups.get((None, m["seq"])))
        stops.append(("collective", line, {**m.groupdict(), "group": group}))
    return [_fact(kind, place, source) for kind in _APART for place in _places(kind, stops)]


def _groups(progress: Sequence[re.Match[str]]) -> dict[tuple[str | None, str | None], str | None]:
    """The process group of a rank at an operation; under no rank where all ranks at it are of one group."""
    found: dict[tuple[str | None, str | None], str | None] = {(m["rank"], m["at"]): m["group"] for m in progress}
    seen: dict[str, set[str]] = {}
    for match in progress:
        seen.setdefault(match["at"], set()).add(match["group"])
    found |= {(None, at): next(iter(groups)) for at, groups in seen.items() if len(groups) == 1}
    return found


def _places(kind: str, stops: Sequence[tuple[str, Line, dict[str, str | None]]]) -> list[_Place]:
    """The operations of one kind, each with all its ranks."""
    places: dict[tuple[str | None, ...], _Place] = {}
    for of, line, groups in stops:
        if of != kind:
            continue
        key = tuple(groups[name] for name in _APART[kind])
        if key not in places and len(places) < _MOST:
            places[key] = _Place(line.number, _values(groups))
        if key in places:
            places[key].ranks.add(int(groups["rank"] or 0))
    return list(places.values())


def _values(groups: Mapping[str, str | None]) -> dict[str, Scalar | None]:
    return {k: int(v) if k in _NUMBERS and v is not None else v for k, v in groups.items() if k != "rank"}


def _fact(kind: str, place: _Place, source: str) -> Fact:
    ranks: dict[str, Scalar | None] = {
        "rank": min(place.ranks),
        "ranks": len(place.ranks),
        "rank_list": spans(place.ranks),
    }
    grouped = {"grouped": place.fields["group"] is not None} if kind == "collective" else {}
    return make(kind, READER, source, place.line, {**place.fields, **ranks, **grouped})


def spans(numbers: set[int]) -> str:
    """Ranks as people write them: `0-2, 5`; at most a dozen spans."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    shown = [str(first) if first == last else f"{first}-{last}" for first, last in found[:12]]
    return ", ".join(shown) + (" ..." if len(found) > len(shown) else "")
