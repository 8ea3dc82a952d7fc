"""Changes of the machine as data: what is written, what it does to the facts, which values are worth trying.

May live here: reading change texts, their effects on facts, and candidate values from the catalogs. Must not: any
change by name (`knowledge/changes.yaml`), the engine's run, comparisons.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..engine.ir import Ref
from ..errors import InputError
from ..facts import Fact, Provenance, Scalar
from ..knowledge.loader import Knowledge
from ..knowledge.problems import did_you_mean
from ..messages import Message
from ..report.model import Lang
from .fixes import Offer, applied, offers
from .session import Session, fill, slots


class ChangeError(InputError):
    """A change that cannot be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change: its name in the catalog, the part it is about (a variable's name) and the value."""

    name: str
    part: str = ""
    value: str = ""

    def __str__(self) -> str:
        """As people write it."""
        head = f"{self.name}:{self.part}" if self.part else self.name
        return f"{head}={self.value}" if self.value else head

    def title(self, session: Session, lang: Lang) -> str:
        """What it is, in words; of a fix its own title with the values in it."""
        entry = session.knowledge.changes[self.name]
        if entry["fixes"]:
            text: str = session.knowledge.fixes[self.part]["title"][lang]
            return fill(text, offer_of(session, self.part).bindings)
        return str(entry["title"][lang]).format(value=self.value, part=self.part)

    def risk(self, knowledge: Knowledge, lang: Lang) -> str:
        """What it costs or may break; empty where nothing is known."""
        entry = knowledge.changes[self.name]
        told = knowledge.fixes[self.part].get("risks", entry) if entry["fixes"] else entry.get("risk", {})
        return str(told.get(lang, ""))

    def cost(self, knowledge: Knowledge) -> int:
        """Its rank of cost."""
        return int(knowledge.changes[self.name]["cost"])


def read_change(text: str, knowledge: Knowledge) -> Change:
    """A change as it is written. Raises ChangeError with the nearest name or the values that there are."""
    head, equals, value = text.partition("=")
    name, _, part = head.strip().partition(":")
    value = value.strip().lstrip("=").strip()
    entry = knowledge.changes.get(name)
    if entry is None:
        raise ChangeError("input.unknown_change", name=name, hint=did_you_mean(name, knowledge.changes))
    wants_part = entry["fixes"] or _uses(entry, "{part}")
    wants_value = bool(entry["choices"]) or _uses(entry, "{value}")
    if wants_part != bool(part):
        fault = "input.change_part" if wants_part else "input.change_no_part"
        raise ChangeError(fault, text=text, name=name, part=part)
    if wants_value and not (equals and value):
        raise ChangeError("input.change_value", text=text, head=head)
    if entry["choices"] and value not in entry["choices"]:
        hint = did_you_mean(value, entry["choices"])
        wrong = Message("fault.one_of", values=[*entry["choices"]], hint=hint)
        raise ChangeError("input.change", text=text, fault=wrong)
    if entry["fixes"] and part not in knowledge.fixes:
        wrong = Message("fault.no_fix_named", name=part, hint=did_you_mean(part, knowledge.fixes))
        raise ChangeError("input.change", text=text, fault=wrong)
    change = Change(name, part, value if wants_value else "")
    problem = None if entry["choices"] else _value_problem(change, entry, knowledge)
    if problem:
        raise ChangeError("input.change", text=text, fault=problem)
    return change


def _uses(entry: Mapping[str, Any], slot: str) -> bool:
    return slot in str(entry["effects"])


def _value_problem(change: Change, entry: Mapping[str, Any], knowledge: Knowledge) -> Message | None:
    type_name, _, field = entry.get("field", "").partition(".")
    if not type_name:
        return None
    problem = knowledge.vocabulary.check(type_name, field, change.value)
    if problem:
        return problem
    kind = knowledge.vocabulary.types[type_name].fields[field].type
    if kind == "gpu_name" and knowledge.vocabulary.identify(change.value) is None:
        products = [str(f["product"]) for t, f in knowledge.static if t == "gpu_model"]
        return Message("fault.no_product", hint=did_you_mean(change.value, products))
    return None


def changed(
    facts: Iterable[Fact], changes: Sequence[Change], knowledge: Knowledge, origin: str = "what-if "
) -> list[Fact]:
    """The facts as they would be after the changes, in their order.

    Several changes of one thing (two cards) stand together: only the first takes away what was there. origin: stands
    before the change in the provenance of the facts that it states.
    """
    now = list(facts)
    made: Counter[tuple[str, str]] = Counter()
    for change in changes:
        entry = knowledge.changes[change.name]
        if entry["fixes"]:
            continue  # its effects depend on what the rules matched
        effects = entry["choices"].get(change.value) or entry["effects"]
        number = made[change.name, change.part]
        made[change.name, change.part] += 1
        filler = _Filler(change, number, Provenance("user", f"{origin}{change}"))
        for effect in effects:
            now = filler.applied(now, effect, knowledge)
        touched = None if entry["messages"] == "all" else messages_of(_types(effects), knowledge)
        now = [f for f in now if f.type != "error" or (touched is not None and f.fields.get("kind") not in touched)]
    return now


def after_changes(session: Session, changes: Sequence[Change]) -> Session:
    """The session of the machine as it would be. Raises ChangeError for a fix that the rules do not offer."""
    facts: Iterable[Fact] = session.facts
    for change in changes:
        if session.knowledge.changes[change.name]["fixes"]:
            facts = applied(offer_of(session, change.part), session.knowledge, facts)
    return Session(session.knowledge, changed(facts, changes, session.knowledge), session.engine)


def offer_of(session: Session, fix: str) -> Offer:
    """The offer of a fix with what the rules matched for it."""
    for row in session.rows("fix_offer", fix=fix):
        for offer in offers(session, str(session.fields(row)["cause"])):
            if offer.fix == fix:
                return offer
    raise ChangeError("input.fix_not_offered", fix=fix)


def added_types(change: str, knowledge: Knowledge) -> frozenset[str]:
    """The types of the facts that a change states anew."""
    entry = knowledge.changes[change]
    return _types([e for effects in (entry["effects"], *entry["choices"].values()) for e in effects])


def _types(effects: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The types of the facts that effects add; of those that they remove where they add none."""
    added = {t for e in effects for t in e.get("add", ())}
    return frozenset(added or {t for e in effects for t in e.get("remove", ())})


@functools.lru_cache(maxsize=64)
def messages_of(types: frozenset[str], knowledge: Knowledge) -> frozenset[str]:
    """The kinds of messages that a change of these facts may make void.

    Those that a cause explains for which some fix changes facts of these types; other messages stay unexplained.
    """
    causes = {
        cause
        for fix in knowledge.fixes.values()
        if types & {t for e in fix["effects"] for t in (*e.get("add", ()), *e.get("remove", ()))}
        for cause in fix["causes"]
    }
    kinds = {k for s in knowledge.symptoms.values() if causes & set(s["causes"]) for k in s["errors"]}
    for rule in knowledge.ir:
        if any(c.type == "evidence" and c.fields.get("cause") in causes for c in rule.conclusions):
            for test in (t for p in rule.patterns if p.type == "error" for t in p.tests if t.field == "kind"):
                kinds |= {str(v) for v in (test.value if isinstance(test.value, tuple) else (test.value,))}
    return frozenset(kinds)


@dataclass(frozen=True, slots=True)
class _Filler:
    """Applies the effects of one change; number: how many changes of the same thing came before it."""

    change: Change
    number: int
    provenance: Provenance

    def applied(self, facts: list[Fact], effect: Mapping[str, Any], knowledge: Knowledge) -> list[Fact]:
        if "remove" in effect and not self.number:
            ((type_name, wanted),) = effect["remove"].items()
            filled = {k: self._fill(v) for k, v in wanted.items()}
            facts = [f for f in facts if f.type != type_name or any(f.fields.get(k) != v for k, v in filled.items())]
        if "add" in effect:
            ((type_name, fields),) = effect["add"].items()
            typed = {k: knowledge.vocabulary.coerce(type_name, k, self._fill(v)) for k, v in fields.items()}
            facts = [*facts, Fact(type_name, typed, (self.provenance,))]
        return facts

    def _fill(self, value: Scalar) -> Scalar:
        if not isinstance(value, str):
            return value
        return self.number if value == "{number}" else value.format(value=self.change.value, part=self.change.part)


# --- values worth trying ----------------------------------------------------------------------------------------------


def values_in(session: Session, rows: Iterable[int]) -> dict[str, list[str]]:
    """For each change, the values that the proofs of these rows compare the machine with, the highest first.

    A proof that says "CUDA 13.2 needs driver 580" holds a row with the value 580 in a field that the change names among
    its values; only fields that the rule of the step looks at count.
    """
    sources = _sources(session.knowledge)
    found: dict[str, list[str]] = {}
    for type_name, field, value in _compared(session, rows):
        for name, where in sources.get((type_name, field), ()):
            if all(value.get(k) == v for k, v in where.items()):
                told = str(value[field])
                if told not in found.setdefault(name, []):
                    found[name].append(told)
    new = {n: [t for t in v if t not in current(session, n)] for n, v in found.items()}
    return {n: sorted(v, key=_version_key, reverse=True) for n, v in new.items() if v}


def changeable(name: str, value: str, knowledge: Knowledge) -> Change:
    """The change of that name to a value, or of that part where it takes no value."""
    return Change(name, "", value) if _uses(knowledge.changes[name], "{value}") else Change(name, value)


def concluded_values(session: Session, *, whole: bool) -> list[Change]:
    """The changes whose values the rules conclude: the driver branch to install, the builds that are chosen.

    whole: those written from several fields too, which are about what is installed.
    """
    found: dict[Change, None] = {}
    types = session.knowledge.vocabulary.types
    for name, entry in session.knowledge.changes.items():
        for source in entry["values"] if entry["how_to"] else ():
            many = session.knowledge.sentences.get(source["type"], {}).get("many") and not source.get("value")
            if types[source["type"]].kind != "derived" or many or (source.get("value") and not whole):
                continue
            rows = [session.fields(i) for i in session.memory.of_type(source["type"])]
            for fields in sorted(rows, key=lambda f: str(f.get("mode", "")), reverse=True):  # as things are comes first
                if source["field"] in fields:
                    value = (source.get("value") or f"{{{source['field']}}}").format_map(fields)
                    if value not in current(session, name):
                        found[Change(name, "", value)] = None
    return list(found)


def current(session: Session, name: str) -> set[str]:
    """The values that the machine has of what a change changes, as they are printed and as the catalog knows them."""
    type_name, _, field = session.knowledge.changes[name].get("field", "").partition(".")
    told = [str(f.fields[field]) for f in session.facts if f.type == type_name and field in f.fields]
    kind = session.knowledge.vocabulary.types[type_name].fields[field].type if type_name else ""
    products = (session.knowledge.vocabulary.identify(t) for t in told) if kind == "gpu_name" else ()
    return {*told, *(p for p in products if p)}


def _version_key(text: str) -> tuple[int, ...]:
    return tuple(int(p) for p in text.replace("+", ".").split(".") if p.isdigit())


def _sources(knowledge: Knowledge) -> dict[tuple[str, str], list[tuple[str, Mapping[str, Scalar]]]]:
    found: dict[tuple[str, str], list[tuple[str, Mapping[str, Scalar]]]] = {}
    for name, entry in knowledge.changes.items():
        for source in entry["values"] if entry["how_to"] else ():
            found.setdefault((source["type"], source["field"]), []).append((name, source["where"]))
    return found


def _compared(session: Session, rows: Iterable[int]) -> Iterable[tuple[str, str, Mapping[str, Scalar]]]:
    """(type, field, row) of every field that a step in the proofs of the rows tests, joins or says."""
    seen: set[int] = set()
    waiting = list(rows)
    while waiting:
        row = waiting.pop()
        if row in seen:
            continue
        seen.add(row)
        firing = session.because(row)
        if firing is None:
            continue
        rule = session.knowledge.patterns[firing.rule]
        positive = [p for p in rule.patterns if not p.negated]
        bound = {p.alias: i for p, i in zip(positive, firing.premises, strict=True)}
        looked: set[tuple[str, str]] = set()
        for pattern in rule.patterns:
            looked |= {(pattern.alias, t.field) for t in pattern.tests}
            looked |= {(pattern.alias, j.field) for j in pattern.joins} | {(j.alias, j.other) for j in pattern.joins}
        text = session.knowledge.rules.get(rule.group, {}).get("because", {}).get("en", "")
        looked |= set(slots(text))
        looked |= {(v.alias, v.field) for c in rule.conclusions for v in c.fields.values() if isinstance(v, Ref)}
        for alias, field in sorted(looked):
            base = field.partition("__")[0].partition(".")[0]
            if alias in bound and base in session.fields(bound[alias]):
                yield session.memory.rows[bound[alias]][0], base, session.fields(bound[alias])
        waiting += firing.premises
