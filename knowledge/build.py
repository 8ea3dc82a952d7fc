"""Compiling the knowledge folder to the document that the cache stores.

May live here: reading and validating every file and completing the catalogs with what follows from their rows. Must
not: content, evaluation. Imported only when the cache misses, since it needs pydantic.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ..engine.ir import Rule
from ..facts import Scalar
from ..messages import NOTHING, Message
from .aliases import load_aliases
from .catalogs import Catalogs, Source, load_catalogs, read_table
from .compile import Compiler, LanguageErrors
from .ledger import Page, read_advice, read_errata
from .loader import FOLDER, rule_to_json, vocabulary_to_json
from .phrases import load_phrases
from .problems import KnowledgeError, Problems, did_you_mean
from .publishers import Publishers
from .schema import (
    CauseEntry,
    ChangeEntry,
    FixFile,
    FreshnessEntry,
    PublisherEntry,
    QuestionEntry,
    RuleFile,
    SentenceEntry,
    StageEntry,
    SymptomEntry,
)
from .shapes import shape_fault
from .versions import parse_version
from .vocabulary import Vocabulary, load_vocabulary
from .yamlnodes import Node, load

SLUG = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*\Z")
_ABSENT = ("extra_forbidden", "missing")
_STEP = re.compile(r"\[(\d+)\]|\.?([^.\[\]]+)")


class Unit:
    """A validated file or entry: its content, its nodes for the lines of later faults, and the rules it compiles to."""

    def __init__(self, data: dict[str, Any], node: Node, prefix: str = "") -> None:
        self.data = data
        self.node = node
        self.prefix = prefix
        self.ir: list[Rule] = []

    def fault(self, problems: Problems, field: str, message: Message) -> None:
        """Record a fault of this unit; `field` is a path such as `when.t.torch.version`."""
        problems.add(self.node.file, line_of(self.node, field), (self.prefix + field).rstrip("."), message)


@dataclass(frozen=True, slots=True)
class Cited:
    """A page that a table of sources names. retrieved: when it was opened, or named where it was not."""

    url: str
    title: str
    retrieved: str
    opened: bool
    kind: str | None


@dataclass(frozen=True)
class Sources:
    """The knowledge folder as read: every valid part of it, also where others are at fault.

    plain: the vocabulary as its file has it; vocabulary: the same, able to identify GPU names. cited: the pages that
    tables of sources name, by file and key.
    """

    files: Mapping[str, Path]
    plain: Vocabulary
    vocabulary: Vocabulary
    catalogs: Catalogs
    rules: Mapping[str, Unit]
    fixes: Mapping[str, Unit]
    causes: Mapping[str, Unit]
    symptoms: Mapping[str, Unit]
    questions: Mapping[str, Unit]
    sentences: Mapping[str, Unit]
    changes: Mapping[str, Unit]
    stages: Mapping[str, Unit]
    signatures: tuple[Node, ...]
    signature_sources: frozenset[str]
    cited: Mapping[str, Mapping[str, Cited]]
    aliases: Node | None
    phrases: list[Any]


def read_sources(files: Mapping[str, Path], problems: Problems) -> Sources:
    """Read and compile every file; faults are recorded in `problems`. Raises KnowledgeError without a vocabulary."""
    for name, path in files.items():
        fault = _misplaced(name, path)
        if fault:
            problems.add(name, 0, "", fault)
    plain = _vocabulary(files["vocabulary.yaml"])
    with _inside("facts/", problems) as found:
        catalogs = load_catalogs(files["facts/torch_builds.yaml"].parent, plain, found, files)
    vocabulary = Vocabulary(plain.types, catalogs.gpu_names().identify)
    compiler = Compiler(vocabulary)
    rules = _units(files, "rules/", RuleFile, problems)
    fixes = _units(files, "fixes/", FixFile, problems)
    symptoms = _table(files, "symptoms.yaml", SymptomEntry, problems)
    for unit in rules.values():
        _compile(compiler.rule, unit, problems)
    for unit in fixes.values():
        _compile(compiler.fix, unit, problems)
    for slug, unit in symptoms.items():
        unit.ir = compiler.symptom(slug, unit.data)
    signatures, signature_sources = _signatures(files, problems)
    publishers = Publishers(_contents(_table(files, "publishers.yaml", PublisherEntry, problems)))
    for unit in (*rules.values(), *fixes.values()):
        for page in unit.data["sources"]:
            kind = page.get("kind") or publishers.kind(page["url"])
            if kind:
                page["kind"] = kind
    return Sources(
        files=files,
        plain=plain,
        vocabulary=vocabulary,
        catalogs=catalogs,
        rules=rules,
        fixes=fixes,
        causes=_table(files, "causes.yaml", CauseEntry, problems),
        symptoms=symptoms,
        questions=_table(files, "questions.yaml", QuestionEntry, problems),
        sentences=_table(files, "sentences.yaml", SentenceEntry, problems),
        changes=_table(files, "changes.yaml", ChangeEntry, problems),
        stages=_table(files, "stages.yaml", StageEntry, problems),
        signatures=signatures,
        signature_sources=signature_sources,
        cited=_cited(files, catalogs, publishers, problems),
        aliases=_aliases(files, vocabulary, problems),
        phrases=_phrases(files, problems),
    )


def compile_knowledge(files: Mapping[str, Path], problems: Problems) -> dict[str, Any]:
    """The compiled document; faults are recorded in `problems` and then parts of it may be missing."""
    sources = read_sources(files, problems)
    static, references = static_rows(sources.catalogs, sources.vocabulary)
    units = (*sources.rules.values(), *sources.fixes.values(), *sources.symptoms.values())
    return {
        "vocabulary": vocabulary_to_json(sources.plain),
        "rules": _contents(sources.rules),
        "fixes": _contents(sources.fixes),
        "causes": _contents(sources.causes),
        "symptoms": _contents(sources.symptoms),
        "questions": _contents(sources.questions),
        "sentences": _contents(sources.sentences),
        "changes": _contents(sources.changes),
        "stages": _contents(sources.stages),
        "advice": _advice(files, problems),
        "freshness": _contents(_table(files, "freshness.yaml", FreshnessEntry, problems)),
        "catalog_of": {row.type: Path(row.file).stem for row in sources.catalogs.rows},
        "signatures": [node.plain() for node in sources.signatures],
        "ir": [rule_to_json(rule) for unit in units for rule in unit.ir],
        "static": static,
        "sources": references,
        "names": sources.catalogs.gpu_names().table(),
        "aliases": sources.aliases.plain() if sources.aliases else {},
        "phrases": sources.phrases,
        "retrieved": dict(sources.catalogs.retrieved),
        "pages": _pages(sources),
    }


def _cited(
    files: Mapping[str, Path], catalogs: Catalogs, publishers: Publishers, problems: Problems
) -> dict[str, dict[str, Cited]]:
    """The tables of sources of the catalogs, the error catalog and the ledgers."""
    found: dict[str, dict[str, Cited]] = {}

    def note(file: str, key: str, page: Source | Page, day: str) -> None:
        kind = page.kind or publishers.kind(page.url)
        found.setdefault(file, {})[key] = Cited(page.url, page.title, day, page.opened, kind)

    for name, table in catalogs.sources.items():
        for key, source in table.items():
            note(f"facts/{name}.yaml", key, source, catalogs.retrieved[name])
    for file, reader in (("advice.yaml", read_advice), ("errata.yaml", read_errata)):
        try:
            book = reader(files)
        except KnowledgeError as error:
            problems.found += error.problems
            continue
        for key, page in book.sources.items():
            note(file, key, page, book.retrieved)
    root = load(files["facts/errors.yaml"], Problems(), "facts/errors.yaml")
    listed, day = (root.get("sources"), root.get("retrieved")) if root else (None, None)
    for key, source in read_table(root, "errors.yaml", Problems()).items() if root and listed else ():
        note("facts/errors.yaml", key, source, day.text if day else "")
    return found


def _pages(sources: Sources) -> dict[str, dict[str, Any]]:
    """Every page that is cited, by its address: title, day, kind and whether it was opened."""
    pages: dict[str, dict[str, Any]] = {}
    for unit in (*sources.rules.values(), *sources.fixes.values()):
        for page in unit.data["sources"]:
            pages.setdefault(page["url"], {k: v for k, v in page.items() if k != "url"})
    for table in sources.cited.values():
        for cited in table.values():
            told = {"title": cited.title, "retrieved": cited.retrieved, "opened": cited.opened, "kind": cited.kind}
            pages.setdefault(cited.url, {k: v for k, v in told.items() if v is not None})
    return pages


def _contents(units: Mapping[str, Unit]) -> dict[str, dict[str, Any]]:
    return {key: unit.data for key, unit in units.items()}


@contextlib.contextmanager
def _inside(folder: str, problems: Problems) -> Iterator[Problems]:
    """Collects the problems of a reader that names files without their folder."""
    found = Problems()
    yield found
    for problem in found.found:
        problems.add(folder + problem.file, problem.line, problem.field, problem.message)


def _vocabulary(path: Path) -> Vocabulary:
    """The vocabulary; nothing else can be read without it. Another in its place may add to the shipped one only."""
    problems = Problems()
    found = load_vocabulary(path, problems)
    shipped = FOLDER / "vocabulary.yaml"
    if path != shipped:
        for name, spec in load_vocabulary(shipped, Problems()).types.items():
            own = found.types.get(name)
            lost = [name] if own is None else [f"{name}.{f}" for f in spec.fields if f not in own.fields]
            for field in lost:
                problems.add(path.name, 0, field, Message("fault.lost"))
    problems.raise_if_any()
    return found


def _misplaced(name: str, path: Path) -> Message | None:
    """Why nothing would read a file of that name, or None where something does."""
    if name == "messages.yaml" and path.parent != FOLDER:
        return Message("fault.own_file")
    folder, _, rest = name.partition("/")
    if not name.endswith(".yaml"):
        return Message("fault.suffix")
    if not rest:
        tables = sorted(path.name for path in FOLDER.glob("*.yaml"))
        return None if name in tables else Message("fault.unread_file", hint=did_you_mean(name, tables))
    depth = {"rules": 1, "fixes": 0, "facts": 0}.get(folder)
    if depth is None:
        return Message("fault.unread_folder", folder=folder, hint=did_you_mean(folder, ("rules", "fixes", "facts")))
    if rest.count("/") != depth:
        place = "rules/AREA/ID.yaml" if folder == "rules" else f"{folder}/NAME.yaml"
        return Message("fault.place", place=place)
    if folder == "facts" and not (FOLDER / name).is_file():
        catalogs = sorted(path.name for path in (FOLDER / "facts").glob("*.yaml"))
        return Message("fault.no_catalog", hint=did_you_mean(rest, catalogs))
    return None


# --- rule and fix files -----------------------------------------------------------------------------------------------


def _units(files: Mapping[str, Path], prefix: str, model: type[BaseModel], problems: Problems) -> dict[str, Unit]:
    units: dict[str, Unit] = {}
    for name, path in files.items():
        if not name.startswith(prefix) or _misplaced(name, path):
            continue
        node = load(path, problems, name)
        data = _validated(node, model, problems) if node is not None else None
        if data is None or node is None:
            continue
        unit = Unit({**data, "file": name}, node)
        if data["id"] != path.stem:
            unit.fault(problems, "id", Message("fault.file_name", name=path.stem))
        if data["id"] in units:
            unit.fault(problems, "id", Message("fault.id_used", file=units[data["id"]].data["file"]))
        units[data["id"]] = unit
    return units


def _compile(compile_one: Callable[[Mapping[str, Any]], list[Rule]], unit: Unit, problems: Problems) -> None:
    try:
        unit.ir = compile_one(unit.data)
    except LanguageErrors as errors:
        for fault in errors.faults:
            unit.fault(problems, fault.field, fault.message)


def _table(files: Mapping[str, Path], name: str, model: type[BaseModel], problems: Problems) -> dict[str, Unit]:
    before = len(problems.found)
    root = load(files[name], problems, name)
    table: dict[str, Unit] = {}
    if len(problems.found) == before and (root is None or root.kind != "map"):
        problems.add(name, root.line if root else 0, "", Message("fault.map_of_ids"))
    for key, node in root.pairs() if root else ():
        data = _validated(node, model, problems, prefix=f"{key.text}.")
        if not SLUG.match(key.text):
            problems.add(name, key.line, key.text, Message("fault.slug"))
        if data is not None:
            table[key.text] = Unit(data, node, f"{key.text}.")
    return table


def _validated(node: Node, model: type[BaseModel], problems: Problems, prefix: str = "") -> dict[str, Any] | None:
    try:
        return model.model_validate(node.plain()).model_dump(exclude_none=True, by_alias=True)
    except ValidationError as error:
        # The members of a union each have their complaint about one value.
        found: dict[tuple[str, int], Message] = {}
        for fault in error.errors():
            unknown = fault["type"] == "extra_forbidden"
            hint = did_you_mean(str(fault["loc"][-1]), _fields_of(model)) if unknown else NOTHING
            told, place = shape_fault(fault, hint), _located(node, fault)
            found[place] = Message("fault.either", first=found[place], second=told) if place in found else told
        for (field, line), told in found.items():
            problems.add(node.file, line, prefix + field, told)
        return None


def _located(node: Node, fault: ErrorDetails) -> tuple[str, int]:
    """The path and line of a fault; what pydantic puts into the path of its own (the member of a union) is left out."""
    field, current = "", node
    last = len(fault["loc"]) - 1
    for number, step in enumerate(fault["loc"]):
        found = current.get(step) if isinstance(step, str) else next(iter(current.elements()[step:]), None)
        if found is not None or (number == last and fault["type"] in _ABSENT):
            field += f"[{step}]" if isinstance(step, int) else f".{step}" if field else step
        current = found or current
    return field, _line_of_key(node, field) or current.line


def _line_of_key(node: Node, field: str) -> int:
    """The line where the last key of a path stands, 0 where it is none. (A block's line is that of its first entry.)"""
    parent, _, last = field.rpartition(".")
    holder = _descend(node, parent)
    return next((key.line for key, _ in holder.pairs() if key.text == last), 0)


def _fields_of(model: type[BaseModel]) -> set[str]:
    """Every field name of a model and of the models inside it."""
    schema = model.model_json_schema()
    return {name for part in (schema, *schema.get("$defs", {}).values()) for name in part.get("properties", ())}


def line_of(node: Node, field: str) -> int:
    """The line of a path such as `when.t.torch.version` or `conclude[0].fact`, or of its nearest parent."""
    return _line_of_key(node, field) or _descend(node, field).line


def _descend(node: Node, field: str) -> Node:
    """The node at a path, or the last one on the way to it. A key may hold a dot itself (`version.local`)."""
    current = node
    steps = _STEP.findall(field)
    position = 0
    while position < len(steps):
        index, key = steps[position]
        if index:
            elements = current.elements()
            found = elements[int(index)] if int(index) < len(elements) else None
        else:
            found = current.get(key)
            if found is None and position + 1 < len(steps):
                found = current.get(f"{key}.{steps[position + 1][1]}")
                position += 1
        if found is None:
            break
        current = found
        position += 1
    return current


# --- catalogs ---------------------------------------------------------------------------------------------------------


def static_rows(catalogs: Catalogs, vocabulary: Vocabulary) -> tuple[list[list[Any]], list[list[str]]]:
    """The catalog rows, completed and lowered: [type, fields, index of source, confidence]."""
    sources: dict[tuple[str, str], int] = {}
    rows = []
    for type_name, fields, source, confidence in _completed(catalogs):
        index = sources.setdefault(source, len(sources))
        rows.append([type_name, vocabulary.lower_fields(type_name, fields), index, confidence])
    return rows, [list(s) for s in sources]


def _completed(catalogs: Catalogs) -> Iterator[tuple[str, dict[str, Scalar], tuple[str, str], str]]:
    """Every row, with what follows from others: variants of builds; an architecture's first code, dropping branch."""
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
            yield (
                "torch_variant",
                {k: fields[k] for k in ("variant", "accelerator", "cuda", "cuda_major") if k in fields},
                source,
                row.confidence,
            )


def _architecture_extras(
    fields: Mapping[str, Scalar], architectures: Iterable[Mapping[str, Scalar]], branches: Iterable[int]
) -> dict[str, Scalar]:
    extras: dict[str, Scalar] = {"integrated": fields.get("integrated", False)}
    sm = int(fields["sm"])
    # Code for a lower minor of the same major serves a desktop part; a Tegra part needs its own.
    serving = [
        a
        for a in architectures
        if "first_cuda" in a
        and (
            int(a["sm"]) == sm
            or (
                not extras["integrated"]
                and not a.get("integrated")
                and int(a["sm"]) // 10 == sm // 10
                and int(a["sm"]) <= sm
            )
        )
    ]
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


def _aliases(files: Mapping[str, Path], vocabulary: Vocabulary, problems: Problems) -> Node | None:
    path = files["aliases.yaml"]
    before = len(problems.found)
    load_aliases(path, vocabulary, problems)
    root = load(path, Problems())
    if root is None and len(problems.found) == before:
        problems.add("aliases.yaml", 0, "aliases", Message("fault.missing"))
    return root


def _advice(files: Mapping[str, Path], problems: Problems) -> dict[str, dict[str, Any]]:
    """The advice by id, its sources as addresses."""
    try:
        book = read_advice(files)
    except KnowledgeError as error:
        problems.found += error.problems
        return {}
    urls = {name: page.url for name, page in book.sources.items()}
    return {
        key: {
            **entry.model_dump(include={"text", "causes", "statements", "words", "sample", "not_for"}),
            "sources": [urls[s] for s in entry.sources if s in urls],
        }
        for key, entry in book.advice.items()
    }


def _phrases(files: Mapping[str, Path], problems: Problems) -> list[Any]:
    path = files["facts/phrases.yaml"]
    with _inside("facts/", problems) as found:
        load_phrases(path, found)
    root = load(path, Problems())
    rows = root.get("rows") if root else None
    if rows is None or rows.kind != "list":
        problems.add("facts/phrases.yaml", rows.line if rows else 0, "rows", Message("fault.list"))
        return []
    return [row.plain() for row in rows.elements() if row.get("kind")]


def _signatures(files: Mapping[str, Path], problems: Problems) -> tuple[tuple[Node, ...], frozenset[str]]:
    """The entries of the error catalog and the names of its sources."""
    root = load(files["facts/errors.yaml"], problems, "facts/errors.yaml")
    rows, sources = (root.get("signatures"), root.get("sources")) if root else (None, None)
    names = frozenset(key.text for key, _ in sources.pairs()) if sources else frozenset()
    return tuple(rows.elements()) if rows else (), names
