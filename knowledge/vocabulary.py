"""The vocabulary: which fact types and fields exist, and how a fact becomes a row that engines compare.

May live here: the vocabulary's model, its loading, type checks and the lowering of facts to rows. Must not: any fact
type by name; the names are data in `vocabulary.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..engine.ir import Row
from ..facts import Fact, Scalar
from ..messages import NOTHING, Message
from .functions import compute, operands_fault
from .problems import Problems, did_you_mean
from .versions import VersionParts, parse_version
from .yamlnodes import Node, load

FIELD_TYPES = ("str", "int", "bool", "version", "gpu_name", "sm", "enum", "conda_build")
# The sub-fields that lowering adds to a field of a type, each with the type of its value.
SUBFIELDS: dict[str, dict[str, str]] = {
    "version": {"public": "str", "local": "str", "release": "version", "built_for": "version", "major": "int"},
    "gpu_name": {"product": "str", "label": "str"},
    "sm": {"major": "int", "minor": "int"},
    "conda_build": {"accelerator": "str"},
}
KINDS = ("observed", "catalog", "derived")
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_BUILT_FOR = re.compile(r"(?:cu\d{2,3})?(?:torch(\d)\.(\d{1,2})(?:cxx11|\Z)|pt(\d)(\d{1,2})(?:cu|cpu|rocm|\Z))")
_SM = re.compile(r"(?:sm_|compute_)?(\d{1,2})\.?(\d)[af]?\Z")


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A field: its type, the values of an enum, what it means, and for a computed one the function and its operands."""

    name: str
    type: str
    values: tuple[str, ...] = ()
    about: str = ""
    computed: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True)
class TypeSpec:
    """A fact type: who makes it, its fields and how its absence may be known."""

    name: str
    kind: str
    fields: Mapping[str, FieldSpec]
    identity: tuple[str, ...] = ()
    domain: str = ""
    closed_by: str = ""
    about: str = ""

    @property
    def open_world(self) -> bool:
        """Whether its absence may be concluded only under a coverage fact."""
        return self.kind == "observed" and self.domain not in ("", "coverage")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """All fact types; `identify` resolves a GPU name to the catalog's product, or None."""

    types: Mapping[str, TypeSpec]
    identify: Callable[[str], str | None] = field(default=lambda _text: None)

    def closed_sets(self) -> frozenset[tuple[str, str]]:
        """The fields, as (type, field), whose values are a closed set of words."""
        return frozenset(
            (type_name, name)
            for type_name, spec in self.types.items()
            for name, field_spec in spec.fields.items()
            if field_spec.type == "enum"
        )

    def check(self, type_name: str, name: str, value: object) -> Message | None:
        """What is wrong with `value` for that field, or None. `name` may be a sub-field (`version.local`)."""
        spec = self.types.get(type_name)
        if spec is None:
            return Message("fault.unknown_type", name=type_name, hint=did_you_mean(type_name, self.types))
        base, _, sub = name.partition(".")
        field_spec = spec.fields.get(base)
        if field_spec is None:
            hint = did_you_mean(base, spec.fields)
            return Message("fault.unknown_field_of", name=base, type=type_name, hint=hint)
        if sub:
            subs = SUBFIELDS.get(field_spec.type, {})
            return None if sub in subs else Message("fault.no_part", name=base, part=sub, hint=did_you_mean(sub, subs))
        return _value_problem(field_spec, value)

    def coerce(self, type_name: str, name: str, value: Scalar) -> Scalar:
        """The value in the field's own type: versions and text as str, compute capabilities as integers."""
        kind = self.types[type_name].fields[name].type
        if kind == "sm" and not isinstance(value, int):
            return parse_sm(value) or 0
        if kind in ("str", "version", "gpu_name", "enum", "conda_build"):
            return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
        return value

    def lower(self, fact: Fact) -> Row:
        """The fact as a row: its fields, and the sub-fields that comparisons need."""
        return fact.type, self.lower_fields(fact.type, fact.fields)

    def lower_fields(self, type_name: str, fields: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """The fields of one type with their sub-fields (`version__n`, `sm__major`) and the computed fields."""
        specs = self.types[type_name].fields
        row: dict[str, Scalar] = {}
        for name, value in fields.items():
            row[name] = value
            spec = specs.get(name)
            if spec is not None and spec.type in SUBFIELDS:
                row.update(self._parts(name, spec.type, value))
        for name, spec in specs.items():
            if spec.computed and name not in row:  # what somebody states stands
                function, *operands = spec.computed
                number = compute(str(function), [row.get(o) if isinstance(o, str) else o for o in operands])
                if number is not None:
                    row[name] = number
        return row

    def _parts(self, name: str, kind: str, value: Scalar) -> dict[str, Scalar]:
        if kind == "sm":
            number = int(value)
            return {f"{name}__major": number // 10, f"{name}__minor": number % 10}
        text = str(value)
        if kind == "version":
            parts = parse_version(text)
            if parts is None:
                return {}
            built_for = wheel_built_for(parts.local)
            found: dict[str, Scalar] = {
                f"{name}__n": parts.order,
                f"{name}__major": parts.major,
                f"{name}__public": parts.public,
                f"{name}__local": parts.local,
                f"{name}__release": parts.release,
                f"{name}__release__n": parts.release_order,
            }
            if built_for:
                found |= {f"{name}__built_for": built_for.release, f"{name}__built_for__n": built_for.order}
            return found
        if kind == "gpu_name":
            product = self.identify(text)
            label: dict[str, Scalar] = {f"{name}__label": product or text}
            return label | {f"{name}__product": product} if product else label
        accelerator = conda_accelerator(text)
        return {f"{name}__accelerator": accelerator} if accelerator else {}


def parse_sm(text: str) -> int | None:
    """`8.9`, `sm_89`, `89` or `12.0` as 89 or 120."""
    match = _SM.match(text.strip())
    return int(match.group(1)) * 10 + int(match.group(2)) if match else None


def wheel_built_for(local: str) -> VersionParts | None:
    """The release that a wheel's local version names as its base: 2.6 of `cu12torch2.6cxx11abiFALSE`, `pt26cu124`."""
    match = _BUILT_FOR.match(local)
    return parse_version(f"{match[1] or match[3]}.{match[2] or match[4]}") if match else None


def conda_accelerator(build: str) -> str | None:
    """What a conda build string says: `cpu_generic_py312…` is cpu, `cuda126_…` and `py3.11_cuda12.1_…` are cuda."""
    words = re.split(r"[_\-]", build.lower())
    for prefix in ("cuda", "rocm", "cpu"):
        if any(w.startswith(prefix) for w in words):
            return prefix
    return None


def _value_problem(spec: FieldSpec, value: object) -> Message | None:
    if spec.type == "bool":
        return None if isinstance(value, bool) else Message("fault.truth", name=spec.name)
    if spec.type == "int":
        good = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**53
        return None if good else Message("fault.whole_number", name=spec.name)
    if isinstance(value, bool | dict | list) or value is None:
        return Message("fault.field_one_value", name=spec.name)
    if spec.type == "sm":
        return (
            None
            if isinstance(value, int) or parse_sm(str(value))
            else Message("fault.field_capability", name=spec.name)
        )
    if spec.type == "version":
        return None if parse_version(str(value)) else Message("fault.field_version", name=spec.name)
    if spec.type == "enum" and str(value) not in spec.values:
        hint = did_you_mean(str(value), spec.values)
        return Message("fault.field_one_of", name=spec.name, values=spec.values, hint=hint)
    return None


def load_vocabulary(path: Path, problems: Problems) -> Vocabulary:
    """Read `vocabulary.yaml`; faults are recorded in `problems`."""
    root = load(path, problems, path.name)
    types: dict[str, TypeSpec] = {}
    section = root.get("types") if root else None
    for key, node in section.pairs() if section else ():
        if not _NAME.match(key.text):
            problems.add(key.file, key.line, key.text, Message("fault.type_name"))
            continue
        types[key.text] = _read_type(key.text, node, problems)
    return Vocabulary(types)


def _read_type(name: str, node: Node, problems: Problems) -> TypeSpec:
    kind = _text(node, "kind")
    if kind not in KINDS:
        problems.add(node.file, node.line, f"{name}.kind", Message("fault.one_of", values=KINDS, hint=NOTHING))
    fields: dict[str, FieldSpec] = {}
    listed = node.get("fields")
    for key, value in listed.pairs() if listed else ():
        values = value.get("values")
        spec = FieldSpec(
            key.text,
            _text(value, "type"),
            tuple(v.text for v in values.elements()) if values else (),
            _text(value, "about"),
            _computed(value),
        )
        if spec.computed:
            _check_computed(spec, fields, key, name, problems)
        if spec.type not in FIELD_TYPES:
            told = Message("fault.unknown_field_type", name=spec.type, hint=did_you_mean(spec.type, FIELD_TYPES))
            problems.add(key.file, key.line, f"{name}.{key.text}", told)
        fields[key.text] = spec
    identity = node.get("identity")
    return TypeSpec(
        name,
        kind,
        fields,
        tuple(i.text for i in identity.elements()) if identity else (),
        _text(node, "domain"),
        _text(node, "closed_by"),
        _text(node, "about"),
    )


def _computed(node: Node) -> tuple[str | int, ...]:
    found = node.get("computed")
    words = [item.text for item in found.elements()] if found is not None else []
    return tuple(int(word) if word.isdecimal() else word for word in words)


def _check_computed(
    spec: FieldSpec, earlier: Mapping[str, FieldSpec], key: Node, type_name: str, problems: Problems
) -> None:
    """A computed field is a whole number made of whole numbers that stand before it."""
    function, *operands = spec.computed
    fault = operands_fault(str(function), operands)
    for operand in operands:
        if isinstance(operand, str) and (operand not in earlier or earlier[operand].type != "int"):
            fault = Message("fault.computed_operand", name=operand, type=type_name)
    if spec.type != "int":
        fault = Message("fault.computed_int")
    if fault:
        problems.add(key.file, key.line, f"{type_name}.{spec.name}.computed", fault)


def _text(node: Node, key: str) -> str:
    found = node.get(key)
    return found.text if found is not None and found.kind == "scalar" else ""
