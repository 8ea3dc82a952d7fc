"""What people write of their machine: `- GPU: RTX 3090`, a table's row, a heading with its answer below, a bare list.

May live here: the forms that such entries have. Must not: which labels mean what (`knowledge/aliases.yaml`), what a
name stands for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from itertools import pairwise

from ...facts import Entry
from .line import Line

MAX_ENTRIES = 500
MAX_ITEMS = 100
_SHORT = 80
_HAN = "\u4e00-\u9fff"
# What a form says of its own label stands in parentheses: `GPU (e.g. RTX 3090)`.
_LABEL = rf"(?P<label>[A-Za-z{_HAN}][A-Za-z0-9{_HAN} _./#-]{{0,38}}?)(?: {{0,2}}\([^()]{{0,60}}\))?"
_MARK = r"[ \t]{0,8}(?:[-*+" + "\u2022" + r"] {1,4}(?:\[[xX]\] )?|[0-9]{1,2}[.)" + "\u3001" + r"] ?)?"
# The colon stands inside the bold letters or behind them; what follows a Latin one is apart from it.
_COLON = r"(?::[*_`]{0,3}(?:[ \t]|$)|=[ \t]|" + "\uff1a" + r"[*_`]{0,3})"
_ENTRY = re.compile(_MARK + r"[*_`]{0,3}" + _LABEL + r"[*_`]{0,3} {0,4}" + _COLON + r"(?P<value>.{0,300})$")
# `- OS:Windows 10`: without the blank only behind the mark of a list.
_TIGHT = re.compile(r"[ \t]{0,8}[-*+] {1,4}[*_`]{0,3}" + _LABEL + r"[*_`]{0,3}:(?P<value>[A-Za-z0-9].{1,300})$")
_ROW = re.compile(r"[ \t]{0,8}\|[ \t*`]{0,12}" + _LABEL + r"[ \t*`]{0,40}\|(?P<value>[^|]{1,300})\|?[ \t]*$")
_HEADING = re.compile(r"[ \t]{0,4}(?:#{1,6} {1,4}[*]{0,2}|[*]{2})" + _LABEL + "[:*?\uff1a\uff1f]{0,4}" + r"[ \t]*$")
# `OS: Ubuntu 22.04, GPU: RTX 3090`: a further entry behind a comma.
_FURTHER = re.compile(
    "[,;\uff0c\uff1b] {0,4}" + rf"(?P<entry>[A-Za-z{_HAN}][A-Za-z0-9{_HAN} _-]{{0,38}}" + "(?:: |\uff1a))"
)
_EMPTY = re.compile(r"_no response_|\[.{0,300}|<!--.{0,300}|[-_*. ]{0,40}", re.IGNORECASE)
# `My environment: RTX 4090, torch 2.5.1`, or the same without a word before it.
_LEAD = re.compile(
    r"[ \t]{0,8}(?:(?:my |the |our )?(?:environment|env|setup|system|config(?:uration)?|versions?|specs?)"
    rf"|[{_HAN}]{{0,4}}(?:环境|配置))(?: is)?[ \t]{{0,2}}" + "[:\uff1a]",
    re.IGNORECASE,
)
_PARTS = re.compile("[,\uff0c;\uff1b\u3001]|[ ]{2,8}|\t")
_PART = re.compile(rf"[A-Za-z0-9{_HAN}][A-Za-z0-9{_HAN} .+*×_-]{{1,48}}$")
_NUMBERED = re.compile(rf"[A-Za-z{_HAN}].{{0,48}}[0-9]|[0-9].{{0,48}}[A-Za-z{_HAN}]")
_MAX_LIST = 240
_MAX_PARTS = 12


def entries(lines: Sequence[Line], taken: Set[int] = frozenset()) -> list[Entry]:
    """The first MAX_ENTRIES entries and MAX_ITEMS items of bare lists, in their order.

    taken: the numbers of lines that others made facts of.
    """
    labelled: list[Entry] = []
    bare: list[Entry] = []
    for number, line in enumerate(lines):
        if line.number in taken:
            continue
        items = _of_list(line) if len(bare) < MAX_ITEMS else []
        bare += items
        if not items:
            labelled += _of_line(line) or _of_heading(line, lines[number + 1 : number + 3])
        if len(labelled) >= MAX_ENTRIES:
            break
    return sorted([*labelled[:MAX_ENTRIES], *bare], key=lambda entry: entry.line)


def _of_line(line: Line) -> list[Entry]:
    further = [match.start("entry") for match in _FURTHER.finditer(line.text[: 4 * _SHORT])]
    parts = [line.text[start:end] for start, end in pairwise([0, *further, len(line.text)])]
    return [entry for part in parts for entry in _of_part(part, line.number)]


def _of_part(text: str, number: int) -> Iterator[Entry]:
    match = _ENTRY.match(text) or _TIGHT.match(text) or _ROW.match(text)
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
    return [Entry(match["label"].strip(), _bare(answer.text.lstrip(" \t-*+")), answer.number)]


def _of_list(line: Line) -> list[Entry]:
    """A line that is a list from end to end, each part with a number in it; behind a lead other parts are passed."""
    if len(line.text) > _MAX_LIST:
        return []
    lead = _LEAD.match(line.text)
    parts = [_bare(part) for part in _PARTS.split(line.text[lead.end() if lead else 0 :])]
    items = [part for part in parts if part]
    read = [part for part in items if _PART.match(part) and _NUMBERED.search(part)]
    if not read or len(items) > _MAX_PARTS or (lead is None and len(read) < len(items)):
        return []
    return [Entry("", part, line.number, alone=lead is not None) for part in read]


def _bare(value: str) -> str:
    return value.strip(" \t*`,;.\u3002\uff0c\uff1b")
