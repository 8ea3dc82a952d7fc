"""Facts as JSON Schema; `python -m gpurules.knowledge.facts_schema docs/schema` writes the file.

May live here: turning the vocabulary into the schema of typed facts. Must not: anything that the vocabulary does not
say.
"""

from __future__ import annotations

import sys
from typing import Any

from ..schemas import write_schemas
from .loader import FOLDER
from .problems import Problems
from .vocabulary import FieldSpec, TypeSpec, load_vocabulary

NAME = "facts-1.json"
_TYPES = {"int": "integer", "bool": "boolean", "sm": ["integer", "number", "string"], "version": ["string", "number"]}


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a file of typed facts."""
    problems = Problems()
    vocabulary = load_vocabulary(FOLDER / "vocabulary.yaml", problems)
    problems.raise_if_any()
    observed = {name: spec for name, spec in sorted(vocabulary.types.items()) if spec.kind == "observed"}
    entry = {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": False,
        "properties": {
            "_from": {"type": "string", "description": "where the fact was read"},
            **{name: {"$ref": f"#/$defs/{name}"} for name in observed},
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "gpurules.facts/1",
        "type": "object",
        "required": ["facts"],
        "additionalProperties": False,
        "properties": {
            "facts": {"type": "array", "items": entry},
            "schema": {"type": "string"},
            "version": {"type": "string"},
        },
        "$defs": {name: _type(spec) for name, spec in observed.items()},
    }


def _type(spec: TypeSpec) -> dict[str, Any]:
    return {
        "type": "object",
        "description": spec.about,
        "additionalProperties": False,
        "properties": {name: _field(field) for name, field in spec.fields.items()},
    }


def _field(spec: FieldSpec) -> dict[str, Any]:
    told = {"description": spec.about} if spec.about else {}
    if spec.type == "enum":
        return {"enum": list(spec.values), **told}
    return {"type": _TYPES.get(spec.type, "string"), **told}


if __name__ == "__main__":
    write_schemas(sys.argv[1], {NAME: json_schema()})
