"""The texts of the interface: the code says an id and values, `knowledge/messages.yaml` has the words.

May live here: reading that file, choosing the language, filling values in. Must not: any words, any import of ours.
The file is read without a YAML parser, an entry a line, so that `--help` in either language answers at once.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from functools import cache, lru_cache
from json import loads
from pathlib import Path
from typing import Literal

Lang = Literal["en", "zh"]
LANGS: tuple[Lang, ...] = ("en", "zh")

FILE = Path(__file__).resolve().parent / "knowledge" / "messages.yaml"
_STRING = r'"(?:[^"\\\n]|\\.)*"'
_ENTRY = re.compile(rf"^([a-z0-9_.-]+): \{{en: ({_STRING}), zh: ({_STRING})\}}$", re.MULTILINE)
_SPACES_BY_WIDE_MARKS = re.compile("(?<=[，。：；（）、]) +| +(?=[，。：；（）、])|(?<=[一-鿿”]) +(?=[一-鿿“])")


@lru_cache(maxsize=1)
def _entries() -> dict[str, tuple[str, str]]:
    """The texts of each id as they are quoted in the file."""
    return {m[1]: (m[2], m[3]) for m in _ENTRY.finditer(FILE.read_text(encoding="utf-8"))}


def ids() -> list[str]:
    """Every id, in the order of the file."""
    return list(_entries())


def known(key: str) -> bool:
    """Whether there is a text of that id."""
    return key in _entries()


@cache
def template(key: str, lang: Lang) -> str:
    """The text of an id as it stands, its values not filled in. Raises KeyError."""
    text: str = loads(_entries()[key][LANGS.index(lang)])
    return text


def said(key: str, lang: Lang, values: Mapping[str, object] | None = None) -> str:
    """The text of an id with its values filled in; messages among them are said in the same language."""
    if not values:
        return template(key, lang).format()
    text = template(key, lang).format(**{name: _shown(value, lang) for name, value in values.items()})
    return closed_up(text, lang)


def closed_up(text: str, lang: Lang) -> str:
    """Chinese text without the spaces that a Latin value would need where it was filled in."""
    return _SPACES_BY_WIDE_MARKS.sub("", text) if lang == "zh" else text


def _shown(value: object, lang: Lang) -> object:
    if isinstance(value, Message):
        return value.said(lang)
    if isinstance(value, list | tuple):
        return template("list.and", lang).join(str(_shown(item, lang)) for item in value)
    return value


class Message:
    """A text that is said later, in the language of whoever reads it: an id and values, which may be messages too."""

    __slots__ = ("id", "values")

    def __init__(self, id: str, /, **values: object) -> None:
        self.id = id
        self.values = values

    def said(self, lang: Lang) -> str:
        """The text in a language."""
        return said(self.id, lang, self.values)

    def __str__(self) -> str:
        return self.said("en")

    def __repr__(self) -> str:
        return f"Message({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and (self.id, self.values) == (other.id, other.values)

    def __hash__(self) -> int:
        return hash(str(self))

    def __lt__(self, other: Message) -> bool:
        return str(self) < str(other)


NOTHING = Message("nothing")


def locale_lang(environ: Mapping[str, str] | None = None) -> Lang:
    """zh where the first of LC_ALL, LC_MESSAGES and LANG that is set says Chinese, else en.

    Windows sets none of them; there the language of its own interface decides.
    """
    values = os.environ if environ is None else environ
    chosen = next((values[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if values.get(name)), "")
    if not chosen and environ is None and sys.platform == "win32":
        import ctypes

        chinese = 0x04  # primary language id, the lower ten bits
        chosen = "zh" if ctypes.windll.kernel32.GetUserDefaultUILanguage() & 0x3FF == chinese else ""
    return "zh" if chosen.lower().startswith("zh") else "en"
