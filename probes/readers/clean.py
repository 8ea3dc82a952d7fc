"""From pasted bytes to clean lines: decoding, terminal escapes, quote marks, fences, log prefixes, HTML, size limits.

May live here: everything that surrounds machine output in a paste and says nothing about the machine. Must not:
knowledge of any layout; a value inside a line is left as printed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ..decoding import decode
from .line import Line

MAX_TEXT = 10 * 1024 * 1024
MAX_LINE = 20_000
_SAMPLE = 65_536
# More than one control character in twenty: no program prints text like that.
_BINARY_SHARE = 0.05
_FEW_CONTROLS = 8
_MAX_PREFIXES = 4
_TICK_LINES = 10_000

_MAGIC = (b"\x7fELF", b"PK\x03\x04", b"\x89PNG", b"\x1f\x8b", b"%PDF", b"\xff\xd8\xff", b"BZh", b"\xfd7zXZ")
_CONTROLS = re.compile(r"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
_DROPPED = re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f" + "\u200b-\u200f\u2060\ufeff]")
_TERMINAL = re.compile(
    r"(?:\x1b|\^\[)\[[0-?]{0,40}[ -/]{0,4}[@-~]"  # CSI, also with the escape shown as ^[
    r"|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # OSC: titles, links
    r"|\x1b[()*+][0-9A-Za-z]"
    r"|\x1b[=>78DEHMNOZc]"
    r"|\x9b[0-?]{0,40}[ -/]{0,4}[@-~]"
)
# A colour whose escape character was lost on the way.
_LOST_COLOUR = re.compile(r"\[(?:[0-9]{1,2};)?[0-9]{1,2}m")
_TAG = re.compile(r"</?(?:details|summary|pre|code|p|div|span|blockquote|tt|font|b|strong)(?: [^<>\n]{0,300})?>")
_BREAK = re.compile(r"<br ?/?>", re.ASCII)
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#39|#x27|#34|#160|#60|#62);")
_ENTITIES = {
    "&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&apos;": "'", "&nbsp;": " ", "&#39;": "'",
    "&#x27;": "'", "&#34;": '"', "&#160;": " ", "&#60;": "<", "&#62;": ">",
}  # fmt: skip
_NBSP_RUN = re.compile(r"^\xa0+|\xa0{2,}|\xa0+ | \xa0+", re.MULTILINE)
_TYPOGRAPHY = str.maketrans({"\u2019": "'", "\u2018": "'", "\u201c": '"', "\u201d": '"', "\u2028": " ", "\u2029": " "})

_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}"
_PLACE = r"[A-Za-z0-9_./-]{1,120}:[0-9]{1,6}"
_ISO = r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]" + _CLOCK + r"(?:[.,][0-9]{1,9})?(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
_LEVEL = r"(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)"
_PREFIX = re.compile(
    "|".join(
        (
            r"(?: {0,3}>)+ ?",  # quotation marks at any depth
            r"(?:kern|user|daemon|syslog) {0,4}:[a-z]{1,6} {0,4}: (?:" + _ISO + r" )?",  # dmesg -x
            r"\[?" + _ISO + r"\]?(?:[ \t]-)?(?:[ \t]|$)",
            r"[A-Z][a-z]{2} [ 0-9][0-9] " + _CLOCK + r" [A-Za-z0-9_.-]{1,64} (?:[^ ]|$)",  # syslog
            r"\[[0-9]{1,4},(?:mpirank:)?[0-9]{1,5}(?:,[A-Za-z0-9_.-]{1,64})?\]<std(?:out|err)>:",  # mpirun --tag-output
            r"\([A-Za-z0-9_.: -]{1,60} pid=[0-9]{1,9}(?:, ip=[0-9A-Fa-f.:]{1,45})?\) ?",  # Ray, vLLM
            r"\(rank ?[0-9]{1,5}\):? ",
            r"\[(?:default|rank)[0-9]{1,5}\]: ?",
            r"\[pod/[^\]\n ]{1,200}\] ",
            r"[A-Za-z0-9._-]{1,60}[-_][0-9]{1,4} {1,20}\| ",  # docker compose
            r"\[?[IWEFC][0-9]{4} " + _CLOCK + r"\.[0-9]{1,9} {1,8}[0-9]{1,9} " + _PLACE + r"\] ",  # glog
            r"\[[IWEFC] " + _ISO + r"\] ",  # optuna
            r"\[[IWEFC] " + _PLACE + r"\] ",  # old c10
            _LEVEL + r" [0-9]{2}-[0-9]{2} " + _CLOCK + r" \[?" + _PLACE + r"\] ?",  # vLLM
            r"\[" + _LEVEL + r"\] \[" + _PLACE + r":[A-Za-z0-9_<>]{1,80}\] ",  # DeepSpeed
            _LEVEL + r":[A-Za-z0-9_.-]{1,80}:",  # logging.basicConfig
            r"[A-Za-z0-9_.-]{1,80} - " + _LEVEL + r" - ",
            r"##\[(?:error|warning|group|endgroup|debug|section)\]",
            r"`{3,}(?:text|console|bash|shell|sh|python|py|log|yaml|json|pytb|ansi|powershell|output|plaintext|txt)?$",
            r"~{3,}[a-z]{0,12}$",
            r"`{3,}",
        )
    ),
    re.ASCII,
)
_FENCE = re.compile(r"[ \t]{0,8}(?:`{2,}|~{3,})[a-z]{0,12}[ \t]*$", re.ASCII)
_FENCE_END = re.compile(r"`{3,}[ \t]*$")
_SRUN = re.compile(r"[0-9]{1,4}: ", re.ASCII)
_SYSLOG = re.compile(r"[A-Z][a-z]{2} [ 0-9][0-9] " + _CLOCK + r" [A-Za-z0-9_.-]{1,64} ", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The lines of a text; `truncated` when a limit cut it, `refused` says why nothing was read."""

    lines: tuple[Line, ...]
    truncated: bool = False
    refused: str | None = None


def clean(data: bytes | str, tick: Callable[[], None] = lambda: None) -> Cleaned:
    """Clean lines of a pasted text; never fails, unless by what `tick` raises, which is called now and then."""
    truncated = len(data) > MAX_TEXT
    data = data[:MAX_TEXT]
    if isinstance(data, bytes):
        if data.startswith(_MAGIC):
            return Cleaned((), truncated, "binary")
        text = decode(data)
    else:
        # A str may hold lone surrogates, which no pattern engine accepts.
        text = data.encode("utf-8", "replace").decode("utf-8") if not data.isascii() else data
    sample = text[:_SAMPLE]
    if len(_CONTROLS.findall(sample)) > max(_FEW_CONTROLS, _BINARY_SHARE * len(sample)):
        return Cleaned((), truncated, "binary")
    text = _whole_text(text)
    lines, cut = _split(text, tick)
    return Cleaned(tuple(lines), truncated or cut)


def _whole_text(text: str) -> str:
    """What can be cleaned without looking at single lines; keeps the number of line feeds."""
    if "\n" not in text:
        text = text.replace("\r", "\n")
    text = text.replace("\r\n", "\n").replace("\f", " ")
    if "\x1b" in text or "^[" in text or "\x9b" in text:
        text = _TERMINAL.sub("", text)
    text = _LOST_COLOUR.sub("", text)
    text = _DROPPED.sub("", text)
    if "<" in text:
        text = _BREAK.sub("\r", _TAG.sub("", text))
    if "&" in text:
        text = _ENTITY.sub(lambda match: _ENTITIES[match.group()], text)
    if not text.isascii():
        text = _NBSP_RUN.sub(lambda match: " " * len(match.group()), text.translate(_TYPOGRAPHY))
    return text


def _split(text: str, tick: Callable[[], None]) -> tuple[list[Line], bool]:
    """Lines without prefixes. Parts between carriage returns (progress bars) share the number of their line."""
    lines: list[Line] = []
    cut = False
    ranked = _has_rank_prefixes(text)
    for number, raw in enumerate(text.split("\n"), start=1):
        if number % _TICK_LINES == 0:
            tick()
        for part in raw.split("\r") if "\r" in raw else (raw,):
            if len(part) > MAX_LINE:
                cut = True
            stripped = _strip_prefixes(part[:MAX_LINE], ranked)
            if stripped is not None:
                lines.append(Line(number, stripped))
    while lines and not lines[-1].text:
        lines.pop()
    return lines, cut


def _has_rank_prefixes(text: str) -> bool:
    """Whether most lines begin with a rank (`srun --label`): a lone `0: ` may belong to a layout."""
    head = text[:_SAMPLE].split("\n")
    ranked = sum(1 for line in head if _SRUN.match(line))
    return ranked >= 3 and ranked > 0.6 * len(head)


def _strip_prefixes(text: str, ranked: bool) -> str | None:
    """The line without what transports and loggers put before it; None for a line that is only a fence."""
    if _FENCE.match(text):
        return None
    if ranked and (match := _SRUN.match(text)):
        text = text[match.end() :]
    for _ in range(_MAX_PREFIXES):
        match = _PREFIX.match(text)
        if match is None:
            break
        # The syslog alternative looks one character ahead, to leave a bare date line alone.
        syslog = _SYSLOG.match(text)
        text = text[(syslog or match).end() :]
        if _FENCE.match(text):
            return None
    if text.endswith("```"):
        text = _FENCE_END.sub("", text)
    return text.rstrip()
