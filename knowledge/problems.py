"""What is wrong with a knowledge or facts file, said once and precisely.

May live here: the problem record, its collector and the error that carries them. Must not: any check, any words.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..errors import InputError
from ..messages import NOTHING, Lang, Message


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One fault: `file:line: field: message`."""

    file: str
    line: int
    field: str
    message: Message

    def said(self, lang: Lang) -> str:
        """The form that users and editors read, in a language."""
        where = f"{self.file}:{self.line}" if self.line else self.file
        return ": ".join(part for part in (where, self.field, self.message.said(lang)) if part)

    def __str__(self) -> str:
        return self.said("en")


class KnowledgeError(InputError):
    """Raised with every problem at once, so that nobody fixes a file fault by fault; `problems` holds them."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sorted(set(problems)))
        super().__init__("fault.several", problems=len(self.problems))
        self.args = (self.problems,)

    def said(self, lang: Lang) -> str:
        """Every problem, one a line."""
        return "\n".join(problem.said(lang) for problem in self.problems)


class Problems:
    """Collects problems while loading goes on."""

    def __init__(self) -> None:
        self.found: list[Problem] = []

    def add(self, file: Path | str, line: int, field: str, message: Message) -> None:
        """Record one problem."""
        self.found.append(Problem(str(file), line, field, message))

    def raise_if_any(self) -> None:
        """Raise KnowledgeError where something was recorded."""
        if self.found:
            raise KnowledgeError(self.found)


def did_you_mean(name: str, known: Iterable[str]) -> Message:
    """`; did you mean "x"?` for the nearest known name, or nothing."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return Message("hint.did_you_mean", name=near[0]) if near else NOTHING
