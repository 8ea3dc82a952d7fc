"""The list in which an author describes the machine: `- GPU: RTX 4090`, `显卡：3060`, bare `RTX 4090, torch 2.5.1`.

May live here: finding such items by their form, each with its line. Must not: what a name or version stands for, and
lines that a reader or signature made facts of.

Only keys whose meaning cannot be mistaken are taken: `CUDA: 12.4` may be the driver's, the toolkit's or torch's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass

_MAX_TEXT = 2_000_000
_MAX_LINE = 300
_MAX_ITEMS = 40

# The part of the machine that a key names, by the key of a facts file that means it.
_KEYS = {
    "gpu": (
        "gpu", "gpus", "gpu model", "gpu models", "gpu name", "gpu type", "gpu info", "graphics card", "graphic card",
        "video card", "gpu models and configuration", "card", "显卡", "显卡型号", "gpu型号", "显卡为", "显卡是",
    ),
    "driver": (
        "driver", "driver version", "nvidia driver", "nvidia driver version", "gpu driver", "gpu driver version",
        "graphics driver", "nvidia drivers", "驱动", "驱动版本", "显卡驱动", "显卡驱动版本", "nvidia驱动",
    ),
    "os": (
        "os", "operating system", "system os", "os version", "os platform and distribution",
        "操作系统", "系统", "系统版本",
    ),
    "torch": ("torch", "pytorch", "torch version", "pytorch version", "pytorch版本", "torch版本"),
    "python": ("python", "python version", "python版本"),
}  # fmt: skip
_BY_KEY = {name: key for key, names in _KEYS.items() for name in names}
_PAIR = re.compile(
    r"[ \t>]{0,12}(?:[-*+•] {1,4}(?:\[[xX]\] )?|[0-9]{1,2}[.)、] {0,4})?[*_`]{0,3}"
    r"(?P<key>[A-Za-z一-鿿][A-Za-z /()一-鿿]{1,40}?)[*_`]{0,3}[ \t]{0,4}[:：=][*_`]{0,3}[ \t]{0,4}"
    r"(?P<value>[^ \t].{0,120})$"
)
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]{1,4}(?P<key>[^#\n]{2,50}?)[ \t#?？:：*]{0,6}$")
_BULLET = re.compile(r"[ \t]{0,8}(?:[-*+] )?[ \t]{0,4}")
_NOTE = re.compile(r"\((?:e\.g\.|GPU\?|if |i\.e\.).*?\)|\((?:GPU|CPU)\)$")
_LEAD = re.compile(
    r"[ \t>]{0,12}(?:(?:my |the |our )?(?:environment|env|setup|system|config(?:uration)?|versions?|specs?)"
    r"|环境|配置|我的环境|运行环境|硬件环境|软件环境)(?: is)?[ \t]{0,2}[:：]",
    re.IGNORECASE,
)
_SPLIT = re.compile(r"[,，;；、]|\s{2,}|\t")
_VERSION = r"[0-9]{1,3}(?:\.[0-9]{1,4}){1,3}(?:\.dev[0-9]{6,8})?(?:\+[a-z0-9.]{2,12})?"
_BARE = {
    "torch": re.compile(
        rf"(?:py)?torch(?:\s?版本)?[ =v:]{{0,4}}(?P<value>{_VERSION})(?: (?:with|by|from|via) (?:conda|pip))?$", re.I
    ),
    "torch cuda": re.compile(r"(?:cudatoolkit|pytorch-cuda)[ =v:]{1,4}(?P<value>[0-9]{1,2}\.[0-9])$", re.I),
    "python": re.compile(r"python(?:\s?版本)?[ =v:]{0,4}(?P<value>3\.[0-9]{1,2}(?:\.[0-9]{1,2})?)$", re.I),
    "driver": re.compile(
        r"(?:nvidia |gpu )?(?:driver(?: version)?|驱动(?:版本)?)[ =v:]{0,4}"
        r"(?P<value>[0-9]{3}\.[0-9]{2,3}(?:\.[0-9]{2})?)$", re.I
    ),
    "os": re.compile(
        r"(?P<value>(?:Windows|Win) ?1[01](?: (?:Pro|Home))?|Ubuntu ?[12][0-9]\.[0-9]{2}(?:\.[0-9])?(?: LTS)?"
        r"|Debian ?1[0-9])$", re.I
    ),
    "gpu": re.compile(
        r"(?:[1-9] ?[x*×] ?)?(?:显卡|gpu)?\s?(?P<value>[A-Za-z][A-Za-z0-9 -]{1,40}?)"
        r"(?:\s?显卡)?(?:\s?[x*×]\s?[0-9]{1,2}|\s?[0-9]{1,2}\s?[张块])?$", re.I
    ),
}  # fmt: skip
_PLAIN_VALUE = {
    "driver": re.compile(r"v?(?P<value>[0-9]{3}\.[0-9]{2,3}(?:\.[0-9]{2})?)\b"),
    "torch": re.compile(rf"v?(?P<value>{_VERSION})(?:[^0-9.]|$)"),
    "python": re.compile(r"v?(?P<value>3\.[0-9]{1,2}(?:\.[0-9]{1,2})?)\b"),
}


@dataclass(frozen=True, slots=True)
class Item:
    """An item of such a list: a key of facts files and its value, as written."""

    line: int
    key: str
    value: str


def items(data: bytes | str, is_gpu: Callable[[str], bool], taken: Set[int] = frozenset()) -> list[Item]:
    """The items of a text, the first of each key.

    is_gpu: whether a text names a GPU. taken: numbers of lines that are facts already.
    """
    text = data[:_MAX_TEXT]
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    found: dict[str, Item] = {}
    headed: str | None = None  # the key of the heading above, until a line follows it
    for number, raw in enumerate(text.split("\n"), start=1):
        if number in taken or len(raw) > _MAX_LINE or len(found) >= _MAX_ITEMS:
            headed = None
            continue
        line = raw.rstrip("\r")
        if heading := _HEADING.match(line):
            headed = _BY_KEY.get(_NOTE.sub("", heading["key"]).strip(" *").casefold())
            continue
        for key, value in _of_line(line, is_gpu, headed):
            found.setdefault(key, Item(number, key, value))
        if line.strip():
            headed = None
    return list(found.values())


def _of_line(line: str, is_gpu: Callable[[str], bool], headed: str | None) -> Iterator[tuple[str, str]]:
    below = _plain(headed, _BULLET.sub("", line, count=1).strip(" *_`")) if headed else None
    if headed and below and (headed != "gpu" or is_gpu(below)):
        yield headed, below
        return
    if (lead := _LEAD.match(line)) is None and (pair := _PAIR.match(line)):
        key = _BY_KEY.get(_NOTE.sub("", pair["key"]).strip().casefold())
        value = pair["value"].strip(" \t*_`")
        if key is not None and (plain := _plain(key, value)) and (key != "gpu" or is_gpu(plain)):
            yield key, plain
        return
    rest = line[lead.end() :] if lead else line
    parts = [part.strip(" \t。.*`") for part in _SPLIT.split(rest)]
    read = [_bare(part, is_gpu) for part in parts if part]
    # Without a lead every part must be of the list: in a sentence a name says nothing of the machine.
    if lead or (read and all(item is not None for item in read)):
        yield from (item for item in read if item is not None)


def _plain(key: str, value: str) -> str | None:
    """The value where it has the form that its key asks for."""
    form = _PLAIN_VALUE.get(key)
    if form is None:
        return value
    match = form.match(value)
    return match["value"] if match else None


def _bare(part: str, is_gpu: Callable[[str], bool]) -> tuple[str, str] | None:
    for key, form in _BARE.items():
        match = form.match(part)
        if match and (key != "gpu" or is_gpu(match["value"])):
            return key, match["value"].strip()
    return None
