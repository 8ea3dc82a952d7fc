"""The words of the interface in each language, read from `knowledge/messages.yaml` when first needed.

May live here: loading the words, choosing the language, filling in values. Must not: any words.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .model import Lang

_SPACES_BY_WIDE_MARKS = re.compile("(?<=[，。：；（）、]) +| +(?=[，。：；（）、])|(?<=[一-鿿]) +(?=[一-鿿])")


def closed_up(text: str, lang: Lang) -> str:
    """Chinese text without the spaces that a Latin value would need where it was filled in."""
    return _SPACES_BY_WIDE_MARKS.sub("", text) if lang == "zh" else text


@lru_cache(maxsize=1)
def _catalog() -> dict[str, dict[str, str]]:
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    package = f"{__package__.rpartition('.')[0]}.knowledge"
    text = files(package).joinpath("messages.yaml").read_text(encoding="utf-8")
    loaded: dict[str, dict[str, str]] = yaml.load(text, Loader=loader)
    return loaded


class Words:
    """The messages in one language: `words("verdict.ok")`, `words("read.from", facts=41, source="issue.txt")`."""

    def __init__(self, lang: Lang) -> None:
        self.lang = lang
        self._messages = _catalog()

    def __call__(self, key: str, **values: object) -> str:
        """The message with its values filled in."""
        text = self._messages[key][self.lang].format(**values)
        return closed_up(text, self.lang) if values else text

    def of(self, key: str, lang: Lang) -> str:
        """The message in a language that need not be this one, as it stands."""
        return self._messages[key][lang]

    def joined(self, first: str, second: str) -> str:
        """Two sentences one after the other: Chinese full stops need no space behind them."""
        return first + ("" if first.endswith(tuple("。：；！？")) else " ") + second

    def count(self, key: str, number: int) -> str:
        """`1 error`, `2 errors`: the message `key.one` or `key.other` with `{n}`."""
        return self(f"{key}.{'one' if number == 1 else 'other'}", n=number)

    def named(self, key: str, fallback: str) -> str:
        """The message, or the fallback where the catalog has none: for open sets of names."""
        entry = self._messages.get(key)
        return entry[self.lang] if entry else fallback


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
