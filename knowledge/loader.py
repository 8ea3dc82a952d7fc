"""Loading the knowledge: files to one checked, compiled, immutable `Knowledge`, through a hash-checked cache.

May live here: reading of the folder, compilation and the cache. Must not: checks beyond those that loading needs
(`checker.py` has the rest) and any content.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine.ir import Conclusion, Join, Pattern, Ref, Row, Rule, Test
from ..errors import reason
from ..facts import Scalar
from ..messages import Message
from .problems import KnowledgeError, Problems
from .vocabulary import FieldSpec, TypeSpec, Vocabulary

if TYPE_CHECKING:
    from .aliases import Aliases
    from .names import GpuNames
    from .phrases import Phrases

FOLDER = Path(__file__).resolve().parent
# Part of the cache's key: raise it when the compiled form changes without a change of the files.
CACHE_FORMAT = 12
# A half-written file of this age was left by a process that died.
_ABANDONED_S = 3600


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Everything that is known, compiled. Shared by all sessions and threads.

    rules, fixes, causes, symptoms, questions: the files' content by id, as plain dictionaries; `file` is added.
    sentences: how facts of a type are said, by type. changes: what `what-if` and `how-to` may change, by name.
    stages: the order of fixes in a plan, by name. advice: what is worth knowing, by id, with the addresses of its
    sources. freshness: what tells that an input is newer than the knowledge. catalog_of: the catalog of each row type.
    pages: every page that is cited, by its address: title, kind, day and whether it was opened.
    ir: the engine's rules. static: the catalogs as rows; static_sources: for each row (url, title, confidence).
    signatures: the entries for `Signatures.compile`. version: newest retrieval date and a digest of all files.
    """

    vocabulary: Vocabulary
    rules: Mapping[str, dict[str, Any]]
    fixes: Mapping[str, dict[str, Any]]
    causes: Mapping[str, dict[str, Any]]
    symptoms: Mapping[str, dict[str, Any]]
    questions: Mapping[str, dict[str, Any]]
    signatures: tuple[dict[str, Any], ...]
    ir: tuple[Rule, ...]
    static: tuple[Row, ...]
    static_sources: tuple[tuple[str, str, str], ...]
    names: GpuNames
    aliases_data: Mapping[str, Any]
    phrases_data: tuple[dict[str, Any], ...]
    version: str
    retrieved: Mapping[str, str] = field(default_factory=dict)
    sentences: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    changes: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    stages: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    advice: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    freshness: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    catalog_of: Mapping[str, str] = field(default_factory=dict)
    pages: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    @functools.cached_property
    def aliases(self) -> Aliases:
        """The keys of loose facts files; compiled when the first such file comes."""
        from .aliases import Aliases

        return Aliases.compile(self.aliases_data)

    @functools.cached_property
    def phrases(self) -> Phrases:
        """The ways in which people put things; compiled when the first words come."""
        from .phrases import Phrases

        return Phrases.compile(self.phrases_data)

    @functools.cached_property
    def patterns(self) -> dict[str, Rule]:
        """The engine's rules by id."""
        return {rule.id: rule for rule in self.ir}

    @functools.cached_property
    def sources_of_rows(self) -> dict[Any, tuple[str, str, str]]:
        """(url, title, confidence) of each catalog row, by `row_key` of its content."""
        return {row_key(t, f): s for (t, f), s in zip(self.static, self.static_sources, strict=True)}


def row_key(type_name: str, fields: Mapping[str, Scalar]) -> Any:
    """A row's content as a dictionary key."""
    return type_name, frozenset(fields.items())


def load_knowledge(overlay: Path | None = None, *, use_cache: bool = True) -> Knowledge:
    """The shipped knowledge, with the files of `overlay` added or put in place of those of the same relative name.

    Where GPURULES_NO_CACHE is set, nothing is read from or written to the cache. Raises KnowledgeError with every fault
    (file, line, field).
    """
    use_cache = use_cache and not os.environ.get("GPURULES_NO_CACHE")
    return _shipped(use_cache) if overlay is None else _read(overlay, use_cache)


@functools.lru_cache(maxsize=2)
def _shipped(use_cache: bool) -> Knowledge:
    return _read(None, use_cache)


def _read(overlay: Path | None, use_cache: bool) -> Knowledge:
    files = knowledge_files(overlay)
    return _load(tuple(files.items()), _digest(files), use_cache)


@functools.lru_cache(maxsize=4)
def _load(files: tuple[tuple[str, Path], ...], digest: str, use_cache: bool) -> Knowledge:
    """The knowledge of these files, whose content has that digest."""
    key = _cache_key(digest)
    if use_cache:
        cached = _read_cache(key)
        if cached is not None:
            try:
                return _restore(cached)
            except (LookupError, TypeError, ValueError, AttributeError):
                pass  # not what this version writes; it is written anew below
    document = _compile(dict(files), digest)
    if use_cache and _digest(dict(files)) == digest:  # else a file changed while it was compiled
        _write_cache(key, document)
    return _restore(document)


def knowledge_files(overlay: Path | None) -> dict[str, Path]:
    """The YAML files by their name relative to the knowledge folder, an overlay's in place of the shipped ones."""
    files: dict[str, Path] = {}
    for folder in (FOLDER, overlay):
        if folder is None:
            continue
        if not folder.is_dir():
            problems = Problems()
            problems.add(folder, 0, "", Message("fault.no_folder"))
            problems.raise_if_any()
        for base, folders, names in os.walk(folder):
            folders[:] = sorted(n for n in folders if not n.startswith((".", "_")))
            for name in names:
                if name.endswith((".yaml", ".yml")):
                    path = Path(base, name)
                    files[path.relative_to(folder).as_posix()] = path
    return dict(sorted(files.items()))


def _digest(files: Mapping[str, Path]) -> str:
    """A digest of the files' content alone, so that the same knowledge has the same version everywhere."""
    digest = hashlib.sha256()
    problems = Problems()
    for name, path in files.items():
        try:
            data = path.read_bytes()
        except OSError as error:
            problems.add(name, 0, "", Message("fault.unreadable", reason=reason(error)))
            continue
        digest.update(f"{name}:{len(data)}:".encode("utf-8", "surrogateescape"))
        digest.update(data)
    problems.raise_if_any()
    return digest.hexdigest()


def _cache_key(digest: str) -> str:
    """What else the compiled form depends on: this package's code and the Python that runs it."""
    key = hashlib.sha256(f"{CACHE_FORMAT}:{sys.version_info[:2]}:{digest}".encode())
    for source in sorted(FOLDER.glob("*.py")):
        stat = source.stat()
        key.update(f"{source.name}:{stat.st_size}:{stat.st_mtime_ns}".encode())
    return key.hexdigest()


# --- compilation ------------------------------------------------------------------------------------------------------


def _compile(files: Mapping[str, Path], digest: str) -> dict[str, Any]:
    from .build import compile_knowledge

    problems = Problems()
    document = compile_knowledge(files, problems)
    problems.raise_if_any()
    document["version"] = f"{max(document['retrieved'].values(), default='unknown')}+{digest[:8]}"
    return document


def _restore(document: Mapping[str, Any]) -> Knowledge:
    from .names import GpuNames

    names = GpuNames.from_table(document["names"])
    vocabulary = Vocabulary(_vocabulary_types(document["vocabulary"]), names.identify)
    sources = document["sources"]
    static: list[Row] = []
    static_sources: list[tuple[str, str, str]] = []
    for type_name, fields, source, confidence in document["static"]:
        static.append((type_name, fields))
        url, title = sources[source]
        static_sources.append((url, title, confidence))
    return Knowledge(
        vocabulary=vocabulary,
        rules=document["rules"],
        fixes=document["fixes"],
        causes=document["causes"],
        symptoms=document["symptoms"],
        questions=document["questions"],
        signatures=tuple(document["signatures"]),
        ir=tuple(_rule_from(r) for r in document["ir"]),
        static=tuple(static),
        static_sources=tuple(static_sources),
        names=names,
        aliases_data=document["aliases"],
        phrases_data=tuple(document["phrases"]),
        version=document["version"],
        retrieved=document["retrieved"],
        sentences=document["sentences"],
        changes=document["changes"],
        stages=document["stages"],
        advice=document["advice"],
        freshness=document["freshness"],
        catalog_of=document["catalog_of"],
        pages=document["pages"],
    )


# --- the IR and the vocabulary as JSON --------------------------------------------------------------------------------


def rule_to_json(rule: Rule) -> list[Any]:
    """A rule as nested lists."""
    patterns = [
        [
            p.alias,
            p.type,
            [[t.field, t.op, list(t.value) if isinstance(t.value, tuple) else t.value] for t in p.tests],
            [[j.field, j.op, j.alias, j.other] for j in p.joins],
            p.negated,
        ]
        for p in rule.patterns
    ]
    conclusions = [
        [c.type, {k: [v.alias, v.field] if isinstance(v, Ref) else v for k, v in c.fields.items()}]
        for c in rule.conclusions
    ]
    return [rule.id, rule.group, patterns, conclusions]


def _rule_from(data: list[Any]) -> Rule:
    name, group, patterns, conclusions = data
    return Rule(
        name,
        tuple(
            Pattern(
                a,
                t,
                tuple(Test(f, o, tuple(v) if isinstance(v, list) else v) for f, o, v in tests),
                tuple(Join(*j) for j in joins),
                n,
            )
            for a, t, tests, joins, n in patterns
        ),
        tuple(
            Conclusion(t, {k: Ref(*v) if isinstance(v, list) else v for k, v in fields.items()})
            for t, fields in conclusions
        ),
        group,
    )


def vocabulary_to_json(vocabulary: Vocabulary) -> dict[str, Any]:
    """The vocabulary as nested lists."""
    return {
        t.name: [
            t.kind,
            list(t.identity),
            t.domain,
            t.closed_by,
            t.about,
            [[f.name, f.type, list(f.values), list(f.computed)] for f in t.fields.values()],
        ]
        for t in vocabulary.types.values()
    }


def _vocabulary_types(data: Mapping[str, Any]) -> dict[str, TypeSpec]:
    types = {}
    for name, (kind, identity, domain, closed_by, about, fields) in data.items():
        specs = {f: FieldSpec(f, t, tuple(v), computed=tuple(c)) for f, t, v, c in fields}
        types[name] = TypeSpec(name, kind, specs, tuple(identity), domain, closed_by, about)
    return types


# --- the cache --------------------------------------------------------------------------------------------------------


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    return Path(base, "gpurules") if base else Path.home() / ".cache" / "gpurules"


def _read_cache(key: str) -> dict[str, Any] | None:
    """The compiled document of exactly these files, None where there is none or it cannot be read."""
    try:
        document = json.loads((_cache_folder() / f"knowledge-{key[:32]}.json").read_bytes())
    except (OSError, ValueError, RuntimeError):
        return None
    return document if isinstance(document, dict) and document.get("key") == key else None


def _write_cache(key: str, document: Mapping[str, Any]) -> None:
    """Store the document for the owner only; a folder that cannot be written costs time, not the answer."""
    text = json.dumps({**document, "key": key}, separators=(",", ":"), ensure_ascii=False)
    try:
        folder = _cache_folder()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for old in _stale(folder, keep=4):
            old.unlink(missing_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix="knowledge-", suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(name, folder / f"knowledge-{key[:32]}.json")
        except OSError:
            Path(name).unlink(missing_ok=True)
    except (OSError, RuntimeError):
        return


def _stale(folder: Path, keep: int) -> list[Path]:
    """The documents to remove so that with the next one `keep` are left, and what a crash left behind."""
    ages: list[tuple[float, Path]] = []
    left: list[Path] = []
    for path in folder.glob("knowledge-*"):
        with contextlib.suppress(OSError):  # another process may be tidying too
            written = path.stat().st_mtime
            if path.suffix == ".json":
                ages.append((written, path))
            elif time.time() - written > _ABANDONED_S:
                left.append(path)
    newest_first = sorted(ages, reverse=True)
    return left + [path for _, path in newest_first[keep - 1 :]]


__all__ = [
    "FOLDER",
    "Knowledge",
    "KnowledgeError",
    "knowledge_files",
    "load_knowledge",
    "row_key",
    "rule_to_json",
    "vocabulary_to_json",
]
