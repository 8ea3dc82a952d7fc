"""What kind of source a page is: the maker's, the project's, its code, a maintainer's word, or none of these.

May live here: finding the publisher of an address. Must not: any address or name (publishers.yaml has them).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

KINDS = ("vendor", "project", "source_code", "maintainer", "standard", "paper", "report", "data")
# The kinds that a finding may rest on; the others can only add to them.
PRIMARY = frozenset(KINDS[:4])
_ENDS = "/#?"


class Publishers:
    """The kinds of source by the beginnings of their addresses; the longest beginning counts."""

    def __init__(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        self._kinds: dict[str, str] = {at: entry["kind"] for entry in entries.values() for at in entry["at"]}

    def kind(self, url: str) -> str | None:
        """The kind of a page, None where nobody says."""
        fitting = [at for at in self._kinds if _begins(url, at)]
        return self._kinds[max(fitting, key=len)] if fitting else None


def _begins(url: str, at: str) -> bool:
    """Whether the address begins so, up to the end of one of its parts: issues/88 does not begin issues/889."""
    return url.startswith(at) and (at[-1:] in _ENDS or len(url) == len(at) or url[len(at)] in _ENDS)
