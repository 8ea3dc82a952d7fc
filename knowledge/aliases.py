"""Aliases: which loose keys of a facts file mean which facts.

May live here: the alias model, its loading and checks, and looking a key up. Must not: any key (they are data in
`aliases.yaml`) and reading of facts files.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..facts import Scalar
from ..messages import NOTHING, Message
from .converters import CONVERTERS
from .problems import Problems, did_you_mean
from .vocabulary import Vocabulary
from .yamlnodes import Node, load

Template = Mapping[str, Mapping[str, Scalar]]
ALWAYS = ("text", "rest")
_OPTIONS = ("keys", "as", "values", "gives", "forms")
_SECTIONS = ("env_prefixes", "distros", "packages", "sections", "aliases")


@dataclass(frozen=True, slots=True)
class Alias:
    """What a key means: how its value is converted and the facts that the outputs fill. `forms`: whether it is also
    believed as the label of an entry in a pasted form, where any program may have printed it.
    """

    converter: str
    gives: Template
    values: Mapping[str, Scalar]
    forms: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """An alias found for a key; `rest` is what a wildcard stood for."""

    alias: Alias
    rest: str = ""


@dataclass(frozen=True, slots=True)
class Aliases:
    """The alias catalog, ready to look up; immutable and shareable."""

    exact: Mapping[str, Alias]
    prefixes: Mapping[str, Alias]
    numbered: Mapping[str, Alias]
    packages: frozenset[str]
    sections: frozenset[str]
    env_prefixes: tuple[str, ...]
    distros: Mapping[str, str]

    @classmethod
    def compile(cls, data: Mapping[str, Any]) -> Aliases:
        """From the plain content of `aliases.yaml`, which must have passed `check_aliases`."""
        exact: dict[str, Alias] = {}
        prefixes: dict[str, Alias] = {}
        numbered: dict[str, Alias] = {}
        for entry in data["aliases"]:
            values = {str(key).casefold(): value for key, value in entry.get("values", {}).items()}
            alias = Alias(entry["as"], entry["gives"], values, bool(entry.get("forms")))
            for key in entry["keys"]:
                table, name = _table_of(str(key))
                {"exact": exact, "prefixes": prefixes, "numbered": numbered}[table][name] = alias
        return cls(
            exact,
            prefixes,
            numbered,
            packages=frozenset(map(normal_key, data["packages"])),
            sections=frozenset(map(normal_key, data["sections"])),
            env_prefixes=tuple(data["env_prefixes"]),
            distros=dict(data["distros"]),
        )

    def find(self, key: str) -> Found | None:
        """The alias of a key as people write it, or None."""
        name = normal_key(key)
        if name in self.exact:
            return Found(self.exact[name])
        number = re.search(r"_?(\d{1,3})\Z", name)
        if number and name[: number.start()] in self.numbered:
            return Found(self.numbered[name[: number.start()]], number.group(1))
        longest = max((p for p in self.prefixes if name.startswith(f"{p}_")), key=len, default=None)
        return None if longest is None else Found(self.prefixes[longest], name[len(longest) + 1 :].replace("_", "-"))


def normal_key(key: str) -> str:
    """A key without regard to case, width, and which of space, dash, underscore and dot parts its words."""
    return re.sub(r"[\s\-_./:()]+", "_", unicodedata.normalize("NFKC", key).casefold()).strip("_")


def load_aliases(path: Path, vocabulary: Vocabulary, problems: Problems) -> Aliases | None:
    """Read `aliases.yaml`; faults are recorded in `problems`, and then there is no result."""
    before = len(problems.found)
    root = load(path, problems, path.name)
    if root is not None:
        check_aliases(root, vocabulary, problems)
    return None if root is None or len(problems.found) > before else Aliases.compile(root.plain())


def check_aliases(root: Node, vocabulary: Vocabulary, problems: Problems) -> None:
    """Check every alias: known converter, types, fields and outputs, and no key twice."""
    for section in _SECTIONS:
        if root.get(section) is None:
            problems.add(root.file, root.line, section, Message("fault.missing"))
    listed = root.get("aliases")
    if listed is not None and listed.kind != "list":
        problems.add(root.file, listed.line, "aliases", Message("fault.list"))
    seen: dict[tuple[str, str], int] = {}
    for entry in listed.elements() if listed else ():
        for key, _ in entry.pairs():
            if key.text not in _OPTIONS:
                problems.add(
                    key.file, key.line, key.text, Message("fault.unknown_option", hint=did_you_mean(key.text, _OPTIONS))
                )
        _check_keys(entry, seen, problems)
        _check_template(entry, vocabulary, problems)


def _check_keys(entry: Node, seen: dict[tuple[str, str], int], problems: Problems) -> None:
    keys = entry.get("keys")
    if keys is None or not keys.elements():
        problems.add(entry.file, entry.line, "keys", Message("fault.missing"))
        return
    for key in keys.elements():
        place = _table_of(key.text)
        if place in seen:
            problems.add(key.file, key.line, key.text, Message("fault.already_in_line", line=seen[place]))
        seen[place] = key.line


def _check_template(entry: Node, vocabulary: Vocabulary, problems: Problems) -> None:
    converter, gives = entry.get("as"), entry.get("gives")
    if converter is None or gives is None:
        problems.add(entry.file, entry.line, "", Message("fault.alias_shape"))
        return
    if converter.text not in CONVERTERS:
        hint = did_you_mean(converter.text, CONVERTERS)
        problems.add(
            converter.file, converter.line, "as", Message("fault.unknown_converter", name=converter.text, hint=hint)
        )
        return
    outputs: Sequence[str] = (*CONVERTERS[converter.text][1], *ALWAYS)
    for type_name, fields in gives.pairs():
        for name, value in fields.pairs():
            problem = _value_fault(vocabulary, outputs, type_name.text, name.text, value)
            if problem:
                problems.add(value.file, value.line, f"{type_name.text}.{name.text}", problem)


def _value_fault(
    vocabulary: Vocabulary, outputs: Sequence[str], type_name: str, name: str, value: Node
) -> Message | None:
    if not value.text.startswith("$"):
        return vocabulary.check(type_name, name, value.scalar())
    output = value.text[1:]
    if output not in outputs:
        return Message("fault.no_output", name=output, hint=did_you_mean(output, outputs))
    if type_name not in vocabulary.types or name not in vocabulary.types[type_name].fields:
        return vocabulary.check(type_name, name, "") or Message("fault.unknown_field_named", name=name, hint=NOTHING)
    return None


def _table_of(key: str) -> tuple[str, str]:
    if key.endswith("*"):
        return "prefixes", normal_key(key[:-1])
    if key.endswith("#"):
        return "numbered", normal_key(key[:-1])
    return "exact", normal_key(key)
