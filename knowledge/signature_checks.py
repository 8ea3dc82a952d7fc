"""Checks of the error signatures and phrases: patterns that every engine reads, groups that are fields, samples.

May live here: checks of the two text catalogs. Must not: matching of inputs, any pattern or kind.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from ..messages import NOTHING, Message
from .build import SLUG, Sources, line_of
from .phrases import pattern_fault
from .problems import Problems, did_you_mean
from .schema import PhraseEntry
from .shapes import shape_fault
from .vocabulary import Vocabulary
from .yamlnodes import Node, load

_KEYS = (
    "id",
    "about",
    "pattern",
    "convert",
    "gives",
    "gives_each",
    "text",
    "in",
    "sample",
    "companions",
    "source",
    "confidence",
    "background",
)
_Fault = tuple[str, Node, Message]
_REQUIRED = ("id", "about", "pattern", "sample", "source", "confidence")
_CONFIDENCE = ("verified", "secondary")
# What a conversion makes of text, as the vocabulary's types of field that can take it.
_TEXT = ("str", "version", "gpu_name", "enum", "conda_build")
_MADE = {"int": ("int",), "mib": ("int",), "minus": ("int",), "sm": ("sm",), "text": _TEXT}


def check_signatures(sources: Sources, problems: Problems) -> None:
    """Check every entry of `facts/errors.yaml`."""
    seen: dict[str, int] = {}
    for node in sources.signatures:
        name = _text(node, "id")
        if name in seen:
            problems.add(node.file, node.line, name, Message("fault.already_in_line", line=seen[name]))
        seen.setdefault(name, node.line)
    for node in sources.signatures:
        for field, at, message in _entry_faults(node, sources, seen):
            problems.add(at.file, at.line, f"{_text(node, 'id')}.{field}", message)


def _entry_faults(node: Node, sources: Sources, known: Mapping[str, int]) -> Iterator[_Fault]:
    for key, _ in node.pairs():
        if key.text not in _KEYS:
            yield key.text, key, Message("fault.unknown_field", hint=did_you_mean(key.text, _KEYS))
    missing = [name for name in _REQUIRED if not _text(node, name)]
    yield from ((name, node, Message("fault.missing")) for name in missing)
    if missing:
        return
    if not SLUG.match(_text(node, "id")):
        yield "id", node, Message("fault.slug")
    if _text(node, "source") not in sources.signature_sources:
        hint = did_you_mean(_text(node, "source"), sources.signature_sources)
        yield "source", _at(node, "source"), Message("fault.unknown_source", name=_text(node, "source"), hint=hint)
    if _text(node, "confidence") not in _CONFIDENCE:
        yield "confidence", _at(node, "confidence"), Message("fault.one_of", values=_CONFIDENCE, hint=NOTHING)
    for other in (node.get("companions") or node).elements():
        if other.text not in known:
            hint = did_you_mean(other.text, known)
            yield "companions", other, Message("fault.unknown_signature", name=other.text, hint=hint)
    yield from _pattern_faults(node)
    yield from _value_faults(node, sources.vocabulary)


def _pattern_faults(node: Node) -> Iterator[_Fault]:
    fault = regex_fault(_text(node, "pattern"))
    if fault:
        yield "pattern", _at(node, "pattern"), fault
        return
    if not re.search(_text(node, "pattern"), _text(node, "sample"), re.ASCII):
        yield "sample", _at(node, "sample"), Message("fault.sample")


def regex_fault(pattern: str) -> Message | None:
    """Why a pattern cannot be used with every engine, or None."""
    fault = pattern_fault(pattern.removeprefix("(?i)"))
    if fault is not None:
        return fault
    try:
        re2: Any = importlib.import_module("re2")
    except ImportError:
        return None
    options = re2.Options()
    options.log_errors = False
    try:
        re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0]
        return Message("fault.re2", error=reason.decode() if isinstance(reason, bytes) else reason)
    return None


def _value_faults(node: Node, vocabulary: Vocabulary) -> Iterator[_Fault]:
    """Groups, conversions and what is given: types and fields of the vocabulary, filled with what fits them."""
    made = yield from _made(node, _groups(_text(node, "pattern")))
    gives = node.get("gives")
    given = [(key.text, value) for key, value in gives.pairs()] if gives else [("error", node)]
    used: set[str] = set()
    for type_name, fields in given:
        if type_name == "error":
            public = {name for name in made if not name.startswith("_")}
            used |= public
            yield from (
                ("pattern", _at(node, "pattern"), fault)
                for name in sorted(public)
                if (fault := _taken(vocabulary, "error", name, made[name]))
            )
        if gives is not None:
            used |= _outputs(fields)
            yield from _template_faults(type_name, fields, made, vocabulary, "gives")
    each = node.get("gives_each")
    for item in each.elements() if each and each.kind == "list" else [each] if each else []:
        used.add(_text(item, "split"))
        inner = yield from _made(item, _groups(_text(item, "item")))
        for key, fields in (item.get("gives") or item).pairs() if item.get("gives") else ():
            yield from _template_faults(key.text, fields, {**made, **inner}, vocabulary, "gives_each")
    convert = node.get("convert")
    for _, how in convert.pairs() if convert else ():
        used |= set(how.text.split()[1:])
    for name in sorted(_groups(_text(node, "pattern")) - used):
        yield "pattern", _at(node, "pattern"), Message("fault.group_unused", name=name)


def _made(node: Node, groups: set[str]) -> Generator[_Fault, None, dict[str, tuple[str, ...]]]:
    """The values that an entry can fill in, each with the types of field that take it."""
    made: dict[str, tuple[str, ...]] = dict.fromkeys(groups, _TEXT)
    convert = node.get("convert")
    for key, how in convert.pairs() if convert else ():
        kind, *inputs = how.text.split() or [""]
        if kind not in _MADE:
            yield "convert", how, Message("fault.unknown_conversion", name=kind, hint=did_you_mean(kind, _MADE))
            continue
        for name in inputs or [key.text]:
            if name not in groups:
                yield "convert", how, Message("fault.no_group", name=name, hint=did_you_mean(name, groups))
        made[key.text] = _MADE[kind]
    return made


def _template_faults(
    type_name: str, fields: Node, made: Mapping[str, tuple[str, ...]], vocabulary: Vocabulary, field: str
) -> Iterator[_Fault]:
    spec = vocabulary.types.get(type_name)
    if spec is None or spec.kind != "observed":
        observed = [name for name, known in vocabulary.types.items() if known.kind == "observed"]
        told = Message("fault.no_observed", name=type_name, hint=did_you_mean(type_name, observed))
        yield field, fields, told
        return
    for key, value in fields.pairs():
        fault: Message | None
        if value.text.startswith("$"):
            name = value.text[1:]
            fault = (
                _taken(vocabulary, type_name, key.text, made[name])
                if name in made
                else Message("fault.no_group", name=name, hint=did_you_mean(name, made))
            )
        else:
            fault = vocabulary.check(type_name, key.text, value.scalar())
        if fault:
            yield f"{field}.{type_name}.{key.text}", value, fault


def _taken(vocabulary: Vocabulary, type_name: str, name: str, kinds: tuple[str, ...]) -> Message | None:
    spec = vocabulary.types[type_name].fields.get(name)
    if spec is None:
        hint = did_you_mean(name, vocabulary.types[type_name].fields)
        return Message("fault.unknown_field_of", name=name, type=type_name, hint=hint)
    if spec.type not in kinds:
        return Message("fault.convert", name=name, type=type_name, kind=spec.type)
    return None


def check_phrases(sources: Sources, problems: Problems) -> None:
    """Check every entry of `facts/phrases.yaml` beyond what loading checks."""
    root = load(sources.files["facts/phrases.yaml"], Problems(), "facts/phrases.yaml")
    rows = root.get("rows") if root else None
    seen: dict[str, int] = {}
    for row in rows.elements() if rows else ():
        kind = _text(row, "kind")
        if kind in seen:
            problems.add(row.file, row.line, kind, Message("fault.already_in_line", line=seen[kind]))
        seen.setdefault(kind, row.line)
        try:
            PhraseEntry.model_validate(row.plain())
        except ValidationError as error:
            for fault in error.errors():
                name = str(fault["loc"][0]) if fault["loc"] else ""
                problems.add(row.file, line_of(row, name), f"{kind}.{name}", shape_fault(fault))
        for name in ("patterns", "unless"):
            for pattern in (row.get(name) or row).elements():
                message = regex_fault(pattern.text)
                if message:
                    problems.add(pattern.file, pattern.line, f"{kind}.{name}", message)


def kinds_given(sources: Sources, type_name: str) -> set[str]:
    """The kinds of errors or statements that signatures and aliases can give."""
    kinds: set[str] = set()
    for node in sources.signatures:
        gives = node.get("gives")
        fields = gives.get(type_name) if gives else None
        own = fields.get("kind") if fields else None
        if own is not None:
            kinds.add(own.text)
        elif type_name == "error" and (gives is None or fields is not None):
            kinds.add(_text(node, "id"))
    listed = sources.aliases.get("aliases") if sources.aliases else None
    for entry in listed.elements() if listed else ():
        gives, values = entry.get("gives"), entry.get("values")
        fields = gives.get(type_name) if gives else None
        own = fields.get("kind") if fields else None
        if own is not None and own.text.startswith("$"):
            kinds.update(value.text for _, value in values.pairs() if value.text) if values else None
        elif own is not None:
            kinds.add(own.text)
    return kinds


def _groups(pattern: str) -> set[str]:
    return set(re.findall(r"\(\?P<(\w+)>", pattern))


def _outputs(fields: Node) -> set[str]:
    return {value.text[1:] for _, value in fields.pairs() if value.text.startswith("$")}


def _text(node: Node, key: str) -> str:
    found = node.get(key)
    return found.text if found is not None else ""


def _at(node: Node, key: str) -> Node:
    return node.get(key) or node
