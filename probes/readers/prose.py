"""The prose of a pasted text: what its author wrote around the outputs, as passages with the line they begin at.

May live here: telling a person's sentences from program output by their form. Must not: what a sentence says.

Where a text marks its outputs with fences, all else is the author's. Elsewhere a paragraph counts as prose only if it
also speaks as people do (I, we, please, Chinese characters), is the text's title or stands right below a heading,
because programs print whole sentences as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass
from itertools import pairwise

MAX_CHARS = 20_000
_MAX_TEXT = 2_000_000
_MAX_LINE = 2_000
_FEW_WORDS = 4
_FEW_HAN = 6

_FENCE = re.compile(r"[ \t>]{0,12}(?:```|~~~)")
_QUOTE = re.compile(r"(?: {0,3}>)+ ?")
_LIST = re.compile("[ \t]{0,8}(?:[-*+\u2022]|[0-9]{1,2}[.)\u3001]) {1,4}")
_MARKUP = re.compile(r"[*]{1,3}")
_INLINE = re.compile(r"`([^`\n]{1,200})`")
# How program output, headings of forms and their check boxes begin.
_OUTPUT = re.compile(
    r"[ \t]*(?:[\[|+#<{(=$%~\\/@]|-{2,}|\d{1,4}[-:/.]\d|[A-Za-z0-9_.-]{1,40}@|\S{1,60}[$#%>] |>>> |File \"|Traceback"
    r"|(?:DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL|NOTE)\b|[A-Za-z_.]{2,60}(?:Error|Exception|Warning)\b"
    r"|\S{1,60}\.(?:py|cc|cpp|cu|h|go|so)\b|[-*] \[[ xX]\])",
    re.ASCII,
)
_KEY_VALUE = re.compile(r"[ \t]*[A-Za-z][\w ().#/-]{0,30}[:=][ \t]", re.ASCII)
_STOPS = ".:;,"
_TITLE = re.compile(r"[ \t]{0,3}#{1,6}[ \t]|[ \t]{0,3}[*]{2}[^*]{1,60}[*]{2}[: \t]{0,3}$")
_WORD = re.compile(r"[A-Za-z]{1,20}(?:'[a-z]{1,3})?[,.!?;:)\"]{0,2}$")
_HAN = re.compile("[\u4e00-\u9fff]")
_COMMON = frozenset(
    {
        "a", "an", "the", "and", "or", "but", "if", "when", "while", "after", "before", "with", "without", "on", "in",
        "at", "of", "to", "for", "from", "by", "is", "are", "was", "were", "be", "been", "has", "have", "had", "do",
        "does", "did", "can", "cannot", "can't", "could", "will", "would", "it", "its", "this", "that", "these",
        "those", "not", "no", "my", "our", "your", "there", "only", "same", "how", "why", "what", "which", "where",
        "any", "some", "all", "i", "we", "you", "they", "then", "so", "as", "just", "also", "still"
    }
)  # fmt: skip
_PERSONAL = re.compile(
    r"\b(?:I|I'm|I've|my|we|our|me|hi|hello|hey|help|please|thanks|anyone|somebody|someone)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph of prose and the line that it begins at."""

    line: int
    text: str


def passages(data: bytes | str, taken: Set[int] = frozenset(), *, alone: bool = False) -> list[Passage]:
    """The author's paragraphs; `taken` are numbers of lines that a reader or signature made facts of.

    `alone`: no output in the text is known. If no line has the form of one either, sentences are the author's, however
    impersonal.
    """
    text = data[:_MAX_TEXT]
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    lines = text.split("\n")
    fenced = sum(1 for line in lines if _FENCE.match(line)) >= 2
    alone = alone and not any(_OUTPUT.match(line) for line in lines)
    openings = _openings(lines)
    found: list[Passage] = []
    room = MAX_CHARS
    for first, paragraph in _paragraphs(lines, taken, fenced):
        if room <= 0:
            break
        if fenced or alone or first in openings or _HAN.search(paragraph) or _PERSONAL.search(paragraph):
            found.append(Passage(first, paragraph[:room]))
            room -= len(paragraph)
    return found


def _openings(lines: list[str]) -> Set[int]:
    """The lines in which an author speaks, not a program: a title (it ends without a stop), and below each heading."""
    written = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    titles = {number for number, line in written[:1] if line.rstrip()[-1] not in _STOPS}
    return titles | {below for (_, line), (below, _) in pairwise(written) if _TITLE.match(line)}


def _paragraphs(lines: list[str], taken: Set[int], fenced: bool) -> Iterator[tuple[int, str]]:
    """Runs of lines that read like sentences."""
    run: list[str] = []
    start = 0
    inside = False
    for number, raw in enumerate(lines, start=1):
        fence = _FENCE.match(raw) is not None
        inside = inside != fence if fenced else False
        sentence = None if fence or inside or number in taken else _sentence(raw)
        if sentence is None:
            if run:
                yield start, " ".join(run)
            run = []
            continue
        if not run:
            start = number
        run.append(sentence)
    if run:
        yield start, " ".join(run)


def _sentence(raw: str) -> str | None:
    """The line without its Markdown where it reads like a person's words, else None."""
    if len(raw) > _MAX_LINE:
        return None
    line = raw.rstrip("\r").replace("\u2019", "'")
    if quote := _QUOTE.match(line):
        line = line[quote.end() :]
    if mark := _LIST.match(line):
        line = line[mark.end() :]
    line = _INLINE.sub(r"\1", _MARKUP.sub("", line)).strip()
    if not line or _OUTPUT.match(line):
        return None
    if len(_HAN.findall(line)) >= _FEW_HAN:
        return line
    words = line.split()
    plain = [word for word in words if _WORD.match(word)]
    common = sum(1 for word in plain if word.lower().strip(',.!?;:)"') in _COMMON)
    least = 3 if _KEY_VALUE.match(line) else 1
    spoken = len(words) >= _FEW_WORDS and 5 * len(plain) >= 3 * len(words) and common >= least
    return line if spoken else None
