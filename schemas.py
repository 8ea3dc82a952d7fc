"""JSON Schemas as the files that are published.

May live here: their written form. Must not: any schema (knowledge/, report/).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def schema_text(schema: Mapping[str, Any]) -> str:
    """The published file's content."""
    return json.dumps(schema, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def write_schemas(folder: str, schemas: Mapping[str, Mapping[str, Any]]) -> None:
    """Write the published files, by their names, into a folder."""
    for name, schema in schemas.items():
        Path(folder, name).write_text(schema_text(schema), encoding="utf-8")
