"""A snapshot as text: the facts, which `--facts` reads back, and under `raw` what they were read from.

May live here: the written form of a snapshot. Must not: probing, redaction, reading it back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from .layout import clean


def snapshot_yaml(snapshot: Mapping[str, Any]) -> str:
    """YAML with every fact on a line of its own, as `facts_yaml` writes them."""
    import yaml

    lines = [f"schema: {snapshot['schema']}", "facts:" if snapshot["facts"] else "facts: []"]
    for fact in snapshot["facts"]:
        entry = yaml.safe_dump(_clean(fact), default_flow_style=True, allow_unicode=True, sort_keys=False, width=10**6)
        lines.append(f"- {entry.strip()}")
    raw = yaml.safe_dump({"raw": _clean(snapshot["raw"])}, allow_unicode=True, sort_keys=False, width=10**6)
    return "\n".join(lines) + "\n" + raw


def snapshot_json(snapshot: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """The same as JSON."""
    return json.dumps(_clean(snapshot), ensure_ascii=ascii_only, indent=1) + "\n"


def _clean(value: Any) -> Any:
    """Without what a terminal or a YAML reader would stumble over; lines stay lines."""
    if isinstance(value, str):
        return "\n".join(clean(line) for line in value.split("\n"))
    if isinstance(value, Mapping):
        return {key: _clean(item) for key, item in value.items()}
    return [_clean(item) for item in value] if isinstance(value, list) else value
