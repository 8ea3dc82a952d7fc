"""A dialogue as text: questions with their choices, what a reply gave, what is believed and why something is asked.

May live here: the form of those. Must not: wording (knowledge/messages.yaml), the order of questions, input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .drawing import Drawing
from .layout import Look, clean, command_lines, display_width, fit, hang, joined, pad, wrap
from .messages import Words

if TYPE_CHECKING:
    from ..reasoning.dialogue import Asked, Belief, Prospect, Understood, Why
    from .model import Lang

_SHOWN = 5  # facts of one reply that are said


class AskDrawing(Drawing):
    """Draws the parts of a dialogue in one language."""

    def __init__(self, lang: Lang, look: Look, *, verbose: bool = False) -> None:
        super().__init__(Words(lang), look, None, verbose=verbose)

    def text(self, lines: Sequence[str]) -> str:
        """The lines as one text that the terminal can show."""
        return fit(joined(lines), self.look.encoding)

    def fitted(self, text: str) -> str:
        """A text with the characters that the terminal lacks replaced."""
        return fit(text, self.look.encoding)

    def asked(self, asked: Asked, number: int) -> str:
        """A question with its command and its choices."""
        label = self.words("ask.question", number=number)
        lines = self.headline(label, "info", clean(asked.text), [])
        run = self.words("label.run")
        names = [run] if asked.command else []
        names += [str(n) for n, _ in enumerate(asked.choices, 1)]
        indent = max(map(display_width, names), default=0) + 2
        room = self.width - 2 - indent
        if asked.command:
            shown = [self.command(line) for line in command_lines(asked.command, room, posix=True)]
            lines += ["  " + line for line in hang(shown, run, indent)]
            lines += [" " * (2 + indent) + line for line in wrap(self.words("ask.paste"), room)]
        for number_, choice in enumerate(asked.choices, 1):
            lines += ["  " + line for line in hang(wrap(clean(choice.text), room), str(number_), indent)]
        return self.text(lines)

    def understood(self, understood: Understood, said: Sequence[str]) -> str:
        """What a reply gave; `said` are its facts in words."""
        words = self.words
        if understood.kind == "choice" and understood.choice is not None:
            text = words("ask.answer.noted", text=clean(understood.choice.text))
        elif understood.kind == "unknown":
            text = words("ask.answer.unknown")
        elif understood.kind == "text":
            shown = [clean(s) for s in said]
            more = words("list.and").join(shown[:_SHOWN]) + (" ..." if len(shown) > _SHOWN else "")
            text = words("ask.answer.read", facts=words.count("count.fact", len(understood.facts)), text=more)
        else:
            text = words("ask.answer.nothing")
        return self.text(wrap(text, self.width))

    def beliefs(self, beliefs: Sequence[Belief]) -> str:
        """The competing causes with their shares, one symptom after the other."""
        if not beliefs:
            return self.text(wrap(self.words("ask.beliefs.none"), self.width))
        lines: list[str] = []
        symptom: str | None = ""
        for belief in beliefs:
            if belief.symptom != symptom:
                symptom = belief.symptom
                heading = self.words("ask.beliefs.heading", symptom=symptom) if symptom else ""
                lines += wrap(heading or self.words("ask.beliefs.alone"), self.width)
            lines += ["  " + line for line in hang(wrap(clean(belief.title), self.width - 9), _share(belief.share), 7)]
        return self.text(lines)

    def why(self, why: Why) -> str:
        """What each answer to the question would change, and by which rules."""
        words = self.words
        if why.gain is None:
            return self.text(wrap(words("ask.why.opening"), self.width))
        lines = wrap(words("ask.why", gain=f"{why.gain:.2f}"), self.width)
        for prospect in why.prospects:
            lines += self.prospect(prospect)
        return self.text(lines)

    def prospect(self, prospect: Prospect) -> list[str]:
        """One answer with the causes that it moves."""
        words = self.words
        answer = clean(prospect.answer) + words("paren", text=_share(prospect.likelihood).strip())
        lines = wrap(answer + words("fix.colon"), self.width)
        if not prospect.shifts:
            return lines + ["  " + line for line in wrap(words("ask.no_change"), self.width - 2)]
        for shift in prospect.shifts:
            told = words(
                "ask.shift",
                title=clean(shift.title),
                before=_share(shift.before).strip(),
                after=_share(shift.after).strip(),
            )
            lines += ["  " + line for line in wrap(told, self.width - 2)]
            for rule, text in shift.rules:
                lines += ["    " + line for line in wrap(clean(f"{text} [{rule}]"), self.width - 4)]
        return lines

    def line(self, key: str, **values: object) -> str:
        """A message of its own."""
        return self.text(wrap(clean(self.words(key, **values)), self.width))


def _share(share: float) -> str:
    return pad(f"{share * 100:.0f} %", 5)
