"""Facts as text that `--facts` reads back: `facts:` and one typed entry each.

May live here: the written form of facts. Must not: reading them, or knowing what they mean.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ..facts import Fact
from .layout import clean

_PLACEHOLDER = re.compile(r"<[a-z]+(?:-\d+)?>")


def facts_yaml(facts: Iterable[Fact]) -> str:
    """A YAML facts file; every fact on a line of its own."""
    import yaml

    lines = ["facts:"]
    for fact in facts:
        entry = yaml.safe_dump(_entry(fact), default_flow_style=True, allow_unicode=True, sort_keys=False, width=10**6)
        lines.append(f"- {entry.strip()}")
    return "\n".join(lines if len(lines) > 1 else ["facts: []"]) + "\n"


def facts_json(facts: Iterable[Fact], *, ascii_only: bool = False) -> str:
    """The same as JSON."""
    return json.dumps({"facts": [_entry(fact) for fact in facts]}, ensure_ascii=ascii_only, indent=1) + "\n"


def redactions(facts: Sequence[Fact]) -> list[str]:
    """Where values were replaced by placeholders, as `env_var.value <user> 2x`, in order of appearance."""
    found = Counter(
        f"{fact.type}.{name} {mark}"
        for fact in facts
        for name, value in fact.fields.items()
        if isinstance(value, str)
        for mark in _PLACEHOLDER.findall(value)
    )
    return [clean(place) + (f" {times}x" if times > 1 else "") for place, times in found.items()]


def _entry(fact: Fact) -> dict[str, Any]:
    fields = {name: clean(value) if isinstance(value, str) else value for name, value in fact.fields.items()}
    return {fact.type: fields}
