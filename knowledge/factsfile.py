"""Facts files: typed facts with precise errors, or loose keys as people write them.

May live here: telling the two forms apart, reading them and joining what one file says. Must not: any key, fact type or
phrase except the facts that joining is about (`gpu`, `os` under WSL, `package`, `env_var`, `stated`, `statement`); the
rest is data in `vocabulary.yaml`, `aliases.yaml` and `facts/phrases.yaml`.

Typed: a list of `- {type: {field: value}}`, or a mapping whose key `facts` holds that list; every fault is an error.
Loose: anything else; what is not understood is kept as `stated` and listed, never an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import yaml

from ..facts import Entry, Fact, Provenance, Scalar
from ..messages import Message
from .aliases import Alias, Aliases, Found, normal_key
from .converters import CONVERTERS, MAX_COUNT, Context, Outputs, environment, normal_name, truth, version
from .phrases import GpuFinder, Phrases
from .problems import Problems, did_you_mean
from .vocabulary import Vocabulary
from .yamlnodes import Node, parse

MAX_BYTES = 4 * 1024 * 1024
MAX_EVENTS = 100_000
MAX_VALUE = 2_000
MAX_SENTENCE = 20_000
READER = "facts file"
# A snapshot keeps under `raw` what its facts were read from.
_BESIDE_FACTS = ("schema", "version", "facts", "raw")
_FROM = "_from"
_NOTHING = frozenset(("", "~", "null", "n/a", "unknown", "unk", "?", "不知道", "未知"))
# `torch 2.5.1`, `driver 550.54`, and how it was installed.
_VERSIONED = re.compile(
    r"(?P<label>[A-Za-z\u4e00-\u9fff][A-Za-z\u4e00-\u9fff -]{1,30}?)[ =:v]{0,4}(?P<value>\d[\w.+]*)"
    r"(?: (?:with|by|from|via) (?:conda|pip))?\Z"
)
_SURROGATES = re.compile(r"\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})", re.IGNORECASE)
# A facts file may come with more than it was meant to; what looks like a secret is not kept.
_PRIVATE = re.compile(r"token|secret|passw|api_?key|credential|license_?key", re.IGNORECASE)
# Converters that read `name: value` members of a mapping as `name=value`.
_PAIRED = frozenset(("environment", "package", "virtual_packages"))
_Loader = getattr(yaml, "CLoader", yaml.Loader)


@dataclass(frozen=True, slots=True)
class Passage:
    """Free text of a facts file that no alias covers; it may hold a log line, which other readers know."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class FactsReading:
    """What a facts file says: its facts, what nobody understood (`file:line: key: value`) and its free texts."""

    facts: list[Fact]
    not_understood: list[str]
    passages: tuple[Passage, ...] = ()


def read_facts(
    data: bytes, name: str, vocabulary: Vocabulary, aliases: Aliases, phrases: Phrases, names: GpuFinder
) -> FactsReading:
    """Read a YAML or JSON facts file; raises KnowledgeError with every fault of its form or of its typed facts."""
    problems = Problems()
    text = _decode(data, name, problems)
    root = _parse(text, name, problems) if text is not None else None
    problems.raise_if_any()
    if root is None:
        return FactsReading([], [])
    typed = _typed_list(root, problems)
    if typed is not None:
        facts = [fact for node in typed if (fact := _typed_fact(node, name, vocabulary, problems))]
        problems.raise_if_any()
        return FactsReading(facts, [])
    context = Context(names, aliases.env_prefixes, aliases.distros)
    return _Loose(name, vocabulary, aliases, phrases, context).read(root)


def read_entries(
    entries: Sequence[Entry], name: str, vocabulary: Vocabulary, aliases: Aliases, phrases: Phrases, names: GpuFinder
) -> list[Fact]:
    """The facts of a form's entries: of each meaning the first one that can be read."""
    loose = _Loose(name, vocabulary, aliases, phrases, Context(names, aliases.env_prefixes, aliases.distros))
    labelled = [(entry, loose.labelled(entry)) for entry in entries]
    doubtful = {entry.line for entry, pair in labelled if pair is None and not entry.alone}
    told: set[tuple[int, str]] = set()
    for entry, pair in labelled:
        found = aliases.find(pair[0]) if pair and entry.line not in doubtful else None
        if pair is None or found is None or not found.alias.forms:
            continue
        meaning = (id(found.alias), found.rest)
        if meaning not in told and loose.entry(pair[0], found, pair[1], entry.line):
            told.add(meaning)
    return loose.result().facts


# --- the file --------------------------------------------------------------------------------------------------------


def _decode(data: bytes, name: str, problems: Problems) -> str | None:
    if len(data) > MAX_BYTES:
        problems.add(name, 0, "", Message("fault.too_large", mib=MAX_BYTES // 1024 // 1024))
        return None
    # PowerShell's `>` writes UTF-16 with a byte order mark.
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        problems.add(name, 0, "", Message("fault.encoding"))
        return None
    if "\0" in text:
        problems.add(name, text[: text.index("\0")].count("\n") + 1, "", Message("fault.nul"))
        return None
    return text


def _parse(text: str, name: str, problems: Problems) -> Node | None:
    if text.lstrip()[:1] in ("{", "["):
        # JSON writes characters beyond the first plane as two escapes, which YAML does not know.
        text = _SURROGATES.sub(_one_escape, text)
    try:
        for number, event in enumerate(yaml.parse(text, Loader=_Loader)):
            line = event.start_mark.line + 1 if event.start_mark else 0
            if isinstance(event, yaml.AliasEvent):
                problems.add(name, line, "", Message("fault.yaml_alias"))
                return None
            if number > MAX_EVENTS:
                problems.add(name, line, "", Message("fault.too_many_values", n=MAX_EVENTS // 2))
                return None
    except (yaml.YAMLError, RecursionError, ValueError):
        pass  # parse() finds the same fault and says where it is.
    return parse(text, name, problems)


def _one_escape(pair: re.Match[str]) -> str:
    high, low = int(pair[1], 16) - 0xD800, int(pair[2], 16) - 0xDC00
    return f"\\U{0x10000 + (high << 10) + low:08x}"


# --- typed facts -----------------------------------------------------------------------------------------------------


def _typed_list(root: Node, problems: Problems) -> list[Node] | None:
    """The facts of a typed file, None where the file is loose."""
    listed = root.get("facts")
    if listed is not None and listed.kind == "list":
        for key, _ in root.pairs():
            if key.text not in _BESIDE_FACTS:
                hint = did_you_mean(key.text, _BESIDE_FACTS)
                problems.add(key.file, key.line, key.text, Message("fault.beside_facts", hint=hint))
        return listed.elements()
    if root.kind == "list" and any(_looks_typed(node) for node in root.elements()):
        return root.elements()
    return None


def _looks_typed(node: Node) -> bool:
    members = [(k, v) for k, v in node.pairs() if k.text != _FROM]
    return len(members) == 1 and members[0][1].kind == "map"


def _typed_fact(node: Node, name: str, vocabulary: Vocabulary, problems: Problems) -> Fact | None:
    members = [(k, v) for k, v in node.pairs() if k.text != _FROM]
    if len(members) != 1 or members[0][1].kind != "map":
        problems.add(name, node.line, "", Message("fault.fact_shape"))
        return None
    key, body = members[0]
    spec = vocabulary.types.get(key.text)
    if spec is None:
        observed = [t for t, s in vocabulary.types.items() if s.kind == "observed"]
        problems.add(
            name, key.line, key.text, Message("fault.unknown_type_here", hint=did_you_mean(key.text, observed))
        )
        return None
    if spec.kind != "observed":
        problems.add(name, key.line, key.text, Message("fault.not_observed"))
        return None
    fields: dict[str, Scalar] = {}
    for field_key, value in body.pairs():
        if field_key.text == _FROM:
            continue
        problem = _typed_problem(vocabulary, key.text, field_key.text, value)
        if problem:
            problems.add(name, field_key.line, f"{key.text}.{field_key.text}", problem)
        else:
            fields[field_key.text] = vocabulary.coerce(key.text, field_key.text, value.scalar())
    return Fact(key.text, fields, (Provenance("user", name, key.line, _origin(node, body)),))


def _typed_problem(vocabulary: Vocabulary, type_name: str, field_name: str, value: Node) -> Message | None:
    known = vocabulary.types[type_name].fields
    if field_name not in known:
        return Message("fault.unknown_field", hint=did_you_mean(field_name, known))
    if value.kind != "scalar":
        return Message("fault.one_value")
    if not value.quoted and value.text in ("", "~", "null"):
        return Message("fault.empty")
    return vocabulary.check(type_name, field_name, value.scalar())


def _origin(node: Node, body: Node) -> str:
    origin = node.get(_FROM) or body.get(_FROM)
    return origin.text if origin is not None and origin.kind == "scalar" and origin.text else READER


# --- loose facts -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Draft:
    """A fact in the making; `more` are the lines that add fields to it."""

    type: str
    fields: dict[str, Scalar]
    line: int
    more: list[tuple[int, tuple[str, ...]]] = field(default_factory=list)

    def add(self, fields: Mapping[str, Scalar], line: int) -> None:
        """Fill in fields that are not known yet, and remember where they stand."""
        new = {name: value for name, value in fields.items() if name not in self.fields}
        if new:
            self.fields.update(new)
            self.more.append((line, tuple(new)))


@dataclass(slots=True)
class _Attribute:
    """Fields that belong to the GPUs of the file, with the key that states them."""

    draft: _Draft
    key: str
    text: str


@dataclass(slots=True)
class _Loose:
    """Reads one loose file; drafts are joined when the whole file was seen."""

    name: str
    vocabulary: Vocabulary
    aliases: Aliases
    phrases: Phrases
    context: Context
    drafts: list[_Draft] = field(default_factory=list)
    devices: list[_Draft] = field(default_factory=list)
    attributes: list[_Attribute] = field(default_factory=list)
    statements: list[Fact] = field(default_factory=list)
    unclear: list[tuple[int, str]] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)

    def read(self, root: Node) -> FactsReading:
        for node in [root] if root.kind != "list" else root.elements():
            if node.kind == "map":
                self._members(node, "")
            else:
                for text, line in _scalars(node):
                    self._sentence(text, line)
        return self.result()

    def labelled(self, entry: Entry) -> tuple[str, str] | None:
        """The key and the value of an entry; of a bare item those that it means by itself, None where it means none."""
        if entry.label:
            return entry.label, entry.value
        cards = CONVERTERS["gpus"][0](entry.value, self.context) or []
        if any(self.context.names.identify(str(card.get("name", ""))) for card in cards):
            return "gpu", entry.value
        versioned = _VERSIONED.match(entry.value)
        found = self.aliases.find(versioned["label"]) if versioned else None
        if versioned and found and found.alias.forms and found.alias.converter in ("version", "driver"):
            return versioned["label"], versioned["value"]
        return ("os", entry.value) if CONVERTERS["os"][0](entry.value, self.context) else None

    def entry(self, key: str, found: Found, text: str, line: int) -> bool:
        """Keep what a value says; false, and nothing kept, where the alias cannot read it."""
        drafts = self._drafts(found, text, text, line) or []
        # `GPU: 0` is as often an index as a number of cards.
        kept = [draft for draft in drafts if found.alias.converter != "gpus" or draft.type == "gpu"]
        for draft in kept:
            self._keep(draft, key, text, found.alias)
        return bool(kept)

    def result(self) -> FactsReading:
        """Everything that was read so far, joined."""
        self._join_gpus()
        self._settle_wsl()
        facts = [*self._merged(self.devices), *self._merged(self.drafts), *self.statements]
        listed = [f"{self.name}:{line}: {text}" for line, text in sorted(self.unclear)]
        return FactsReading(_distinct(facts), listed, tuple(self.passages))

    def _members(self, node: Node, outer: str) -> None:
        for key, value in node.pairs():
            self._member(key.text, f"{outer} {key.text}".strip(), value)

    def _member(self, own: str, key: str, value: Node) -> None:
        """Read `key: value`; `own` is the key without the sections around it, which often say nothing."""
        if value.kind == "scalar" and not value.quoted and value.text.strip().casefold() in _NOTHING:
            return
        found = self.aliases.find(key) or (self.aliases.find(own) if self._in_section(key, own) else None)
        if value.kind == "map" and (found is None or found.alias.converter not in (*_PAIRED, "gpus")):
            self._members(value, key)
            return
        if found is not None and found.alias.converter == "gpus" and value.kind != "scalar":
            self._gpu_nodes(key, found, value)
        elif found is not None:
            self._aliased(key, found, value)
        elif not self._package(own, value) and not self._variable(own, value):
            self._uncovered(key, value)

    def _in_section(self, key: str, own: str) -> bool:
        outer = normal_key(key[: -len(own)])
        return outer in self.aliases.sections or not outer

    def _aliased(self, key: str, found: Found, value: Node) -> None:
        alias = found.alias
        paired = alias.converter in _PAIRED and value.kind == "map"
        texts = list(_pairs(value) if paired else _scalars(value))
        glue = " " if alias.converter == "targets" else ", "
        given = glue.join(text for text, _ in texts)
        if alias.converter in ("text", "targets"):
            texts = [(given, value.line)]
        for text, line in texts:
            shown = f"{key}: {given}" if truth(given, self.context) else given
            drafts = self._drafts(found, text, shown, line)
            if drafts is None and alias.converter == "environment":
                # The values of variables that are not on the list are nobody's business.
                self.unclear.append((line, f"{key}: {text.partition('=')[0][:60]} (not kept)"))
            elif drafts is None:
                self._uncovered_text(key, text, line)
            for draft in drafts or ():
                self._keep(draft, key, text, alias)

    def _drafts(self, found: Found, text: str, given: str, line: int) -> list[_Draft] | None:
        """The facts that a value gives, None where the converter or the vocabulary does not take it."""
        groups = self._convert(found.alias, text)
        if groups is None:
            return None
        drafts: list[_Draft] = []
        for outputs in groups:
            for type_name, template in found.alias.gives.items():
                fields = _fill(template, {**outputs, "text": given[:200], "rest": found.rest})
                if fields is None:
                    continue
                if any(self.vocabulary.check(type_name, f, v) for f, v in fields.items()):
                    return None
                checked = {f: self.vocabulary.coerce(type_name, f, v) for f, v in fields.items()}
                drafts.append(_Draft(type_name, checked, line))
                if type_name == "gpu" and found.alias.converter == "gpus":
                    drafts += [_Draft(type_name, dict(checked), line) for _ in range(int(outputs.get("count", 1)) - 1)]
        return drafts

    def _convert(self, alias: Alias, text: str) -> list[Outputs] | None:
        if len(text) > MAX_VALUE:
            return None  # No version or name is that long; free text is for phrases and readers.
        if alias.converter == "choice":
            value = _choice(text, alias.values, self.context)
            return None if value is None else [] if value == "" else [{"value": value}]
        return CONVERTERS[alias.converter][0](text, self.context)

    def _keep(self, draft: _Draft, key: str, text: str, alias: Alias) -> None:
        if draft.type != "gpu":
            self.drafts.append(draft)
        elif alias.converter == "gpus":
            self.devices.append(draft)
        else:
            self.attributes.append(_Attribute(draft, key, text))

    def _gpu_nodes(self, key: str, found: Found, value: Node) -> None:
        """A list of GPUs, or mappings that describe one GPU each."""
        for node in value.elements() if value.kind == "list" else [value]:
            if node.kind == "scalar":
                self._aliased(key, found, node)
                continue
            inner = _Loose(self.name, self.vocabulary, self.aliases, self.phrases, self.context)
            inner._members(node, "gpu")
            inner._join_gpus()
            self.devices += inner.devices
            self.drafts += inner.drafts
            self.statements += inner.statements
            self.unclear += inner.unclear
            self.passages += inner.passages

    def _package(self, key: str, value: Node) -> bool:
        if value.kind != "scalar" or normal_key(key) not in self.aliases.packages:
            return False
        found = version(value.text, self.context)
        if found:
            self.drafts.append(_Draft("package", {"name": normal_name(key), "version": found[0]["value"]}, value.line))
        return bool(found)

    def _variable(self, key: str, value: Node) -> bool:
        """A key that is itself an environment variable on the allow-list."""
        allowed = re.match(r"[A-Z][A-Z0-9_]{1,60}\Z", key) and key.startswith(self.aliases.env_prefixes)
        if value.kind != "scalar" or not allowed:
            return False
        self.drafts.append(_Draft("env_var", {"name": key, "value": value.text}, value.line))
        return True

    def _uncovered(self, key: str, value: Node) -> None:
        texts = list(_scalars(value))
        if texts:
            self._uncovered_text(key, ", ".join(text for text, _ in texts), value.line)

    def _uncovered_text(self, key: str, text: str, line: int) -> None:
        """Keep what no alias covers; phrases and environment assignments may still be found in it."""
        if _PRIVATE.search(key):
            self.unclear.append((line, f"{key}: (not kept)"))
            return
        self.drafts.append(_Draft("stated", {"key": normal_key(key), "value": text[:MAX_VALUE]}, line))
        self._sentence(text, line, key)

    def _sentence(self, text: str, line: int, key: str = "") -> None:
        text = text[:MAX_SENTENCE].strip()
        if not text:
            return
        variables = environment(text, self.context) or []
        self.drafts += [_Draft("env_var", {"name": v["name"], "value": v["value"]}, line) for v in variables]
        said = self._phrases_in(key, text, line)
        if " " in text:
            self.passages.append(Passage(line, text))
        if not variables and not said:
            shown = " ".join(text.split())[:200]
            self.unclear.append((line, f"{key}: {shown}" if key else shown))

    def _phrases_in(self, key: str, text: str, line: int) -> bool:
        answer = truth(text, self.context)
        if answer and not answer[0]["value"]:
            return False  # "hangs: no" does not say that it hangs.
        words = " ".join(re.split(r"[\s_\-]+", key))
        said = self.phrases.match(text if not key else words if answer else f"{words}: {text}", self.name, line, READER)
        self.statements += said
        return bool(said)

    def _join_gpus(self) -> None:
        """Give attributes to the GPUs of the file, repeat a lone GPU as often as the file counts, and number them."""
        counts = {
            d.fields["number"] for d in self.drafts if d.fields.get("kind") == "gpu_count" and "number" in d.fields
        }
        count = min(int(counts.pop()), MAX_COUNT) if len(counts) == 1 else 1
        if self.attributes and not self.devices:
            first = self.attributes.pop(0).draft
            self.devices.append(_Draft("gpu", dict(first.fields), first.line))
        if len(self.devices) == 1 and count > 1:
            self.devices = [_Draft("gpu", dict(self.devices[0].fields), self.devices[0].line) for _ in range(count)]
        alike = len({(d.fields.get("name"), d.fields.get("gfx")) for d in self.devices}) == 1
        for attribute in self.attributes:
            if alike:
                for device in self.devices:
                    device.add(attribute.draft.fields, attribute.draft.line)
            else:
                # With several kinds of GPU nobody can tell which one is meant.
                self._uncovered_text(attribute.key, attribute.text, attribute.draft.line)
        self.attributes = []
        for index, device in enumerate(self.devices):
            device.fields["index"] = index

    def _settle_wsl(self) -> None:
        """Under WSL torch runs in Linux, so that `os: Windows 10` in the same file names the host."""
        systems = [d for d in self.drafts if d.type == "os"]
        if any(d.fields.get("wsl") is True for d in systems):
            for draft in systems:
                if draft.fields.get("family") == "windows":
                    del draft.fields["family"]

    def _merged(self, drafts: list[_Draft]) -> Iterator[Fact]:
        """Facts of one identity become one where they do not contradict each other."""
        kept: list[_Draft] = []
        for draft in drafts:
            same = next((other for other in kept if self._same(other, draft)), None)
            if same is None:
                kept.append(draft)
            else:
                same.add(draft.fields, draft.line)
        for draft in kept:
            places = [Provenance("user", self.name, draft.line, READER)]
            places += [Provenance("user", self.name, line, READER, names) for line, names in draft.more]
            yield Fact(draft.type, draft.fields, tuple(places))

    def _same(self, one: _Draft, other: _Draft) -> bool:
        if one.type != other.type:
            return False
        identity = self.vocabulary.types[one.type].identity
        if any(one.fields.get(f) != other.fields.get(f) for f in identity):
            return False
        return all(one.fields[f] == v for f, v in other.fields.items() if f in one.fields)


def _scalars(node: Node) -> Iterator[tuple[str, int]]:
    """Every scalar below a node, members of a mapping as `key: value`."""
    if node.kind == "scalar":
        yield node.text.strip(), node.line
    for item in node.elements():
        yield from _scalars(item)
    for key, value in node.pairs():
        for text, line in _scalars(value):
            yield f"{key.text}: {text}", line


def _pairs(node: Node) -> Iterator[tuple[str, int]]:
    """The scalar members of a mapping as `key=value`."""
    for key, value in node.pairs():
        if value.kind == "scalar":
            yield f"{key.text}={value.text}", value.line


def _fill(template: Mapping[str, Scalar], outputs: Mapping[str, Scalar]) -> dict[str, Scalar] | None:
    """The template with its outputs; None where it asks for outputs and the converter gave none of them."""
    wanted = [v[1:] for v in template.values() if isinstance(v, str) and v.startswith("$")]
    telling = [w for w in wanted if w not in ("text", "rest")]
    if telling and not any(w in outputs for w in telling):
        return None
    fields: dict[str, Scalar] = {}
    for name, value in template.items():
        if not (isinstance(value, str) and value.startswith("$")):
            fields[name] = value
        elif value[1:] in outputs:
            fields[name] = outputs[value[1:]]
    return fields


def _choice(text: str, values: Mapping[str, Scalar], context: Context) -> Scalar | None:
    """The value of the longest choice that the text holds as words; yes and no in every way of writing them."""
    lower = " ".join(text.split()).casefold()
    if lower in values:
        return values[lower]
    answer = truth(lower, context)
    if answer:
        return values.get("yes" if answer[0]["value"] else "no")
    for choice in sorted(values, key=len, reverse=True):
        if choice not in ("yes", "no") and re.search(rf"(?:\A|[^a-z0-9]){re.escape(choice)}(?![a-z0-9])", lower):
            return values[choice]
    return None


def _distinct(facts: list[Fact]) -> list[Fact]:
    """The facts, each statement once."""
    seen: dict[tuple[str, tuple[tuple[str, Scalar], ...]], Fact] = {}
    for fact in facts:
        seen.setdefault(fact.key(), fact)
    return list(seen.values())
