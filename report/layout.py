"""Text layout for terminals: display width, wrapping, commands, alphabets, colour.

May live here: functions of strings and numbers. Must not: the report model, wording, GPUs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~])"
)
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_NOT_AT_START = frozenset("，。、；：？！）》」』】〉”’…—·％°,.;:?!)]}%")
_NOT_AT_END = frozenset("（《「『【〈“‘([{")
_PLAIN = {
    "✗": "x", "✓": "+", "·": "-", "—": "-", "–": "-", "…": "...", "→": "->", "≥": ">=", "≤": "<=", "×": "x",
    "├": "|", "└": "`", "─": "-", "│": "|", "“": '"', "”": '"', "‘": "'", "’": "'", "°": " deg ", "≈": "~",
    "，": ", ", "。": ". ", "：": ": ", "；": "; ", "（": " (", "）": ") ", "、": ", ",
}  # fmt: skip
_STYLES = {"error": "31;1", "warning": "33;1", "ok": "32;1", "info": "36", "dim": "2", "command": "1"}
_OPTION_BREAKS = (" --index-url", " --extra-index-url")


@dataclass(frozen=True, slots=True)
class Look:
    """How to draw: columns, whether colours are wanted, and what the output's encoding can show."""

    width: int = 80
    colour: bool = False
    encoding: str = "utf-8"


def clean(text: str) -> str:
    """The text on one line, without escape sequences and characters that control or reorder a terminal's output."""
    words = (_CONTROLS.sub("", word) for word in _ESCAPES.sub("", text).split())
    return " ".join(word for word in words if word)


def clean_lines(text: str) -> list[str]:
    """As `clean`, keeping line breaks and inner spaces: for commands."""
    lines = _ESCAPES.sub("", text).replace("\t", "    ").splitlines()
    return [line for line in (_CONTROLS.sub("", line).rstrip() for line in lines) if line]


def paint(text: str, style: str, look: Look) -> str:
    """The text in a colour or weight, where colours are wanted."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if look.colour and text else text


def display_width(text: str) -> int:
    """Columns that the text takes: East Asian wide characters two, combining marks none."""
    return sum(_char_width(char) for char in text)


def _char_width(char: str) -> int:
    if char < "\u0300":
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def pad(text: str, columns: int) -> str:
    """The text filled with spaces to that many columns."""
    return text + " " * max(0, columns - display_width(text))


def wrap(text: str, columns: int) -> list[str]:
    """Lines of at most that many columns; words longer than a line (paths, URLs) stay whole.

    Between two wide characters a line may end too, except before closing and after opening punctuation.
    """
    lines: list[str] = []
    current, used = "", 0
    for space, unit in _units(text):
        needed = display_width(unit)
        if current and used + len(space) + needed > columns:
            lines.append(current)
            current, used = unit, needed
        else:
            added = (space if current else "") + unit
            current, used = current + added, used + display_width(added)
    return [*lines, current] if current else lines


def _units(text: str) -> Iterator[tuple[str, str]]:
    """Unbreakable pieces, each with the space (or nothing) before it."""
    for word in text.split():
        for i, piece in enumerate(_pieces(word)):
            yield "" if i else " ", piece


def _pieces(word: str) -> Iterator[str]:
    piece = ""
    for char in word:
        if piece and _may_break(piece[-1], char):
            yield piece
            piece = ""
        piece += char
    if piece:
        yield piece


def _may_break(before: str, after: str) -> bool:
    wide = _char_width(before) == 2 or _char_width(after) == 2
    return wide and after not in _NOT_AT_START and before not in _NOT_AT_END


def columns(left: str, right: str, total: int, right_width: int) -> list[str]:
    """`left` wrapped, `right` in its own column at the right edge; beneath one another where that gets too narrow."""
    if not right:
        return wrap(left, total - (right_width + 2 if total - right_width - 2 >= 40 else 0))
    room = total - right_width - 2
    if room < 40:
        return wrap(f"{left} ({right})", total)
    first, *rest = wrap(left, room) or [""]
    return [f"{pad(first, room)}  {right}", *rest]


def hang(lines: Sequence[str], label: str, indent: int) -> list[str]:
    """The lines behind a label: the label on the first, as many spaces before the others."""
    first, *rest = lines or [""]
    return [(pad(label, indent) + first).rstrip(), *(" " * indent + line for line in rest)]


def command_lines(command: str, columns: int, *, posix: bool) -> list[str]:
    """A command ready to copy. Only a single line for a POSIX shell is broken, with a backslash, outside quotes;
    every other command stays whole however long it is, because a broken one would not run."""
    lines = clean_lines(command)
    if len(lines) != 1 or not posix or display_width(lines[0]) <= columns or "#" in lines[0]:
        return lines
    line = lines[0]
    at = next((line.find(option) for option in _OPTION_BREAKS if option in line), -1)
    parts = [line[:at], line[at + 1 :]] if at > 0 and _outside_quotes(line, at) else [line]
    broken: list[str] = []
    for part in parts:
        room = columns - 2 - (4 if broken else 0)
        broken += [("    " if broken or i else "") + piece for i, piece in enumerate(_pack(part, room))]
    return [piece + " \\" for piece in broken[:-1]] + broken[-1:]


def _outside_quotes(line: str, at: int) -> bool:
    head = line[:at]
    return not head.endswith("\\") and head.count("'") % 2 == 0 and head.count('"') % 2 == 0


def _pack(line: str, columns: int) -> list[str]:
    words: list[str] = []
    start = 0
    for at in (m.start() for m in re.finditer(" ", line)):
        if _outside_quotes(line, at):
            words.append(line[start:at])
            start = at + 1
    words.append(line[start:])
    units: list[str] = []
    for word in words:
        if units and units[-1].startswith("--") and " " not in units[-1] and not word.startswith("-"):
            units[-1] += " " + word  # an option and its value
        else:
            units.append(word)
    packed = units[:1]
    for word in units[1:]:
        if display_width(packed[-1]) + 1 + display_width(word) <= columns:
            packed[-1] += " " + word
        else:
            packed.append(word)
    return packed


def fit(text: str, encoding: str) -> str:
    """The text with every character that the encoding cannot show replaced by a plain one."""
    if can_show(text, encoding):
        return text
    return "".join(char if can_show(char, encoding) else _PLAIN.get(char, "?") for char in text)


def can_show(text: str, encoding: str) -> bool:
    """Whether the encoding has every character; one that Python does not know is taken for ASCII."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    except LookupError:
        return text.isascii()
    return True


def joined(lines: Iterable[str]) -> str:
    """The lines as one text that ends in a newline, without spaces at line ends."""
    return "".join(line.rstrip() + "\n" for line in lines)
