"""What people write into the form of an issue: `- GPU: RTX 3090`, a row of a table, a heading with its answer below.

May live here: the forms that such entries have. Must not: which labels mean what (`knowledge/aliases.yaml`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise

from .line import Line

READER = "form"

MAX_ENTRIES = 500
_HAN = "\u4e00-\u9fff"
_LABEL = rf"(?P<label>[A-Za-z{_HAN}][A-Za-z0-9{_HAN} _./()#-]{{0,38}}?)"
_MARK = r"[ \t]{0,8}(?:[-*+" + "\u2022" + r"] {1,4}|[0-9]{1,2}[.)" + "\u3001" + r"] ?)?"
# The colon stands inside the bold letters or behind them; what follows a Latin one is apart from it.
_COLON = r"(?::[*_`]{0,3}(?:[ \t]|$)|" + "\uff1a" + r"[*_`]{0,3})"
_ENTRY = re.compile(_MARK + r"[*_`]{0,3}" + _LABEL + r"[*_`]{0,3} {0,4}" + _COLON + r"(?P<value>.{0,300})$")
_ROW = re.compile(r"[ \t]{0,8}\|[ \t*`]{0,12}" + _LABEL + r"[ \t*`]{0,40}\|(?P<value>[^|]{1,300})\|?[ \t]*$")
_HEADING = re.compile(r"[ \t]{0,4}(?:#{1,6} {1,4}[*]{0,2}|[*]{2})" + _LABEL + r"(?:[:*]|" + "\uff1a" + r"){0,3}[ \t]*$")
# `OS: Ubuntu 22.04, GPU: RTX 3090`: a further entry behind a comma.
_FURTHER = re.compile(
    "[,;\uff0c\uff1b] {0,4}" + rf"(?P<entry>[A-Za-z{_HAN}][A-Za-z0-9{_HAN} _-]{{0,38}}" + "(?:: |\uff1a))"
)
_EMPTY = re.compile(r"_no response_|\[.{0,300}|<!--.{0,300}|[-_*. ]{0,40}", re.IGNORECASE)
_SHORT = 80


@dataclass(frozen=True, slots=True)
class Entry:
    """A label and what somebody wrote for it, with the line of the value."""

    label: str
    value: str
    line: int


def entries(lines: Sequence[Line], taken: Set[int] = frozenset()) -> list[Entry]:
    """The first MAX_ENTRIES entries in their order; `taken` are the numbers of lines that others made facts of."""
    found: list[Entry] = []
    for number, line in enumerate(lines):
        if line.number in taken:
            continue
        found += _of_line(line) or _of_heading(line, lines[number + 1 : number + 3])
        if len(found) >= MAX_ENTRIES:
            return found[:MAX_ENTRIES]
    return found


def _of_line(line: Line) -> list[Entry]:
    further = [match.start("entry") for match in _FURTHER.finditer(line.text[: 4 * _SHORT])]
    parts = [line.text[start:end] for start, end in pairwise([0, *further, len(line.text)])]
    return [entry for part in parts for entry in _of_part(part, line.number)]


def _of_part(text: str, number: int) -> Iterator[Entry]:
    match = _ENTRY.match(text) or _ROW.match(text)
    if match is not None and not _EMPTY.fullmatch(match["value"].strip()):
        yield Entry(match["label"].strip(), _bare(match["value"]), number)


def _of_heading(line: Line, below: Sequence[Line]) -> list[Entry]:
    """A heading, or a label with nothing behind it, and the first line below that is not blank."""
    match = _HEADING.match(line.text) or _ENTRY.match(line.text)
    answer = next((other for other in below if other.text.strip()), None)
    if match is None or answer is None or match.groupdict().get("value", "").strip():
        return []
    if len(answer.text) > _SHORT or _EMPTY.fullmatch(answer.text.strip()):
        return []
    if _HEADING.match(answer.text) or _ENTRY.match(answer.text):
        return []
    return [Entry(match["label"].strip(), _bare(answer.text), answer.number)]


def _bare(value: str) -> str:
    return value.strip(" \t*`,;\uff0c\uff1b")
