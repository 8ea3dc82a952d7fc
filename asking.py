"""The conversation of `gpurules ask`: replies in, questions and at last the report out.

May live here: how replies are collected from lines, the commands of a dialogue, saving as it goes on. Must not: the
choice of questions (reasoning/dialogue.py), the form of what is shown (report/ask_text.py).

A reply is one line where it is a command or an answer. Anything else begins a text, which ends with a line that holds
only a dot, with the end of the input, or, while it is a single line, with an empty one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, BinaryIO, Protocol

from .reasoning.dialogue import Dialogue, Understood, is_word
from .reasoning.sentences import Sayer
from .report.ask_text import AskDrawing
from .report.layout import clean
from .report.messages import Words

SCHEMA = "gpurules.ask/1"
MAX_REPLY = 10 * 1024 * 1024  # characters; the readers keep no more
_COMMANDS = {
    "beliefs": "ask.word.beliefs",
    "help": "ask.word.help",
    "quit": "ask.word.quit",
    "undo": "ask.word.undo",
    "why": "ask.word.why",
}


class Lines(Protocol):
    """Where replies come from, a line at a time."""

    def read(self, prompt: str, words: Sequence[str]) -> str:
        """The next line, without its end; `words` may complete it. Raises EOFError, or KeyboardInterrupt."""


class Stopped(Exception):
    """The user interrupted twice."""


class Conversation:
    """One dialogue with one user. `tell` shows a text; `keep` is called whenever the dialogue changed."""

    def __init__(
        self,
        dialogue: Dialogue,
        lines: Lines,
        tell: Callable[[str], None],
        drawing: AskDrawing,
        keep: Callable[[], None] = lambda: None,
    ) -> None:
        self.dialogue = dialogue
        self.lines = lines
        self.tell = tell
        self.drawing = drawing
        self.keep = keep
        self.words = Words(dialogue.lang)
        self.sayer = Sayer(dialogue.knowledge, dialogue.lang)
        self._interrupted = False

    def run(self) -> None:
        """Asks until nothing is worth asking, the input ends or the user quits. Raises Stopped."""
        self.tell(self.drawing.line("ask.help"))
        number = 0
        shown: object = None
        while (asked := self.dialogue.ask()) is not None:
            if shown != asked:
                number = len(self.dialogue.turns) + 1
                self.tell("\n" + self.drawing.asked(asked, number))
                shown = asked
            reply = self._reply()
            command = None if reply is None else self._command(reply)
            if reply is None or command == "quit":
                return
            if command == "undo":
                shown = None
            self._react(reply, command)
        self.tell("\n" + self.drawing.line("ask.done"))

    def _react(self, reply: str, command: str | None) -> None:
        if command == "beliefs":
            self.tell(self.drawing.beliefs(self.dialogue.beliefs()))
        elif command == "help":
            self.tell(self.drawing.line("ask.help"))
        elif command == "why":
            why = self.dialogue.why()
            if why is not None:
                self.tell(self.drawing.why(why))
        elif command == "undo":
            self._undo()
        elif reply.strip():
            understood = self.dialogue.answer(reply)
            self.tell(self.drawing.understood(understood, said(understood, self.sayer)))
            if understood.kind != "nothing":
                self.keep()

    def _undo(self) -> None:
        if self.dialogue.undo() is None:
            self.tell(self.drawing.line("ask.undo.nothing"))
            return
        self.keep()
        asked = self.dialogue.ask()
        self.tell(self.drawing.line("ask.undo.taken", question=asked.text if asked else ""))

    # --- replies ----------------------------------------------------------------------------------------------------

    def _command(self, reply: str) -> str | None:
        return command_of(reply, self.words)

    def _reply(self) -> str | None:
        """The next reply, None at the end of the input. An interrupt drops what was begun; a second one ends it all."""
        while True:
            try:
                reply = self._collected()
                self._interrupted = False
                return reply
            except EOFError:
                return None
            except KeyboardInterrupt:
                if self._interrupted:
                    raise Stopped from None
                self._interrupted = True
                self.tell("\n" + self.drawing.line("ask.interrupted"))

    def _collected(self) -> str:
        completed = list(self._completions())
        first = self.lines.read("> ", completed)
        if not first.strip() or self._command(first) or self.dialogue.answers(first):
            return first
        parts, size = [first], len(first)
        while True:
            try:
                line = self.lines.read("", ())
            except EOFError:
                break
            if line.strip() == "." or (len(parts) == 1 and not line.strip()):
                break
            size += len(line) + 1
            if size <= MAX_REPLY:
                parts.append(line)
        return "\n".join(parts)

    def _completions(self) -> Iterator[str]:
        asked = self.dialogue.ask()
        for choice in asked.choices if asked else ():
            yield choice.text
            yield choice.id
        for key in (*_COMMANDS.values(), "ask.word.unknown"):
            yield from (word for word in self.words.of(key, self.dialogue.lang).split("|") if len(word) > 1)


def command_of(reply: str, words: Words) -> str | None:
    """The command that a reply is, if it is one."""
    return next((name for name, key in _COMMANDS.items() if is_word(reply, key, words)), None)


def said(understood: Understood, sayer: Sayer) -> list[str]:
    """The facts of a reply in words, each once."""
    return list(dict.fromkeys(sayer.fact(f.type, f.fields) for f in understood.facts if f.type != "coverage"))


# --- where replies come from ------------------------------------------------------------------------------------------


class Terminal:
    """Lines that a person types, with history and completion where Python has readline."""

    def __init__(self) -> None:
        self._words: Sequence[str] = ()
        try:
            import readline
        except ImportError:  # Windows
            return
        readline.set_completer(self._complete)
        readline.set_completer_delims("")
        readline.parse_and_bind("tab: complete")

    def read(self, prompt: str, words: Sequence[str]) -> str:
        """The next line. Raises EOFError or KeyboardInterrupt."""
        self._words = words
        return input(prompt)

    def _complete(self, begun: str, number: int) -> str | None:
        found = [word for word in self._words if word.startswith(begun)]
        return found[number] if number < len(found) else None


class Pipe:
    """Lines of a stream that nobody types at; `echo` shows each reply, so that the record reads like a dialogue."""

    def __init__(self, stream: BinaryIO | None, echo: Callable[[str], None] | None = None) -> None:
        self._stream = stream
        self._echo = echo

    def read(self, prompt: str, words: Sequence[str]) -> str:
        """The next line; what is no UTF-8 is replaced. Raises EOFError."""
        del words
        data = self._stream.readline(MAX_REPLY) if self._stream else b""
        if not data:
            raise EOFError
        line = data.decode("utf-8", "replace").rstrip("\r\n")
        if self._echo is not None and prompt:
            self._echo(prompt + clean(line) + "\n")
        return line


# --- JSON, one object a turn ------------------------------------------------------------------------------------------


class Exchange:
    """The same dialogue for a program: one line in is one reply (text, or a JSON object {"answer": text}), one object
    out is a turn with what was understood, what is believed and the next question; the last one holds the report."""

    def __init__(
        self,
        dialogue: Dialogue,
        lines: Lines,
        emit: Callable[[dict[str, Any]], None],
        keep: Callable[[], None] = lambda: None,
    ) -> None:
        self.dialogue = dialogue
        self.lines = lines
        self.emit = emit
        self.keep = keep
        self.words = Words(dialogue.lang)

    def run(self, report: Callable[[], dict[str, Any]]) -> None:
        """Turns until nothing is worth asking or the input ends."""
        reaction: dict[str, Any] = {}
        while (asked := self.dialogue.ask()) is not None:
            question = {k: v for k, v in asdict(asked).items() if v is not None}
            self.emit({**self._head(), **reaction, "question": question, "beliefs": self._beliefs()})
            try:
                reply = reply_of(self.lines.read("", ()))
            except EOFError:
                reaction = {}
                break
            command = command_of(reply, self.words)
            if command == "quit":
                reaction = {}
                break
            reaction = self._reaction(reply, command)
        self.emit({**self._head(), **reaction, "beliefs": self._beliefs(), "report": report()})

    def _head(self) -> dict[str, Any]:
        return {"schema": SCHEMA, "turn": len(self.dialogue.turns) + 1}

    def _reaction(self, reply: str, command: str | None) -> dict[str, Any]:
        if command == "undo":
            turn = self.dialogue.undo()
            self.keep()
            return {"taken_back": turn.question if turn else None}
        if command == "why":
            why = self.dialogue.why()
            return {"why": asdict(why) if why else None}
        if command is not None:
            return {}
        understood = self.dialogue.answer(reply)
        if understood.kind != "nothing":
            self.keep()
        return {
            "understood": {
                "kind": understood.kind,
                "choice": understood.choice.id if understood.choice else None,
                "facts": [{f.type: dict(f.fields)} for f in understood.facts],
            }
        }

    def _beliefs(self) -> list[dict[str, Any]]:
        return [
            {"symptom": b.symptom, "cause": b.cause, "title": b.title, "share": round(b.share, 4)}
            for b in self.dialogue.beliefs()
        ]


def reply_of(line: str) -> str:
    """The reply in a line: the line itself, or the `answer` of a JSON object."""
    if line.lstrip().startswith("{"):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return line
        if isinstance(value, dict) and isinstance(value.get("answer"), str):
            return str(value["answer"])
    return line
