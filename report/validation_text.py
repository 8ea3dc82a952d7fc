"""The text form of `validate`: the verdict, one line a check, and what to do about a disagreement.

May live here: order and layout. Must not: wording, judgement.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from .drawing import Drawing, shown_in
from .layout import Look, clean, display_width, fit, joined, pad, paint, wrap
from .messages import Words
from .model import Lang
from .text import Detail
from .validation import CheckRow, Validation

_MARKS = {True: ("✓", "ok"), False: ("✗", "error"), None: ("·", "dim")}


def render_validation(
    result: Validation, *, lang: Lang = "en", look: Look | None = None, detail: Detail = "normal"
) -> str:
    """The validation as text that ends in a newline."""
    look = look or Look()
    drawing = _ValidationDrawing(shown_in(result, look.encoding), Words(lang), look, detail)
    return fit(joined(drawing.lines()), look.encoding)


def progress_line(check: str, outcome: Any, lang: Lang) -> str:
    """That a check runs (no outcome yet), or how it ended. outcome: has `state` and `seconds`."""
    words = Words(lang)
    title = words(f"validate.check.{check}")
    if outcome is None:
        return words("validate.running", check=title)
    state = words(f"validate.state.{outcome.state}")
    return words("validate.ran", check=title, state=state, seconds=f"{outcome.seconds:.1f}")


class _ValidationDrawing(Drawing):
    def __init__(self, result: Validation, words: Words, look: Look, detail: Detail) -> None:
        super().__init__(words, look, None, verbose=detail == "all")
        self.result = result
        self.detail = detail

    def lines(self) -> list[str]:
        blocks = [self.verdict()]
        if self.detail != "verdict":
            blocks += [self.table(), self.share()]
        blocks.append(self.report())
        return [line for i, block in enumerate(b for b in blocks if b) for line in ([""] if i else []) + block]

    def verdict(self) -> list[str]:
        result = self.result
        ends = Counter(row.observed for row in result.checks)
        told = [f"{self.words(f'validate.state.{state}')} {number}" for state, number in ends.most_common()]
        sentence = self.words(
            "validate.summary",
            device=result.device,
            torch=clean(result.torch or "?"),
            states=self.words("explain.and").join(told),
            seconds=f"{result.seconds:.0f}",
        )
        style = {"agrees": "ok", "disagrees": "error", "unknown": "warning"}[result.verdict]
        return self.headline(self.words(f"validate.verdict.{result.verdict}"), style, sentence, [])

    def table(self) -> list[str]:
        titles = [clean(row.title) for row in self.result.checks]
        room = max(map(display_width, titles), default=0)
        return [
            line
            for row, title in zip(self.result.checks, titles, strict=True)
            for line in self.row(row, pad(title, room))
        ]

    def row(self, row: CheckRow, title: str) -> list[str]:
        mark, style = _MARKS[row.agrees]
        state = self.words(f"validate.state.{row.observed}")
        predicted = self.words("validate.predicted", state=self.words(f"validate.state.{row.predicted}"))
        lines = [f"  {paint(mark, style, self.look)} {title}  {pad(state, 14)}  {predicted}"]
        told = [row.detail] if row.detail and (row.observed != "passed" or self.verbose) else []
        if row.agrees is False and row.predicted_value:
            told.append(self.words("validate.values", predicted=row.predicted_value, value=row.value or "?"))
        if row.predicted_mib and row.measured and "peak_mib" in row.measured and (row.agrees is False or self.verbose):
            peak = str(row.measured["peak_mib"])
            told.append(self.words("validate.memory", predicted=str(row.predicted_mib), peak=peak))
        if row.because and (row.agrees is False or self.verbose):
            told.append(row.because)
        if self.verbose and row.measured:
            told.append(", ".join(f"{name} {value:.2g}" if isinstance(value, float) else f"{name} {value}"
                                  for name, value in row.measured.items()))  # fmt: skip
        return lines + ["      " + line for text in told for line in wrap(clean(text), self.width - 6)]

    def share(self) -> list[str]:
        """What the checks were allowed to use."""
        told = self.words("validate.share", percent=f"{self.result.share:.0%}".rstrip("%"))
        return [paint(line, "dim", self.look) for line in wrap(told, self.width)]

    def report(self) -> list[str]:
        """What to do about a disagreement."""
        if self.result.verdict != "disagrees":
            return []
        return wrap(self.words("validate.report"), self.width)
