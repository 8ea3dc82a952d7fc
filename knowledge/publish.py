"""The shape of rule and fix files as JSON Schema; `python -m gpurules.knowledge.publish docs/schema` writes the files.

May live here: turning the models into schemas that editors use. Must not: anything that the models do not say.
"""

from __future__ import annotations

import sys
from typing import Any

from pydantic import BaseModel

from ..schemas import write_schemas
from .schema import FixFile, RuleFile

PUBLISHED: dict[str, tuple[str, type[BaseModel]]] = {
    "rule-1.json": ("gpurules.rule/1", RuleFile),
    "fix-1.json": ("gpurules.fix/1", FixFile),
}


def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a file as it is written by hand."""
    title, model = PUBLISHED[name]
    schema = _tidy(model.model_json_schema(by_alias=True))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": title}


def _tidy(node: Any) -> Any:
    """Without generated titles and nulls; a version such as 12.4 is a number to other readers of YAML, and allowed."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {}
    for key, content in node.items():
        if key in ("properties", "$defs"):
            kept[key] = {name: _tidy(value) for name, value in content.items()}
        elif key != "title" and (key != "default" or content is not None):
            kept[key] = _tidy(content)
    options = [option for option in kept.get("anyOf", ()) if option != {"type": "null"}]
    if not options:
        return kept
    del kept["anyOf"]
    if len(options) == 1:
        return {**options[0], **kept}
    return {**kept, "anyOf": [{"type": "number"} if option == {"type": "integer"} else option for option in options]}


if __name__ == "__main__":
    write_schemas(sys.argv[1], {name: json_schema(name) for name in PUBLISHED})
