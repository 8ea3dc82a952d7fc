"""The output contract as JSON Schema; `python -m gpurules.report.schema docs/schema` writes the published files.

May live here: turning the models into schemas. Must not: anything that the models do not say.
"""

from __future__ import annotations

import sys
from typing import Any

from pydantic import BaseModel

from ..schemas import write_schemas
from .model import RECOMMEND_SCHEMA, SCHEMA, RecommendResult, Report
from .validation import VALIDATION_SCHEMA, Validation

PUBLISHED: dict[str, tuple[str, type[BaseModel]]] = {
    "report-1.json": (SCHEMA, Report),
    "recommend-1.json": (RECOMMEND_SCHEMA, RecommendResult),
    "validation-1.json": (VALIDATION_SCHEMA, Validation),
}


def json_schema(name: str = "report-1.json") -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a document as it is written: without nulls, unknown keys allowed."""
    title, model = PUBLISHED[name]
    schema = _tidy(model.model_json_schema(by_alias=True))
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}


def _tidy(node: Any) -> Any:
    """Absent is absent: no nulls; what has another default is always written, so it is required."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("properties"), dict):
        required = [name for name, prop in node["properties"].items() if prop.get("default", 0) is not None]
        properties = {name: _tidy(prop) for name, prop in node["properties"].items()}
        rest = {key: _tidy(value) for key, value in node.items() if key not in {"properties", "required", "title"}}
        return {**rest, "properties": properties, "required": required}
    kept = {key: _tidy(value) for key, value in node.items() if key not in {"title", "default"}}
    options = [option for option in kept.get("anyOf", []) if option != {"type": "null"}]
    if "anyOf" in kept and len(options) == 1:
        del kept["anyOf"]
        return {**options[0], **kept}
    return {**kept, "anyOf": options} if options else kept


if __name__ == "__main__":
    write_schemas(sys.argv[1], {name: json_schema(name) for name in PUBLISHED})
