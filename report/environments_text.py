"""The Python environments of a machine as a list for people.

May live here: the layout of that list. Must not: wording (knowledge/messages.yaml), finding or choosing environments.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..facts import Fact
from .layout import Look, clean, fit
from .messages import Words
from .model import Lang


def render_environments(facts: Sequence[Fact], *, lang: Lang = "en", look: Look | None = None) -> str:
    """Two lines an environment: its interpreter, and what it is; the one that is judged has a star."""
    words = Words(lang)
    if not facts:
        return words("environment.none") + "\n"
    lines: list[str] = []
    for fact in facts:
        mark = "*" if fact.get("chosen") else " "
        lines += [f"{mark} {clean(str(fact.fields['executable']))}", f"    {_about(fact, words)}"]
    lines += ["", words("environment.legend")]
    return fit("\n".join(lines) + "\n", (look or Look()).encoding)


def _about(fact: Fact, words: Words) -> str:
    python = " ".join(clean(str(fact.get(name))) for name in ("kind", "name", "version") if fact.get(name))
    parts = [python, _torch(fact, words), words(f"environment.by.{fact.fields['found_by']}")]
    if fact.get("kernel"):
        parts.append(words("environment.kernel", kernel=clean(str(fact.get("kernel")))))
    return words("list.dot").join(parts)


def _torch(fact: Fact, words: Words) -> str:
    if fact.get("torch"):
        return words("environment.torch", version=clean(str(fact.get("torch"))))
    return words("environment.torch.absent" if fact.get("torch_present") is False else "environment.torch.unknown")
