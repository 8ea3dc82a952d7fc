"""The text form of `recommend`: the command to run, why this build, what else works.

May live here: the order and layout of a recommendation. Must not: wording, the choice itself.
"""

from __future__ import annotations

from .citing import with_remark
from .drawing import Drawing, is_posix, shown_in
from .layout import Look, clean, command_lines, fit, hang, joined, wrap
from .messages import Words
from .model import Alternative, Lang, NoBuild, RecommendResult
from .text import Detail

_ALTERNATIVES = 3  # shown without -v
_STRUCK = 4


def render_recommend(
    result: RecommendResult, *, lang: Lang = "en", look: Look | None = None, detail: Detail = "normal"
) -> str:
    """The recommendation as text that ends in a newline."""
    look = look or Look()
    drawing = _RecommendDrawing(shown_in(result, look.encoding), Words(lang), look, detail)
    return fit(joined(drawing.lines()), look.encoding)


class _RecommendDrawing(Drawing):
    def __init__(self, result: RecommendResult, words: Words, look: Look, detail: Detail) -> None:
        super().__init__(words, look, result.platform, verbose=detail == "all")
        self.result = result
        self.detail = detail

    def lines(self) -> list[str]:
        result = self.result
        blocks = [self.nothing(result.none) if result.none else self.pick()]
        if self.detail != "verdict":
            blocks += [
                self.argument(),
                self.alternatives(),
                self.struck(),
                self.paragraph("assumed", result.assumptions),
                *(self.paragraph("note", [note]) for note in result.notes or ()),
            ]
        if self.verbose:
            titles = [with_remark(f"{s.title} {s.url}", s, self.words) for s in result.sources]
            blocks.append(self.listing("sources", titles))
        return [line for i, block in enumerate(b for b in blocks if b) for line in ([""] if i else []) + block]

    def pick(self) -> list[str]:
        result, label = self.result, self.words("recommend.pick")
        room = self.width - self.indent(label)
        sentence = clean(result.summary)
        if result.confirmed is False:
            sentence = self.words.joined(sentence, self.words("recommend.inferred"))
        commands = result.commands or {}
        first = commands.get("pip") or next(iter(commands.values()), "")
        return self.headline(label, "ok", sentence, self.command_block(first, room))

    def nothing(self, none: NoBuild) -> list[str]:
        label = self.words("recommend.none")
        lines = self.headline(label, "error", clean(self.result.summary), [])
        if clean(none.reason) != clean(self.result.summary):
            lines += self.labelled("because", [none.reason])
        changes: list[str] = []
        for change in none.changes:
            changes += hang(wrap(clean(change.text), self.width - 4), "  - ", 4)
            changes += ["    " + line for line in self.command_block(change.command or "", self.width - 4)]
        if changes:
            lines += ["", self.words("recommend.changes") + self.words("fix.colon"), *changes]
        return lines

    def argument(self) -> list[str]:
        result = self.result
        lines = self.reasons("because", result.reasons)
        for tool, command in (result.commands or {}).items():
            if tool != "pip":
                lines += self.labelled_raw(self.words("recommend.with", tool=clean(tool)), self.block(command))
        if result.mirror_url:
            lines += self.labelled("mirror", [result.mirror_url])
        if result.verify:
            lines += self.commands("verify", result.verify)
        return lines

    def alternatives(self) -> list[str]:
        some = self.result.alternatives if self.verbose else self.result.alternatives[:_ALTERNATIVES]
        lines = [line for alternative in some for line in self.alternative(alternative)]
        hidden = len(self.result.alternatives) - len(some)
        if hidden:
            lines.append("  " + self.words.count("count.more", hidden))
        return [self.words("recommend.alternatives") + self.words("fix.colon"), *lines] if lines else []

    def alternative(self, alternative: Alternative) -> list[str]:
        words = self.words
        text = clean(f"torch {alternative.torch} {alternative.index}") + words("fix.colon.inner")
        text += clean(alternative.reason) + (words("paren", text=clean(alternative.needs)) if alternative.needs else "")
        lines = hang(wrap(text, self.width - 4), "  - ", 4)
        command = alternative.commands.get("pip", "") if self.verbose else ""
        return lines + ["    " + line for line in self.command_block(command, self.width - 4)]

    def struck(self) -> list[str]:
        some = self.result.struck if self.verbose else self.result.struck[:_STRUCK]
        texts = [r.text + (self.words("paren", text=self.words.place(r.where)) if r.where else "") for r in some]
        lines = self.listing("recommend.struck", texts)
        hidden = len(self.result.struck) - len(some)
        return [*lines, "  " + self.words.count("count.more", hidden)] if hidden else lines

    def block(self, command: str) -> list[str]:
        return self.command_block(command, self.width - 12)

    def command_block(self, command: str, room: int) -> list[str]:
        lines = command_lines(command, room, posix=is_posix(self.platform)) if command else []
        return [self.command(line) for line in lines]
