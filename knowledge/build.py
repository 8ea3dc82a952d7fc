"""Compiling the knowledge folder to the document that the cache stores.

May live here: reading and validating every file and completing the catalogs with what follows from their rows. Must
not: content, evaluation. Imported only when the cache misses, since it needs pydantic.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from ..engine.ir import Rule
from ..facts import Scalar
from .aliases import load_aliases
from .catalogs import Catalogs, load_catalogs
from .compile import Compiler, LanguageError
from .loader import rule_to_json, vocabulary_to_json
from .phrases import load_phrases
from .problems import Problems
from .schema import CauseEntry, FixFile, QuestionEntry, RuleFile, SymptomEntry
from .versions import parse_version
from .vocabulary import Vocabulary, load_vocabulary
from .yamlnodes import Node, load

_STEP = re.compile(r"\[(\d+)\]|\.?([^.\[\]]+)")


def compile_knowledge(files: Mapping[str, Path], problems: Problems) -> dict[str, Any]:
    """The compiled document; faults are recorded in `problems` and then parts of it may be missing."""
    plain = load_vocabulary(files["vocabulary.yaml"], problems)
    catalogs = load_catalogs(_catalog_folder(files), plain, problems)
    vocabulary = Vocabulary(plain.types, catalogs.gpu_names().identify)
    compiler = Compiler(vocabulary)
    ir: list[Rule] = []
    rules = _units(files, "rules/", RuleFile, problems)
    fixes = _units(files, "fixes/", FixFile, problems)
    for unit in rules.values():
        ir += _compiled(compiler.rule, unit, problems)
    for unit in fixes.values():
        ir += _compiled(compiler.fix, unit, problems)
    symptoms = _table(files, "symptoms.yaml", SymptomEntry, problems)
    for slug, entry in symptoms.items():
        ir += compiler.symptom(slug, entry)
    static, sources = _static(catalogs, vocabulary)
    return {
        "vocabulary": vocabulary_to_json(plain),
        "rules": {k: u.data for k, u in rules.items()},
        "fixes": {k: u.data for k, u in fixes.items()},
        "causes": _table(files, "causes.yaml", CauseEntry, problems),
        "symptoms": symptoms,
        "questions": _table(files, "questions.yaml", QuestionEntry, problems),
        "signatures": _signatures(files, problems),
        "ir": [rule_to_json(r) for r in ir],
        "static": static,
        "sources": sources,
        "names": [[n.product, list(n.aliases), n.line] for n in catalogs.names],
        "aliases": _aliases(files, vocabulary, problems),
        "phrases": _phrases(files, problems),
        "retrieved": dict(catalogs.retrieved),
    }


def _catalog_folder(files: Mapping[str, Path]) -> Path:
    return files["facts/torch_builds.yaml"].parent


# --- rule and fix files ---------------------------------------------------------------------------------------------------


class Unit:
    """A validated file: its content as a dictionary and its nodes, for the lines of later faults."""

    def __init__(self, data: dict[str, Any], node: Node) -> None:
        self.data = data
        self.node = node


def _units(files: Mapping[str, Path], prefix: str, model: type[BaseModel], problems: Problems) -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for name, path in files.items():
        if not name.startswith(prefix):
            continue
        node = load(path, problems, name)
        data = _validated(node, model, problems) if node is not None else None
        if data is None or node is None:
            continue
        if data["id"] != path.stem:
            problems.add(name, node.line, "id", f'must be the file\'s name, "{path.stem}"')
        units[data["id"]] = Unit({**data, "file": name}, node)
    return units


def _compiled(compile_one: Any, unit: Unit, problems: Problems) -> list[Rule]:
    try:
        result: list[Rule] = compile_one(unit.data)
        return result
    except LanguageError as error:
        problems.add(unit.node.file, line_of(unit.node, error.field), error.field, str(error))
        return []


def _table(files: Mapping[str, Path], name: str, model: type[BaseModel], problems: Problems) -> dict[str, Any]:
    if name not in files:
        return {}
    root = load(files[name], problems, name)
    table: dict[str, Any] = {}
    for key, node in root.pairs() if root else ():
        data = _validated(node, model, problems, prefix=f"{key.text}.")
        if data is not None:
            table[key.text] = data
    return table


def _validated(node: Node, model: type[BaseModel], problems: Problems, prefix: str = "") -> dict[str, Any] | None:
    try:
        return model.model_validate(node.plain()).model_dump(exclude_none=True)
    except ValidationError as error:
        for fault in error.errors():
            field = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in fault["loc"]).lstrip(".")
            problems.add(node.file, line_of(node, field), prefix + field, fault["msg"])
        return None


def line_of(node: Node, field: str) -> int:
    """The line of a path such as `when.t.torch.version` or `conclude[0].fact`; of its nearest parent where it is absent."""
    current = node
    for index, key in _STEP.findall(field):
        elements = current.elements()
        found = elements[int(index)] if index and int(index) < len(elements) else current.get(key) if key else None
        if found is None:
            break
        current = found
    return current.line


# --- catalogs ---------------------------------------------------------------------------------------------------------------


def _static(catalogs: Catalogs, vocabulary: Vocabulary) -> tuple[list[list[Any]], list[list[str]]]:
    """The catalog rows, completed and lowered: [type, fields, index of source, confidence]."""
    sources: dict[tuple[str, str], int] = {}
    rows = []
    for type_name, fields, source, confidence in _completed(catalogs):
        index = sources.setdefault(source, len(sources))
        rows.append([type_name, vocabulary.lower_fields(type_name, fields), index, confidence])
    return rows, [list(s) for s in sources]


def _completed(catalogs: Catalogs) -> Iterator[tuple[str, dict[str, Scalar], tuple[str, str], str]]:
    """Every row, with what follows from the others: variants from builds, first code and dropping branch of an architecture."""
    architectures = [r.fields for r in catalogs.rows if r.type == "architecture"]
    branches = sorted(int(r.fields["branch"]) for r in catalogs.rows if r.type == "driver_branch")
    variants: set[Scalar] = set()
    for row in catalogs.rows:
        source = (row.source.url, row.source.title)
        fields = dict(row.fields)
        if row.type == "architecture":
            fields |= _architecture_extras(fields, architectures, branches)
        yield row.type, fields, source, row.confidence
        if row.type == "torch_build" and fields["variant"] not in variants:
            variants.add(fields["variant"])
            yield "torch_variant", {k: fields[k] for k in ("variant", "accelerator", "cuda", "cuda_major") if k in fields}, source, row.confidence


def _architecture_extras(fields: Mapping[str, Scalar], architectures: Iterable[Mapping[str, Scalar]], branches: Iterable[int]) -> dict[str, Scalar]:
    extras: dict[str, Scalar] = {"integrated": fields.get("integrated", False)}
    sm = int(fields["sm"])
    # Code for a lower minor of the same major serves a desktop part; a Tegra part needs its own.
    serving = [a for a in architectures if "first_cuda" in a and (int(a["sm"]) == sm or (not extras["integrated"] and not a.get("integrated") and int(a["sm"]) // 10 == sm // 10 and int(a["sm"]) <= sm))]
    if serving:
        extras["first_code_cuda"] = min((str(a["first_cuda"]) for a in serving), key=_order)
    if "last_driver" in fields:
        later = [b for b in branches if b > int(fields["last_driver"])]
        if later:
            extras["dropped_driver"] = later[0]
    return extras


def _order(version: str) -> int:
    parts = parse_version(version)
    return parts.order if parts else 0


def _aliases(files: Mapping[str, Path], vocabulary: Vocabulary, problems: Problems) -> Any:
    path = files["aliases.yaml"]
    load_aliases(path, vocabulary, problems)
    root = load(path, Problems())
    return root.plain() if root else {}


def _phrases(files: Mapping[str, Path], problems: Problems) -> Any:
    path = files["facts/phrases.yaml"]
    load_phrases(path, problems)
    root = load(path, Problems())
    rows = root.get("rows") if root else None
    return rows.plain() if rows else []


def _signatures(files: Mapping[str, Path], problems: Problems) -> list[Any]:
    if "facts/errors.yaml" not in files:
        return []
    root = load(files["facts/errors.yaml"], problems, "facts/errors.yaml")
    rows = root.get("signatures") if root else None
    return [n.plain() for n in rows.elements()] if rows else []
