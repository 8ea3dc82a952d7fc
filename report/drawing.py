"""What every text form is drawn with: labels, reasons with their places, commands, lists.

May live here: layout that several documents share. Must not: wording (knowledge/messages.yaml), one document's order.
Every string that is drawn goes through `clean`: it may come from a pasted text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from .layout import Look, can_show, clean, columns, command_lines, display_width, fit, hang, paint, wrap
from .messages import Words
from .model import Fix, Reason, Report, Step

LABEL = 10  # columns of a label with the space after it
_WHERE = 28  # the widest column of places

_M = TypeVar("_M", bound=BaseModel)


def shown_in(model: _M, encoding: str) -> _M:
    """The model with the characters that the encoding lacks replaced first, so that columns still line up."""
    if can_show("✗·—├", encoding):
        return model
    return type(model).model_validate(_fitted(model.model_dump(by_alias=True), encoding))


def _fitted(value: Any, encoding: str) -> Any:
    if isinstance(value, str):
        return fit(value, encoding)
    if isinstance(value, dict):
        return {key: _fitted(item, encoding) for key, item in value.items()}
    return [_fitted(item, encoding) for item in value] if isinstance(value, list | tuple) else value


def reason_lines(reasons: Sequence[Reason], width: int, words: Words) -> list[str]:
    """Sentences with the places they were read at in a right column."""
    places = [clean(words.place(reason.where)) for reason in reasons]
    places = [place if display_width(place) <= _WHERE else "…" + place[-_WHERE + 1 :] for place in places]
    widest = max((display_width(place) for place in places), default=0)
    return [
        line
        for reason, place in zip(reasons, places, strict=True)
        for line in columns(clean(reason.text), place, width, widest)
    ]


def mirror_steps(fix: Fix) -> list[Step]:
    """The steps that install from the mirror."""
    return [step for step in fix.steps if fix.mirror_url and fix.mirror_url in (step.argv or ())]


def steps_here(steps: Sequence[Step], platform: str | None) -> list[Step]:
    """The steps for this platform. Where nothing is said of WSL or containers in particular, those for Linux, or for
    the Windows around WSL. Where the platform is unknown, those of the first one named: mixed ones are no procedure."""
    named = [step.platform for step in steps if step.platform != "any"]
    if platform is None:
        platform = named[0] if named else None
    elif platform not in named and platform in {"wsl", "container"}:
        platform = "windows" if platform == "wsl" and "linux" not in named else "linux"
    return [step for step in steps if step.platform in ("any", platform)]


def actions(fix: Fix, platform: str | None) -> list[Step]:
    """The steps of a fix for a platform, with the first tool where several do the same."""
    here = steps_here(fix.steps, platform)
    tool = next((step.tool for step in here if step.tool), None)
    return [step for step in here if step.tool in (None, tool)]


def is_posix(platform: str | None, step_platform: str = "any") -> bool:
    """Whether a command is certainly for a POSIX shell."""
    known = platform if step_platform == "any" else step_platform
    return known in {"linux", "macos", "wsl", "container"}


class Drawing:
    """Lines of a document in one language, width and colour setting."""

    def __init__(self, words: Words, look: Look, platform: str | None, *, verbose: bool) -> None:
        self.words = words
        self.look = look
        self.width = look.width
        self.platform = platform
        self.verbose = verbose

    def headline(self, label: str, style: str, sentence: str, more: Sequence[str]) -> list[str]:
        """The verdict: a coloured label, the sentence behind it, more lines beneath."""
        indent = self.indent(label)
        body = [*wrap(sentence, self.width - indent), *more] or [""]
        shown = paint(label, style, self.look)
        if self.width < 50:
            return [shown, *("  " + line for line in body)]
        first, *rest = body
        return [f"{shown}  {first}", *(" " * indent + line for line in rest)]

    def indent(self, label: str) -> int:
        """Where the text of the verdict block begins."""
        return display_width(label) + 2 if self.width >= 50 else 2

    def paragraph(self, key: str, items: Sequence[str]) -> list[str]:
        """`Not checked: a; b.`"""
        if not items:
            return []
        words = self.words
        text = words("list.stop").join(clean(item).rstrip(".。") for item in items) + words("fix.stop")
        return wrap(words(key) + words("fix.colon.inner") + text, self.width)

    def labelled(self, label: str, sentences: Iterable[str]) -> list[str]:
        """Sentences behind one label, each beginning on its own line."""
        room = self.width - 2 - LABEL
        lines = [line for sentence in sentences for line in wrap(clean(sentence), room)]
        return self.labelled_raw(self.words(f"label.{label}"), lines) if lines else []

    def reasons(self, label: str, reasons: Sequence[Reason]) -> list[str]:
        """An argument behind its label."""
        lines = reason_lines(reasons, self.width - 2 - LABEL, self.words)
        return self.labelled_raw(self.words(f"label.{label}"), lines) if lines else []

    def commands(self, label: str, text: str) -> list[str]:
        """A command behind a label."""
        lines = command_lines(text, self.width - 2 - LABEL, posix=is_posix(self.platform))
        return self.labelled_raw(self.words(f"label.{label}"), [self.command(line) for line in lines])

    def labelled_raw(self, label: str, lines: Sequence[str]) -> list[str]:
        """Lines that are wrapped already, behind a label."""
        return ["  " + line for line in hang(lines, label, max(LABEL, display_width(label) + 2))]

    def body(self, lines: Iterable[str]) -> list[str]:
        """Lines beneath a labelled one."""
        return [" " * (2 + LABEL) + line for line in lines]

    def command(self, line: str) -> str:
        """One line of a command, made to stand out."""
        return paint(line, "command", self.look)

    def listing(self, key: str, items: Iterable[str]) -> list[str]:
        """A heading and one dash an item."""
        lines = [line for item in items for line in hang(wrap(clean(item), self.width - 4), "  - ", 4)]
        return [self.words(key) + self.words("fix.colon"), *lines] if lines else []


def is_answer(report: Report) -> bool:
    """Whether the report answers a question, and finds nothing wrong."""
    return report.verdict == "ok" and any(finding.answers for finding in report.findings[:1])


def verdict_key(report: Report) -> str:
    """The message that a report begins with: its verdict, or that it answers a question."""
    plan = report.plan
    if report.verdict == "ok" and plan is not None:
        return "plan.answer" if plan.choices else f"plan.{plan.verdict}"
    if is_answer(report):
        return "plan.answer"
    return f"verdict.{report.verdict}"


def advised(report: Report, words: Words) -> list[str]:
    """The recommendations, each with the program that shows it."""
    return [
        words("advice.sample", text=advice.text, sample=advice.sample) if advice.sample else advice.text
        for advice in report.recommendations
    ]
