"""The words of the interface in one language, as renderers use them.

May live here: counting and joining sentences. Must not: any words (knowledge/messages.yaml), choosing the language.
"""

from __future__ import annotations

from .. import messages
from ..messages import Lang


class Words:
    """The messages in one language: `words("verdict.ok")`, `words("read.from", facts=41, source="issue.txt")`."""

    def __init__(self, lang: Lang) -> None:
        self.lang = lang

    def __call__(self, key: str, **values: object) -> str:
        """The message with its values filled in."""
        return messages.said(key, self.lang, values)

    def of(self, key: str, lang: Lang) -> str:
        """The message in a language that need not be this one, as it stands."""
        return messages.template(key, lang)

    def joined(self, first: str, second: str) -> str:
        """Two sentences one after the other: Chinese full stops need no space behind them."""
        return first + ("" if first.endswith(tuple("。：；！？")) else " ") + second

    def count(self, key: str, number: int) -> str:
        """`1 error`, `2 errors`: the message `key.one` or `key.other` with `{n}`."""
        return self(f"{key}.{'one' if number == 1 else 'other'}", n=number)

    def named(self, key: str, fallback: str) -> str:
        """The message, or the fallback where the catalog has none: for open sets of names."""
        return self(key) if messages.known(key) else fallback

    def place(self, where: str | None) -> str:
        """Where something was read: files by their name, the user's question and the planner in this language."""
        return self.named(f"place.{where}", where or "")
