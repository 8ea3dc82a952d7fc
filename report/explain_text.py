"""The text form of `why-not`, `what-if` and `how-to`.

May live here: the order and layout of those answers. Must not: wording (knowledge/messages.yaml), reasoning.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence

from .explanations import ChangeView, Difference, HowTo, Way, WhatIf, WhyNot
from .layout import Look, clean, command_lines, fit, hang, joined, paint, wrap
from .messages import Words
from .model import Lang, ProofNode, Source
from .proof_text import TreeDrawing
from .text import Detail

# Levels beneath a reason; all with -v.
_DEPTH = 3
_SHALLOW = 1
_ALL = 200
_REASONS = 6
_MARK = {"error": "✗", "warning": "✗", "info": "·"}


def render_why_not(
    answer: WhyNot,
    *,
    lang: Lang = "en",
    look: Look | None = None,
    detail: Detail = "normal",
    pages: Mapping[str, Source] | None = None,
) -> str:
    """Why something does not hold, as a tree under one sentence; or that it holds, with where to look."""
    drawing = _Answer(lang, look, detail, _DEPTH, pages)
    if answer.holds:
        drawing.sentence(answer.summary)
        drawing.line(drawing.words("whynot.see_why", target=quoted(answer.target)))
        return drawing.text()
    drawing.sentence(answer.summary + drawing.words("fix.colon"))
    drawing.branches(answer.reasons)
    if answer.changes:
        told = drawing.words("list.and").join(c.title for c in answer.changes)
        command = "gpurules what-if " + " ".join(quoted(c.change) for c in answer.changes)
        drawing.sentence(drawing.words("whynot.changes") + drawing.words("fix.colon.inner") + told)
        drawing.command(command)
    drawing.finish()
    return drawing.text()


def render_what_if(
    answer: WhatIf,
    *,
    lang: Lang = "en",
    look: Look | None = None,
    detail: Detail = "normal",
    pages: Mapping[str, Source] | None = None,
) -> str:
    """Verdicts before and after, then what goes, what comes and what is chosen, each with its reason."""
    drawing = _Answer(lang, look, detail, _SHALLOW, pages)
    words = drawing.words
    told = words("list.and").join(c.title for c in answer.changes)
    names = [words(f"verdict.{v}") for v in (answer.verdict_before, answer.verdict_after)]
    style = {"ok": "ok", "problems": "error", "unknown": "warning"}[answer.verdict_after]
    drawing.sentence(words("whatif.with", changes=told) + words("fix.colon"))
    drawing.line("  " + names[0] + " → " + paint(names[1], style, drawing.look))
    for key, differences in (("whatif.gone", answer.gone), ("whatif.new", answer.new), ("whatif.stays", answer.stays)):
        drawing.differences(key, differences)
    if not (answer.gone or answer.new):
        drawing.line("")
        drawing.line(words("whatif.same_findings"))
    old, new = (n or words("whatif.no_build") for n in (answer.recommendation_before, answer.recommendation_after))
    drawing.line("")
    if old == new:
        drawing.sentence(words("whatif.same_build", build=new))
    else:
        drawing.sentence(words("whatif.build", before=old, after=new) + words("fix.colon"))
        drawing.branches(answer.choice)
    drawing.risks(answer.changes)
    drawing.finish()
    return drawing.text()


def render_how_to(
    answer: HowTo,
    *,
    lang: Lang = "en",
    look: Look | None = None,
    detail: Detail = "normal",
    pages: Mapping[str, Source] | None = None,
) -> str:
    """The ways, cheapest first, with what they risk; or why there is none."""
    drawing = _Answer(lang, look, detail, _SHALLOW, pages)
    words = drawing.words
    drawing.sentence(answer.summary + ("" if not answer.ways and not answer.impossible else words("fix.colon")))
    if answer.impossible:
        drawing.branches(answer.impossible)
    if answer.impossible and answer.ways:
        drawing.line("")
        drawing.sentence(words("howto.card") + words("fix.colon"))
    for number, way in enumerate(answer.ways, 1):
        drawing.way(number, way, proof=detail == "all")
    if answer.tried:
        drawing.line("")
        drawing.line(words("howto.proven" if answer.complete else "howto.stopped", n=answer.tried))
    drawing.finish()
    return drawing.text()


def quoted(text: str) -> str:
    """A target or change as one word of a shell."""
    return f'"{text}"' if shlex.quote(text) != text and not set('"$`\\!') & set(text) else shlex.quote(text)


class _Answer:
    """The lines of one answer."""

    def __init__(
        self, lang: Lang, look: Look | None, detail: Detail, depth: int, pages: Mapping[str, Source] | None
    ) -> None:
        self.words = Words(lang)
        self.look = look or Look()
        self.detail = detail
        self.lines: list[str] = []
        whole = detail == "all"
        self.trees = TreeDrawing(self.words, self.look, _ALL if whole else depth, remarks=whole, pages=pages)

    def text(self) -> str:
        return fit(joined(self.lines), self.look.encoding)

    def line(self, text: str) -> None:
        self.lines.append(text)

    def sentence(self, text: str) -> None:
        self.lines += wrap(clean(text), self.look.width)

    def command(self, text: str) -> None:
        shown = command_lines(text, self.look.width - 2, posix=True)
        self.lines += ["  " + paint(line, "command", self.look) for line in shown]

    def branches(self, nodes: Sequence[ProofNode]) -> None:
        """Trees beneath the last line; without -v only the first of many."""
        shown = nodes if self.detail == "all" else nodes[:_REASONS]
        hidden = len(nodes) - len(shown)
        for i, node in enumerate(shown):
            last = i == len(shown) - 1 and not hidden
            self.lines += self.trees.tree(node, "└─ " if last else "├─ ", "   " if last else "│  ")
        if hidden:
            self.lines.append("└─ " + self.words.count("count.more", hidden))

    def differences(self, key: str, differences: Iterable[Difference]) -> None:
        """A heading and the findings under it."""
        listed = list(differences)
        if not listed or (key == "whatif.stays" and self.detail == "verdict"):
            return
        self.lines += ["", self.words(key) + self.words("fix.colon")]
        for difference in listed:
            mark = "✓" if key == "whatif.gone" else _MARK[difference.severity]
            text = f"{clean(difference.title)}   [{difference.subject}]"
            self.lines += hang(wrap(text, self.look.width - 2), f"{mark} ", 2)
            if self.detail != "verdict":
                self._indented(difference.reasons)

    def _indented(self, nodes: Sequence[ProofNode]) -> None:
        for i, node in enumerate(nodes):
            last = i == len(nodes) - 1
            self.lines += self.trees.tree(node, "  └─ " if last else "  ├─ ", "     " if last else "  │  ")

    def way(self, number: int, way: Way, *, proof: bool) -> None:
        """One set of changes with its risks, the next command and, if wanted, the proof."""
        titles = self.words("list.and").join(c.title for c in way.changes)
        if titles:
            self.lines += hang(wrap(clean(titles), self.look.width - 4), f"{number}.", 4)
        for change in way.changes:
            for remark in (change.note, change.risk):
                if remark:
                    self.lines += hang(wrap(clean(remark), self.look.width - 6), "    - ", 6)
        if way.then:
            self._labelled("howto.then" if way.changes else "howto.run", way.then)
        if way.changes:
            self._labelled("howto.preview", "gpurules what-if " + " ".join(quoted(c.change) for c in way.changes))
        if proof:
            self._indented(way.proof)

    def _labelled(self, key: str, command: str) -> None:
        """A command beneath the words that say what it is for."""
        self.lines.append("    " + self.words(key) + self.words("fix.colon"))
        shown = command_lines(command, self.look.width - 6, posix=True)
        self.lines += ["      " + paint(line, "command", self.look) for line in shown]

    def risks(self, changes: Sequence[ChangeView]) -> None:
        """What the changes may break."""
        told = [c.risk for c in changes if c.risk]
        if told and self.detail != "verdict":
            self.lines.append("")
            self.sentence(self.words("label.risk") + self.words("fix.colon.inner") + self.words("list.stop").join(told))

    def finish(self) -> None:
        """The sources, unless only the verdict is wanted."""
        if self.detail != "verdict":
            self.lines += self.trees.sources()
