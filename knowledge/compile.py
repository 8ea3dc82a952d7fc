"""From rule and fix files to the engine's IR.

May live here: the meaning of the rule language (patterns, tests, references, conclusions). Must not: loading of files,
evaluation, and any name of a fact type except the few that the language itself concludes (evidence, fix_offer, ...).

The language. `when` maps aliases to patterns: `{type: {field: test}}` or `{not: {type: {field: test}}}`; a key that
begins with `any_of` holds a list of such maps, each an alternative. A test is a value (equality), a reference
`$alias.field`, or a map of `below | at_most | above | at_least | not` (value or reference), `any_of | none_of`
(values), `known: true`. A field may name a part: `version.local`, `name.product`, `sm.major`. Versions compare as
versions, without their local part. Arithmetic stands in the vocabulary, as computed fields (`error.obtainable_mib` is
free_mib + reserved_mib), made by the functions of `functions.py`; a rule compares them like any other field.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..engine.ir import Conclusion, Join, Pattern, Ref, Rule, Test
from ..facts import Scalar
from ..messages import Message
from .problems import did_you_mean
from .versions import parse_version
from .vocabulary import SUBFIELDS, Vocabulary

_REF = re.compile(r"\$([a-z_][a-z0-9_]*)\.([a-z0-9_]+(?:\.[a-z0-9_]+)?)\Z")
_ORDER = {"below": "lt", "at_most": "le", "above": "gt", "at_least": "ge"}
_ALIAS = re.compile(r"[a-z_][a-z0-9_]*\Z")
_ANY_OF = "any_of"
_SUPPORT = ("decisive", "strong", "weak")
EVIDENCE_ALIAS = "e_"


class LanguageError(Exception):
    """A fault in a rule's text: `field` is the path inside the file, e.g. `when.t.torch.version`."""

    def __init__(self, field: str, message: Message) -> None:
        self.field = field
        self.message = message
        super().__init__(message)


class LanguageErrors(Exception):
    """Every fault of one rule or fix."""

    def __init__(self, faults: list[LanguageError]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{fault.field}: {fault}" for fault in faults))


@dataclass(frozen=True, slots=True)
class _Reference:
    alias: str
    field: str


class Compiler:
    """Turns validated rule dictionaries into IR rules; raises LanguageErrors with every fault of the rule."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self._faults: list[LanguageError] = []
        # Aliases whose own pattern is at fault: what refers to them is not a further fault.
        self._unbound: frozenset[str] = frozenset()

    @contextlib.contextmanager
    def _all_faults(self) -> Iterator[None]:
        self._faults = []
        yield
        if self._faults:
            raise LanguageErrors(self._faults)

    @contextlib.contextmanager
    def _noting(self) -> Iterator[None]:
        """Notes a fault and goes on behind the block, so that the author sees all of them at once."""
        try:
            yield
        except LanguageError as fault:
            self._faults.append(fault)

    # --- rules and fixes -------------------------------------------------------------------------------------------

    def rule(self, data: Mapping[str, Any]) -> list[Rule]:
        """The IR rules of one rule file: one an alternative, all with the rule's id as group."""
        rules: list[Rule] = []
        with self._all_faults(), self._noting():
            for number, patterns in enumerate(self._alternatives(data["when"], "when")):
                types = {p.alias: p.type for p in patterns if not p.negated}
                conclusions: list[Conclusion] = []
                for index, conclusion in enumerate(data["conclude"]):
                    with self._noting():
                        conclusions.append(self._conclusion(data["id"], conclusion, types, f"conclude[{index}]"))
                name = data["id"] if number == 0 else f"{data['id']}#{number + 1}"
                rules.append(Rule(name, patterns, tuple(conclusions), data["id"]))
        return rules

    def fix(self, data: Mapping[str, Any]) -> list[Rule]:
        """The IR rules that offer a fix for an evidenced cause, and one for each optional part of it."""
        causes = tuple(sorted(data["causes"]))
        test = Test("cause", "in", causes) if len(causes) > 1 else Test("cause", "eq", causes[0])
        lead = Pattern(EVIDENCE_ALIAS, "evidence", (test, Test("word", "in", _SUPPORT)))
        group = f"fix/{data['id']}"
        fields: dict[str, Scalar | Ref] = {"fix": data["id"], "cause": Ref(EVIDENCE_ALIAS, "cause")}
        rules: list[Rule] = []
        with self._all_faults(), self._noting():
            for number, patterns in enumerate(self._alternatives(data.get("when") or {}, "when", (lead,))):
                name = group + (f"#{number + 1}" if number else "")
                rules.append(Rule(name, patterns, (Conclusion("fix_offer", fields),), group))
                types = {p.alias: p.type for p in patterns if not p.negated}
                for alias, body in (data.get("optional") or {}).items():
                    with self._noting():
                        extra = self._pattern(alias, body, types, f"optional.{alias}")
                        option = Conclusion("fix_option", {**fields, "option": alias})
                        rules.append(Rule(f"{name}?{alias}", (*patterns, extra), (option,), group))
        return rules

    def symptom(self, slug: str, data: Mapping[str, Any]) -> list[Rule]:
        """The IR rules that raise a symptom from error lines, statements and codes of NVML."""
        raised: list[Rule] = []
        for source, field, key in (
            ("error", "kind", "errors"),
            ("statement", "kind", "statements"),
            ("nvml", "code", "nvml"),
        ):
            known = data.get(key) or ()
            if known:
                pattern = Pattern("s", source, (Test(field, "in", tuple(sorted(known))),))
                conclusions = (Conclusion("symptom", {"kind": slug}),)
                raised.append(Rule(f"symptom/{slug}/{source}", (pattern,), conclusions, f"symptom/{slug}"))
        return raised

    # --- patterns --------------------------------------------------------------------------------------------------

    def _alternatives(
        self, when: Mapping[str, Any], field: str, lead: tuple[Pattern, ...] = ()
    ) -> Iterator[tuple[Pattern, ...]]:
        """Every combination of the any-of branches as a flat, ordered tuple of patterns."""
        groups: list[list[tuple[str, Mapping[str, Any]]]] = [
            [(field, {k: v for k, v in when.items() if not k.startswith(_ANY_OF)})]
        ]
        for key, group in when.items():
            if key.startswith(_ANY_OF):
                if not isinstance(group, list) or not group or not all(isinstance(b, dict) for b in group):
                    raise LanguageError(f"{field}.{key}", Message("fault.any_of"))
                groups.append([(f"{field}.{key}[{index}]", branch) for index, branch in enumerate(group)])
        for branches in itertools.product(*groups):
            bodies: dict[str, Any] = {}
            places: dict[str, str] = {}
            for place, branch in branches:
                for alias, body in branch.items():
                    if not _ALIAS.match(alias):
                        raise LanguageError(f"{place}.{alias}", Message("fault.alias"))
                    if alias in bodies or any(alias == p.alias for p in lead):
                        raise LanguageError(f"{place}.{alias}", Message("fault.alias_twice"))
                    bodies[alias], places[alias] = body, f"{place}.{alias}"
            yield self._patterns(bodies, places, lead)

    def _patterns(
        self, bodies: Mapping[str, Any], places: Mapping[str, str], lead: tuple[Pattern, ...]
    ) -> tuple[Pattern, ...]:
        """Positive patterns in an order in which every reference points back, then the negated ones."""
        positive = {a: b for a, b in bodies.items() if not _is_negated(b)}
        types = {p.alias: p.type for p in lead}
        done: list[Pattern] = list(lead)
        waiting: dict[str, Any] = {}
        for alias, body in positive.items():
            with self._noting():
                types[alias] = self._type_of(body, places[alias])
                waiting[alias] = body
        bound = {p.alias for p in lead}
        self._unbound = frozenset(positive) - set(types)
        while waiting:
            ready = next((a for a, b in waiting.items() if _aliases(b) <= bound), None)
            if ready is None:
                self._stuck(waiting, types, places)
                break
            bound.add(ready)
            with self._noting():
                done.append(self._pattern(ready, waiting.pop(ready), types, places[ready]))
        self._unbound = frozenset(positive) - {p.alias for p in done}
        for alias, body in bodies.items():
            if _is_negated(body):
                with self._noting():
                    done.append(self._pattern(alias, body, types, places[alias]))
        return tuple(done)

    def _stuck(self, waiting: Mapping[str, Any], types: Mapping[str, str], places: Mapping[str, str]) -> None:
        """Says what is wrong with the patterns that wait for another's alias in vain."""
        self._unbound |= frozenset(waiting)
        for alias, body in waiting.items():
            with self._noting():
                self._pattern(alias, body, types, places[alias])
        if not self._faults:
            self._faults.append(LanguageError(places[next(iter(waiting))], Message("fault.circle")))

    def _type_of(self, body: Any, field: str) -> str:
        if not isinstance(body, dict) or len(body) != 1:
            raise LanguageError(field, Message("fault.pattern"))
        name = str(next(iter(body)))
        if name not in self.vocabulary.types:
            raise LanguageError(
                field, Message("fault.unknown_type", name=name, hint=did_you_mean(name, self.vocabulary.types))
            )
        return name

    def _pattern(self, alias: str, body: Any, types: Mapping[str, str], field: str) -> Pattern:
        negated = _is_negated(body)
        inner, field = (body["not"], f"{field}.not") if negated else (body, field)
        type_name = self._type_of(inner, field)
        conditions = inner[type_name] or {}
        if not isinstance(conditions, dict):
            raise LanguageError(f"{field}.{type_name}", Message("fault.tests"))
        tests: list[Test] = []
        joins: list[Join] = []
        for name, wanted in conditions.items():
            path = f"{field}.{type_name}.{name}"
            with self._noting():
                for operator, value in _operators(wanted, path):
                    self._condition(type_name, str(name), operator, value, types, path, tests, joins)
        return Pattern(alias, type_name, tuple(tests), tuple(joins), negated)

    def _condition(
        self,
        type_name: str,
        name: str,
        operator: str,
        value: Any,
        types: Mapping[str, str],
        path: str,
        tests: list[Test],
        joins: list[Join],
    ) -> None:
        kind = self._kind(type_name, name, path)
        column = _column(name, kind)
        if operator == "known":
            tests.append(Test(column, "known"))
            return
        if operator in ("lt", "le", "gt", "ge") and kind not in ("int", "version", "sm"):
            raise LanguageError(path, Message("fault.no_order", type=kind))
        reference = _reference(value)
        if reference is not None:
            if reference.alias not in self._unbound:
                joins.append(self._join(column, kind, operator, reference, types, path))
        elif operator in ("in", "not_in"):
            tests.append(Test(column, operator, tuple(self._constant(type_name, name, kind, v, path) for v in value)))
        else:
            tests.append(Test(column, operator, self._constant(type_name, name, kind, value, path)))

    def _join(
        self, column: str, kind: str, operator: str, reference: _Reference, types: Mapping[str, str], path: str
    ) -> Join:
        other_type = types.get(reference.alias)
        if other_type is None:
            raise LanguageError(path, _unknown_alias(reference, types))
        other_kind = self._kind(other_type, reference.field, path)
        if _comparable(kind) != _comparable(other_kind):
            raise LanguageError(path, Message("fault.compares", kind=kind, other=other_kind))
        return Join(column, operator, reference.alias, _column(reference.field, other_kind))

    def _kind(self, type_name: str, name: str, path: str) -> str:
        problem = self.vocabulary.check(type_name, name, "") if "." in name else None
        spec = self.vocabulary.types[type_name].fields.get(name.partition(".")[0])
        if spec is None:
            hint = did_you_mean(name, self.vocabulary.types[type_name].fields)
            raise LanguageError(path, Message("fault.unknown_field_of", name=name, type=type_name, hint=hint))
        if problem:
            raise LanguageError(path, problem)
        part = name.partition(".")[2]
        return SUBFIELDS[spec.type][part] if part else spec.type

    def _constant(self, type_name: str, name: str, kind: str, value: Any, path: str) -> Scalar:
        if "." not in name:
            problem = self.vocabulary.check(type_name, name, value)
            if problem:
                raise LanguageError(path, problem)
            value = self.vocabulary.coerce(type_name, name, value)
        elif kind == "str":
            value = str(value)
        if kind == "version":
            parts = parse_version(str(value))
            if parts is None:
                raise LanguageError(path, Message("fault.version"))
            return parts.order
        if kind == "int" and (isinstance(value, bool) or not isinstance(value, int)):
            raise LanguageError(path, Message("fault.whole_number", name=name))
        if isinstance(value, str) and value.startswith("$"):
            raise LanguageError(path, Message("fault.one_reference", value=value))
        if isinstance(value, str | int):
            return value
        raise LanguageError(path, Message("fault.one_value"))

    # --- conclusions -----------------------------------------------------------------------------------------------

    def _conclusion(self, rule_id: str, data: Mapping[str, Any], types: Mapping[str, str], path: str) -> Conclusion:
        if data.get("fact") is not None:
            if data.get("cause") or data.get("evidence") or len(data["fact"]) != 1:
                raise LanguageError(path, Message("fault.concludes"))
            ((type_name, fields),) = data["fact"].items()
            return self._derived(type_name, fields, types, f"{path}.fact.{type_name}")
        if not data.get("cause") or not data.get("evidence"):
            raise LanguageError(path, Message("fault.concludes_nothing"))
        about = data.get("about")
        fields = {"cause": data["cause"], "word": data["evidence"], "rule": rule_id} | (
            {"about": about} if about else {}
        )
        return self._derived("evidence", fields, types, path)

    def _derived(self, type_name: str, fields: Mapping[str, Any], types: Mapping[str, str], path: str) -> Conclusion:
        spec = self.vocabulary.types.get(type_name)
        if spec is None or spec.kind != "derived":
            derived = [n for n, t in self.vocabulary.types.items() if t.kind == "derived"]
            raise LanguageError(
                path, Message("fault.not_derived", name=type_name, hint=did_you_mean(type_name, derived))
            )
        result: dict[str, Scalar | Ref] = {}
        for name, value in fields.items():
            with self._noting():
                result.update(self._concluded(type_name, name, value, types, f"{path}.{name}"))
        return Conclusion(type_name, result)

    def _concluded(
        self, type_name: str, name: str, value: Any, types: Mapping[str, str], path: str
    ) -> Mapping[str, Scalar | Ref]:
        """A concluded field with its parts: a constant, or copied from a matched fact."""
        reference = _reference(value)
        if reference is not None:
            return {} if reference.alias in self._unbound else self._copied(type_name, name, reference, types, path)
        problem = self.vocabulary.check(type_name, name, value)
        if not problem and isinstance(value, str) and value.startswith("$"):
            problem = Message("fault.no_reference", value=value)
        if problem:
            raise LanguageError(path, problem)
        return self.vocabulary.lower_fields(type_name, {name: self.vocabulary.coerce(type_name, name, value)})

    def _copied(
        self, type_name: str, name: str, reference: _Reference, types: Mapping[str, str], path: str
    ) -> dict[str, Ref]:
        source_type = types.get(reference.alias)
        if source_type is None:
            raise LanguageError(path, _unknown_alias(reference, types))
        source = self._kind(source_type, reference.field, path)
        target = self._kind(type_name, name, path)
        if target in SUBFIELDS and source != target:
            raise LanguageError(path, Message("fault.filled_from", target=target, source=source))
        if target not in SUBFIELDS and (target in ("int", "bool")) != (source in ("int", "bool", "sm")):
            raise LanguageError(path, Message("fault.filled_from", target=target, source=source))
        column = reference.field.replace(".", "__")
        parts = {f"{name}__{p}": Ref(reference.alias, f"{column}__{p}") for p in _parts(target)}
        return {name: Ref(reference.alias, column), **parts}


def _unknown_alias(reference: _Reference, types: Mapping[str, str]) -> Message:
    return Message("fault.unknown_alias", name=f"${reference.alias}", hint=did_you_mean(reference.alias, types))


def _parts(kind: str) -> tuple[str, ...]:
    return (
        (*SUBFIELDS[kind], "n", "release__n", "built_for__n") if kind == "version" else tuple(SUBFIELDS.get(kind, {}))
    )


def _column(name: str, kind: str) -> str:
    """The row's column that a comparison uses: versions compare by their ordered integer."""
    column = name.replace(".", "__")
    return f"{column}__n" if kind == "version" else column


def _comparable(kind: str) -> str:
    return {"version": "version", "int": "int", "sm": "int", "bool": "bool"}.get(kind, "text")


def _is_negated(body: Any) -> bool:
    return isinstance(body, dict) and set(body) == {"not"}


def _operators(wanted: Any, path: str) -> Iterator[tuple[str, Any]]:
    if not isinstance(wanted, dict):
        yield "eq", wanted
        return
    for word, value in wanted.items():
        if word in _ORDER:
            yield _ORDER[word], value
        elif word == "not":
            yield "ne", value
        elif word in ("any_of", "none_of"):
            if not isinstance(value, list) or not value:
                raise LanguageError(path, Message("fault.takes_list", word=word))
            yield ("in" if word == "any_of" else "not_in"), value
        elif word == "known":
            if value is not True:
                raise LanguageError(path, Message("fault.known"))
            yield "known", True
        else:
            hint = did_you_mean(str(word), [*_ORDER, "not", "any_of", "none_of", "known"])
            raise LanguageError(path, Message("fault.unknown_test", word=word, hint=hint))


def _reference(value: Any) -> _Reference | None:
    match = _REF.match(value) if isinstance(value, str) else None
    return _Reference(match.group(1), match.group(2)) if match else None


def _aliases(body: Any) -> set[str]:
    """The aliases that a pattern refers to."""
    if isinstance(body, dict):
        return set().union(*(_aliases(v) for v in body.values())) if body else set()
    reference = _reference(body)
    return {reference.alias} if reference else set()
