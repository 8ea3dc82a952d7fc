"""The slots of texts: `{alias.field}`, `{alias.version.local}`, `{alias.sm|cc}`.

May live here: their syntax and what is wrong with one. Must not: values, languages, any text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..messages import Message
from .problems import did_you_mean
from .vocabulary import SUBFIELDS, Vocabulary

# alias, field with or without a part, form
SLOT = re.compile(r"\{([a-z_][a-z0-9_]*)\.([a-z0-9_]+(?:\.[a-z0-9_]+)?)(?:\|([a-z]+))?\}")
# Braces around what can only be meant as a slot; those of shells and of other templates hold other characters.
_MEANT = re.compile(r"(?<![{$])\{\s*[A-Za-z_][\w.| ]*\}(?!\})")
_FORMS = ("cc",)


def slots(template: str) -> list[str]:
    """The slots of a text, each once, in order of the alphabet."""
    return sorted({match.group(0) for match in SLOT.finditer(template)})


def faults(template: str, types: Mapping[str, str], vocabulary: Vocabulary) -> Iterator[Message]:
    """What is wrong with a text's slots; `types` has the fact type of each bound alias."""
    for match in SLOT.finditer(template):
        fault = _fault(match, types, vocabulary)
        if fault:
            yield Message("fault.slot", slot=match.group(0), fault=fault)
    for match in _MEANT.finditer(template):
        if not SLOT.fullmatch(match.group(0)):
            yield Message("fault.no_slot", slot=match.group(0))


def _fault(match: re.Match[str], types: Mapping[str, str], vocabulary: Vocabulary) -> Message | None:
    alias, path, form = match.groups()
    if alias not in types:
        return Message("fault.unbound", name=alias, hint=did_you_mean(alias, types))
    name, _, part = path.partition(".")
    fields = vocabulary.types[types[alias]].fields
    if name not in fields:
        return Message("fault.type_has_no", type=types[alias], name=name, hint=did_you_mean(name, fields))
    kind = fields[name].type
    if part:
        parts = SUBFIELDS.get(kind, {})
        if part not in parts:
            return Message("fault.no_part", name=name, part=part, hint=did_you_mean(part, parts))
        kind = parts[part]
    if form is not None and form not in _FORMS:
        return Message("fault.unknown_form", form=form)
    if form == "cc" and kind != "sm":
        return Message("fault.cc", path=path, kind=kind)
    return None
