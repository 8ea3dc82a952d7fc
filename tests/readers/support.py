"""What tests of readers share: lines of a text, and facts as plain tuples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import dedent

from gpurules.facts import Fact, Scalar
from gpurules.probes.readers.line import Line

Reader = Callable[[Sequence[Line], str], list[Fact]]


def lines_of(text: str) -> list[Line]:
    return [Line(number, line) for number, line in enumerate(dedent(text).lstrip("\n").split("\n"), start=1)]


def facts_of(reader: Reader, text: str) -> list[Fact]:
    return reader(lines_of(text), "paste.txt")


def fields_of(facts: Sequence[Fact], kind: str) -> list[dict[str, Scalar]]:
    return [dict(fact.fields) for fact in facts if fact.type == kind]
