"""Merging what several sources say of one thing into one fact, and naming what they disagree on.

May live here: identity and compatibility of facts, by the vocabulary. Must not: reasoning about their content.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..facts import Fact, Provenance, Scalar
from ..knowledge.vocabulary import TypeSpec, Vocabulary

# More contradictions about one thing say nothing new, and a hostile text could hold a million.
MAX_CONFLICTS = 16

_Key = tuple[tuple[str, Scalar], ...]


def merge(facts: Iterable[Fact], vocabulary: Vocabulary) -> list[Fact]:
    """Facts of one identity that do not contradict each other become one; contradictions stay apart and are named.

    A `conflict` fact (subject, field, first, second) is added for each field on which two sources of one identity
    differ; a fact that contradicts more than MAX_CONFLICTS others is left out.
    """
    vocabulary = replace(vocabulary, identify=functools.lru_cache(maxsize=1024)(vocabulary.identify))
    merged: list[Fact] = []
    places: dict[str, _Places] = {}
    conflicts: list[Fact] = []
    for fact in facts:
        spec = vocabulary.types.get(fact.type)
        if spec is None:
            continue
        seen = places.setdefault(fact.type, _Places(spec))
        near = seen.near(fact)
        place = next((i for i in near if _fits(merged[i], fact, spec, vocabulary)), None)
        if place is not None:
            merged[place] = _union(merged[place], fact, vocabulary)
        else:
            found = _conflicts(fact, [merged[i] for i in near], spec, vocabulary)
            if len(found) > MAX_CONFLICTS:
                continue
            conflicts += found
            place = len(merged)
            merged.append(fact)
        seen.note(place, merged[place])
    return [*merged, *_distinct(conflicts)]


class _Places:
    """Where the merged facts of one type stand, so that a fact is compared with those only that may be the same thing:
    a log may hold thousands of facts of a type."""

    def __init__(self, spec: TypeSpec) -> None:
        self._identity = spec.identity
        self._all: dict[int, None] = {}
        self._bare: dict[object, int] = {}  # state no identity: the same thing only where they say the same
        self._whole: dict[_Key, dict[int, None]] = {}
        self._shared: dict[_Key, dict[int, None]] = {}  # by each identity field that a fact states
        self._partial: dict[_Key, dict[int, None]] = {}  # of those, the facts that do not state every one

    def near(self, fact: Fact) -> list[int]:
        """The places of the facts that may have the fact's identity, ascending."""
        if not self._identity:
            return list(self._all)
        key = self._key(fact)
        if not key:
            place = self._bare.get(fact.key())
            return [] if place is None else [place]
        whole = len(key) == len(self._identity)
        found = dict(self._whole.get(key, ())) if whole else {}
        for part in key:
            found.update((self._partial if whole else self._shared).get((part,), ()))
        return sorted(found)

    def note(self, place: int, fact: Fact) -> None:
        """The fact at a place is new, or says more now."""
        self._all[place] = None
        key = self._key(fact)
        if not key:
            self._bare.setdefault(fact.key(), place)
            return
        whole = len(key) == len(self._identity)
        if whole:
            self._whole.setdefault(key, {})[place] = None
        for part in key:
            self._shared.setdefault((part,), {})[place] = None
            if whole:
                self._partial.get((part,), {}).pop(place, None)
            else:
                self._partial.setdefault((part,), {})[place] = None

    def _key(self, fact: Fact) -> _Key:
        """The identity fields that the fact states, with their values."""
        return tuple((n, _identity(fact.fields[n])) for n in self._identity if n in fact.fields)


def _distinct(facts: Sequence[Fact]) -> list[Fact]:
    seen: dict[object, Fact] = {}
    for fact in facts:
        seen.setdefault(fact.key(), fact)
    return list(seen.values())


def _same_identity(first: Fact, second: Fact, spec: TypeSpec) -> bool:
    """Every identity field that both state is equal, and at least one is stated by both (or there is none to state)."""
    shared = [n for n in spec.identity if n in first.fields and n in second.fields]
    if any(_identity(first.fields[n]) != _identity(second.fields[n]) for n in shared):
        return False
    return bool(shared) or not spec.identity or not any(n in f.fields for n in spec.identity for f in (first, second))


def _identity(value: Scalar) -> Scalar:
    """Identities are compared without regard to case: bus ids are printed in both."""
    return value.lower() if isinstance(value, str) else value


def _fits(known: Fact, fact: Fact, spec: TypeSpec, vocabulary: Vocabulary) -> bool:
    if not _same_identity(known, fact, spec):
        return False
    if not any(n in fact.fields for n in spec.identity) and spec.identity and known.key() != fact.key():
        return False
    return not _differences(known, fact, spec, vocabulary)


def _differences(known: Fact, fact: Fact, spec: TypeSpec, vocabulary: Vocabulary) -> list[str]:
    return [
        n
        for n in fact.fields
        if n in known.fields
        and n not in spec.identity
        and not _compatible(spec.fields[n].type, known.fields[n], fact.fields[n], vocabulary)
    ]


def _compatible(kind: str, first: Scalar, second: Scalar, vocabulary: Vocabulary) -> bool:
    if first == second:
        return True
    if kind == "version":
        return _longer_version(str(first), str(second)) is not None
    if kind == "gpu_name":
        return _same_name(str(first), str(second), vocabulary)
    # Readings of a moment (memory in use, temperature) differ between two looks without contradiction.
    return kind == "int"


def _longer_version(first: str, second: str) -> str | None:
    """The more exact of two versions that agree as far as the shorter goes: 570, 570.124; 2.6.0, 2.6.0+cu124."""
    short, long = sorted((first, second), key=len)
    return long if long.startswith(short) and (len(long) == len(short) or long[len(short)] in ".+") else None


def _same_name(first: str, second: str, vocabulary: Vocabulary) -> bool:
    one, two = vocabulary.identify(first), vocabulary.identify(second)
    if one and two:
        return one == two
    cut = [n.rstrip(". ") for n in (first, second)]
    return cut[0].startswith(cut[1]) or cut[1].startswith(cut[0])


def _union(known: Fact, fact: Fact, vocabulary: Vocabulary) -> Fact:
    fields = dict(known.fields)
    spec = vocabulary.types[fact.type]
    for name, value in fact.fields.items():
        fields[name] = _better(spec.fields[name].type, fields[name], value, vocabulary) if name in fields else value
    own = [_narrowed(p, known) for p in known.provenance]
    other = [_narrowed(p, fact) for p in fact.provenance]
    return Fact(known.type, fields, tuple(dict.fromkeys((*own, *other))))


def _narrowed(provenance: Provenance, fact: Fact) -> Provenance:
    """The same place, with the fields that it states made explicit now that other places state others."""
    return provenance if provenance.fields else replace(provenance, fields=tuple(fact.fields))


def _better(kind: str, first: Scalar, second: Scalar, vocabulary: Vocabulary) -> Scalar:
    if kind == "version":
        return _longer_version(str(first), str(second)) or first
    if kind == "gpu_name":
        return max(
            str(first),
            str(second),
            key=lambda n: (vocabulary.identify(n) is not None, not n.rstrip().endswith("..."), len(n)),
        )
    return first


def _conflicts(fact: Fact, known: Sequence[Fact], spec: TypeSpec, vocabulary: Vocabulary) -> list[Fact]:
    found = []
    for other in known:
        if spec.identity and not any(n in fact.fields for n in spec.identity):
            continue
        if not _same_identity(other, fact, spec):
            continue
        for name in _differences(other, fact, spec, vocabulary):
            first, second = sorted((str(other.fields[name]), str(fact.fields[name])))
            found.append(
                Fact(
                    "conflict",
                    {"subject": fact.type, "field": name, "first": first, "second": second},
                    (*other.provenance[:1], *fact.provenance[:1]),
                )
            )
    return found
