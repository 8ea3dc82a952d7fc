"""Phrases: what people say in questions and in facts files, recognised as statements.

May live here: matching sentences against the phrase catalog and naming what a question mentions. Must not: any phrase
(they are data in `facts/phrases.yaml`) and any conclusion from what was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from ..facts import Fact, Provenance, Scalar
from ..messages import Message
from .problems import Problems
from .yamlnodes import load

MAX_TEXT = 20_000
MAX_SENTENCE = 2_000
MAX_DETAIL = 120
# A full stop ends a sentence only before white space, so that versions stay whole.
_SENTENCE_END = re.compile(r"[.!?;](?:\s|\Z)|[。！？；\n\r]")
# RE2 knows ASCII word characters only; with the same reading `\b` also stands between a Chinese and a Latin letter.
_FLAGS = re.IGNORECASE | re.ASCII

_LINES = ("RTX", "GTX", "RX")
_BARE_MODEL = re.compile(
    r"(?P<before>\A|[^\w.\-+])(?P<line>(?:[rg]tx|rx|geforce|radeon|quadro|tesla|titan|pro|arc)\s+)?"
    r"(?P<model>[1-9]\d{3}(?:\s?(?:ti|super|xtx|xt|d\b))*)s?\b",
    re.IGNORECASE | re.ASCII,
)


class GpuFinder(Protocol):
    """What this package needs of the GPU catalog: the product of a name, and the products in a sentence."""

    def identify(self, text: str) -> str | None:
        """The product that the text names beyond doubt, or None."""

    def find_all(self, text: str) -> Sequence[tuple[str, int]]:
        """Every product that a sentence names, each with its count."""


@dataclass(frozen=True, slots=True)
class Said:
    """A recognised statement: its kind, the words that say it and a number that they hold."""

    kind: str
    detail: str
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a statement is in a question of what fits: the question itself (of versions that are wished for, or of those
    that are there), a key of the machine, or a goal."""

    fits: str | None
    machine: str | None
    goal: str | None


class _Phrase:
    """The ways of saying one thing; patterns are compiled when the first text arrives."""

    def __init__(self, kind: str, patterns: Sequence[str], unless: Sequence[str]) -> None:
        self.kind = kind
        self._sources = (tuple(patterns), tuple(unless))

    @cached_property
    def _compiled(self) -> tuple[list[re.Pattern[str]], list[re.Pattern[str]]]:
        patterns, unless = self._sources
        return [re.compile(p, _FLAGS) for p in patterns], [re.compile(p, _FLAGS) for p in unless]

    def said(self, sentence: str) -> Said | None:
        patterns, unless = self._compiled
        for pattern in patterns:
            match = pattern.search(sentence)
            if match:
                return None if any(u.search(sentence) for u in unless) else _said(self.kind, match)
        return None


class Phrases:
    """The phrase catalog, ready to match; immutable and shareable."""

    def __init__(self, phrases: Iterable[_Phrase], meanings: Mapping[str, Meaning]) -> None:
        self._phrases = tuple(phrases)
        self.meanings = meanings

    @classmethod
    def compile(cls, entries: Iterable[Mapping[str, Any]]) -> Phrases:
        """From catalog entries: `kind`, `patterns` and, optionally, `unless` (patterns that take it back)."""
        rows = list(entries)
        return cls(
            (_Phrase(str(e["kind"]), list(e["patterns"]), list(e.get("unless", ()))) for e in rows),
            {str(e["kind"]): Meaning(e.get("fits"), e.get("machine"), e.get("goal")) for e in rows},
        )

    @property
    def kinds(self) -> tuple[str, ...]:
        """Every statement kind that a phrase may give."""
        return tuple(p.kind for p in self._phrases)

    def said(self, text: str) -> list[Said]:
        """What the text says, each kind once, in the catalog's order."""
        sentences = _sentences(text[:MAX_TEXT])
        found: list[Said] = []
        for phrase in self._phrases:
            first = next((s for s in map(phrase.said, sentences) if s is not None), None)
            if first is not None:
                found.append(first)
        return found

    def match(self, text: str, source: str, line: int | None = None, reader: str = "question") -> list[Fact]:
        """What the text says, as `statement` facts."""
        origin = Provenance("user", source, line, reader)
        return [_statement(said, origin) for said in self.said(text)]


def read_question(
    text: str, phrases: Phrases, names: GpuFinder, source: str = "question", line: int | None = None
) -> list[Fact]:
    """The statements of a question, and a `gpu_mentioned` statement for each product that it names.

    A product that a question names need not be in the machine, so no `gpu` fact is made of it.
    """
    origin = Provenance("user", source, line, "question")
    facts = phrases.match(text, source, line)
    mentioned: dict[str, int] = {}
    for sentence in _sentences(text[:MAX_TEXT]):
        for product, count in names.find_all(with_lines(sentence, names)):
            mentioned[product] = max(count, mentioned.get(product, 0))
    return facts + [_statement(Said("gpu_mentioned", product, count), origin) for product, count in mentioned.items()]


def with_lines(text: str, names: GpuFinder) -> str:
    """The text with its bare model numbers made whole: `a 5090` becomes `a RTX 5090` where just one line has a 5090."""
    return _BARE_MODEL.sub(lambda match: _with_line(match, names), text)


def _with_line(match: re.Match[str], names: GpuFinder) -> str:
    if match["line"]:
        return match.group(0)
    # A plural loses its s: "two 4090s" is "two RTX 4090".
    named = [line for line in _LINES if names.identify(f"{line} {match['model']}")]
    return f"{match['before']}{named[0]} {match['model']}" if len(named) == 1 else match.group(0)


def load_phrases(path: Path, problems: Problems) -> Phrases:
    """Read `phrases.yaml`; faults are recorded in `problems`."""
    root = load(path, problems, path.name)
    entries: list[Mapping[str, Any]] = []
    rows = root.get("rows") if root else None
    for row in rows.elements() if rows else ():
        kind, patterns = row.get("kind"), row.get("patterns")
        if kind is None or patterns is None or not patterns.elements():
            problems.add(row.file, row.line, "", Message("fault.phrase_shape"))
            continue
        for part in ("patterns", "unless"):
            listed = row.get(part)
            for pattern in listed.elements() if listed else ():
                fault = pattern_fault(pattern.text)
                if fault:
                    problems.add(pattern.file, pattern.line, f"{kind.text}.{part}", fault)
        entries.append(row.plain())
    return Phrases.compile(entries if not problems.found else ())


def pattern_fault(pattern: str) -> Message | None:
    """Why RE2 and Python's re do not both read a pattern alike, or None."""
    bare = re.sub(r"\\[^1-9]", "_", pattern)  # an escaped parenthesis opens nothing
    if re.search(r"\(\?(?!P<|:)|\\[1-9]|[*+?}]\+", bare):
        return Message("fault.pattern_means")
    try:
        re.compile(pattern, _FLAGS)
    except re.error as error:
        return Message("fault.invalid_pattern", error=error)
    return None


def _said(kind: str, match: re.Match[str]) -> Said:
    named = match.groupdict()
    number = (named.get("number") or "").replace(",", "").replace("，", "")  # 10,000
    detail = named.get("detail") or match.group(0)
    return Said(kind, " ".join(detail.split())[:MAX_DETAIL], int(number) if number and len(number) < 16 else None)


def _statement(said: Said, origin: Provenance) -> Fact:
    fields: dict[str, Scalar] = {"kind": said.kind, "detail": said.detail}
    if said.number is not None:
        fields["number"] = said.number
    return Fact("statement", fields, (origin,))


def _sentences(text: str) -> list[str]:
    """The sentences of a text, each at most MAX_SENTENCE characters."""
    found: list[str] = []
    start = 0
    for end in [m.end() for m in _SENTENCE_END.finditer(text)] + [len(text)]:
        sentence = text[start:end].strip()
        if sentence:
            found.append(sentence[:MAX_SENTENCE])
        start = end
    return found
