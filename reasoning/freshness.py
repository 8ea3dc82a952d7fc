"""Whether an answer rests on knowledge that may be out of date.

May live here: comparing what a report speaks of with the newest rows and the dates of the catalogs, by the entries of
freshness.yaml. Must not: which versions or catalogs there are (those are data), wording.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date

from ..facts import Fact
from ..knowledge.loader import Knowledge
from ..knowledge.versions import parse_version

# After this many days a report says that the catalogs it rests on are old.
FRESH_DAYS = 180


@dataclass(frozen=True, slots=True)
class Newer:
    """A version in the input that is newer than every row of its catalog."""

    what: dict[str, str]
    value: str
    newest: str
    day: str


def newer(knowledge: Knowledge, facts: Iterable[Fact]) -> list[Newer]:
    """The versions of the input that the knowledge does not reach."""
    given = list(facts)
    found: list[Newer] = []
    for entry in knowledge.freshness.values():
        type_name, _, field = entry["fact"].partition(".")
        newest = _newest(knowledge, entry["newest"])
        if newest is None:
            continue
        for value in dict.fromkeys(str(f.fields[field]) for f in given if f.type == type_name and field in f.fields):
            if _key(value, entry["part"]) > _key(newest, entry["part"]):
                found.append(Newer(entry["what"], value, newest, knowledge.retrieved.get(entry["catalog"], "")))
    return found


def old_catalogs(knowledge: Knowledge, types: Iterable[str], today: date) -> list[tuple[str, list[str], int]]:
    """The catalogs behind rows of these types that are too old: (day, catalogs, age in days), the oldest first."""
    behind = {knowledge.catalog_of[t] for t in types if t in knowledge.catalog_of}
    by_day: dict[str, list[str]] = {}
    for name in sorted(behind or knowledge.retrieved):
        by_day.setdefault(knowledge.retrieved.get(name, ""), []).append(name)
    return [(day, names, age) for day, names, age in _aged(by_day, today) if age > FRESH_DAYS]


def _aged(by_day: dict[str, list[str]], today: date) -> Iterator[tuple[str, list[str], int]]:
    for day, names in sorted(by_day.items()):
        try:
            yield day, names, (today - date.fromisoformat(day)).days
        except ValueError:
            continue


def _newest(knowledge: Knowledge, place: str) -> str | None:
    type_name, _, field = place.partition(".")
    values = {str(f[field]) for t, f in knowledge.static if t == type_name and field in f}
    return max(values, key=lambda v: _key(v, "release"), default=None)


def _key(version: str, part: str) -> tuple[int, ...]:
    """What of a version is compared; () where it is none, which is newer than nothing."""
    parts = parse_version(version)
    if parts is None:
        return ()
    numbers = [int(n) for n in parts.public.split(".") if n.isdigit()]
    return tuple(numbers[: 1 if part == "major" else 2])
