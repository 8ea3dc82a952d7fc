"""What the files of a project ask for: packages and indexes, base images, services with or without GPUs.

May live here: finding and reading requirements*.txt, pyproject.toml, environment.yml, Dockerfile and compose files.
Must not: which versions exist, fit or run (the knowledge says so), running anything of the project.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ..facts import Fact, Provenance, Scalar

__all__ = ["Project", "project_files", "read_project"]

_KINDS = (
    ("requirements", re.compile(r"^(?:requirements.*|.*requirements)\.(?:txt|in)$")),
    ("pyproject", re.compile(r"^pyproject\.toml$")),
    ("conda", re.compile(r"^environment.*\.ya?ml$")),
    ("dockerfile", re.compile(r"^(?:Dockerfile|Containerfile)(?:\..*)?$|^.*\.[Dd]ockerfile$")),
    ("compose", re.compile(r"^(?:docker-)?compose.*\.ya?ml$")),
)
_MAX_FILES = 100
_MAX_BYTES = 1 << 20
_MAX_LINES = 20_000
_NAME = re.compile(r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*) ?(?:\[[^\]]*\])? ?(?P<spec>[^;#]*)")
_EXACT = re.compile(r"^={2,3} ?(?P<version>[0-9][0-9A-Za-z.]*)(?:\+(?P<local>[0-9a-z.]+))?$")
_INDEX = re.compile(r"^(?:--extra-index-url|--index-url|-i|--find-links|-f)[ =]+(?P<url>https?://\S+)")
_PIP_INDEX = re.compile(r"(?:--extra-index-url|--index-url|-i|--find-links|-f)[ =]+[\"']?(?P<url>https?://[^\s\"']+)")
_PIP_INSTALL = re.compile(r"\b(?:uv )?pip3? install (?P<rest>.*)")
_COMMANDS = re.compile(r"&&|;|\|")
_VARIANT = re.compile(r"/(?P<variant>cu[0-9]{2,3}|cpu|xpu|rocm[0-9.]+)(?:/|$)")
_CREDENTIALS = re.compile(r"://[^/@ ]+@")
_FROM = re.compile(r"^FROM\s+(?:--platform=\S+\s+)?(?P<image>\S+)", re.IGNORECASE)
_IMAGE_CUDA = re.compile(r"cuda-?(?P<cuda>[0-9]+\.[0-9]+)")
_TAG_CUDA = re.compile(r"^(?P<cuda>[0-9]+\.[0-9]+)(?:\.[0-9]+)?-")
_RUNS = re.compile(r"^(?P<version>[0-9]+\.[0-9]+)$")
_SEPARATORS = re.compile(r"[-_.]+")


@dataclass(frozen=True, slots=True)
class Project:
    """The facts of a project, its files that were read, and those that could not be."""

    facts: tuple[Fact, ...]
    read: tuple[str, ...]
    unread: tuple[str, ...]


def project_files(path: Path) -> dict[str, bytes]:
    """The content of the file, or of the known files right in the folder, by name; larger ones are cut."""
    places = [path] if path.is_file() else sorted(p for p in path.iterdir() if _kind(p.name) and p.is_file())
    found = {}
    for place in places[:_MAX_FILES]:
        with place.open("rb") as file:
            found[place.name] = file.read(_MAX_BYTES)
    return found


def read_project(files: Mapping[str, bytes]) -> Project:
    """The facts of all files of a project."""
    facts: list[Fact] = []
    read: list[str] = []
    unread: list[str] = []
    # Compose files build from the Dockerfiles beside them, so those are read first.
    for name in sorted(files, key=lambda name: (_kind(name) == "compose", name)):
        text = files[name].decode("utf-8", "replace").replace("\r\n", "\n")
        kind = _kind(name) or "requirements"
        own = _READERS[kind](text, name, facts)
        (unread if own is None else read).append(name)
        facts += own or []
    return Project(tuple(facts), tuple(read), tuple(unread))


def _kind(name: str) -> str | None:
    return next((kind for kind, pattern in _KINDS if pattern.match(name)), None)


class _File:
    """Collects the facts of one file; a build that no local version names is that of the file's only index."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.facts: list[Fact] = []
        self._variants: set[str] = set()

    def add(self, kind: str, at: int | None, /, **fields: Scalar | None) -> None:
        known = {key: value for key, value in fields.items() if value is not None}
        self.facts.append(Fact(kind, known, (Provenance("user", self.name, at, "project"),)))

    def index(self, url: str, line: int | None, *, for_all: bool = True) -> str | None:
        found = _VARIANT.search(url)
        variant = found["variant"] if found else None
        if variant and for_all:
            self._variants.add(variant)
        self.add("project_index", line, file=self.name, url=_CREDENTIALS.sub("://", url), variant=variant)
        return variant

    def requirement(self, text: str, line: int | None, variant: str | None = None) -> None:
        found = _NAME.match(" ".join(text.split()))
        if found is None:
            return
        name = _SEPARATORS.sub("-", found["name"]).lower()
        spec = found["spec"].strip() or None
        exact = _EXACT.match(spec) if spec else None
        version = exact["version"] if exact else None
        if version is not None and _RUNS.match(version):
            version += ".0"  # pip takes ==2.6 for ==2.6.0
        local = exact["local"] if exact else None
        self.add("requirement", line, file=self.name, package=name, spec=spec, version=version, line=line,
                 variant=local or variant)  # fmt: skip

    def done(self) -> list[Fact]:
        """The facts; where the file names no index at all, packages come from the default one."""
        more: dict[str, Scalar] = {"variant": next(iter(self._variants))} if len(self._variants) == 1 else {}
        if not any(fact.type == "project_index" for fact in self.facts):
            more = {"default_index": True}
        return [_with(more, f) if f.type == "requirement" and "variant" not in f.fields else f for f in self.facts]


def _with(more: Mapping[str, Scalar], fact: Fact) -> Fact:
    return Fact(fact.type, {**fact.fields, **more}, fact.provenance)


def _requirements(text: str, name: str, _before: list[Fact]) -> list[Fact]:
    file = _File(name)
    for number, raw in _joined(text):
        line = raw.strip()
        index = _INDEX.match(line)
        if index is not None:
            file.index(index["url"], number)
        elif line and line[0] not in "#-" and "://" not in line:
            file.requirement(line, number)
    return file.done()


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Lines with those that a backslash continues, by the number of the first."""
    held, start = "", 0
    for number, line in enumerate(text.splitlines()[:_MAX_LINES], 1):
        start = start or number
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        yield start, held + line
        held, start = "", 0
    if held:
        yield start, held


def _pyproject(text: str, name: str, _before: list[Fact]) -> list[Fact] | None:
    if sys.version_info < (3, 11):
        return None  # its standard library reads no TOML
    tomllib = import_module("tomllib")  # so that types can be checked for Python 3.10 too
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    file, lines = _File(name), text.splitlines()
    uv = _mapping(_mapping(document.get("tool")).get("uv"))
    named: dict[str, str | None] = {}
    for entry in _list(uv.get("index")) + [{"url": url} for url in _list(uv.get("extra-index-url"))]:
        url = _mapping(entry).get("url")
        if isinstance(url, str):
            # An explicit index serves only the packages whose source names it.
            explicit = _mapping(entry).get("explicit") is True
            variant = file.index(url, _line(lines, url), for_all=not explicit)
            named[str(_mapping(entry).get("name"))] = variant
    sources = {str(k).lower(): _index_of(v) for k, v in _mapping(uv.get("sources")).items()}
    project = _mapping(document.get("project"))
    groups = [project.get("dependencies"), *_mapping(project.get("optional-dependencies")).values()]
    groups += _mapping(document.get("dependency-groups")).values()
    for text_ in [item for group in groups for item in _list(group) if isinstance(item, str)]:
        found = _NAME.match(text_)
        source = sources.get(found["name"].lower()) if found else None
        file.requirement(text_, _line(lines, text_), named.get(source) if source else None)
    return file.done()


def _index_of(source: Any) -> str | None:
    """The one index that a uv source names; where several stand under conditions, none is chosen."""
    entries = source if isinstance(source, list) else [source]
    names = {str(_mapping(entry).get("index")) for entry in entries if _mapping(entry).get("index")}
    return names.pop() if len(names) == 1 else None


def _conda(text: str, name: str, _before: list[Fact]) -> list[Fact] | None:
    document = _yaml(text)
    if document is None:
        return None
    file, lines = _File(name), text.splitlines()
    for item in _list(document.get("dependencies")):
        for line in _list(_mapping(item).get("pip")):
            index = _INDEX.match(str(line))
            if index is not None:
                file.index(index["url"], _line(lines, str(line)))
            else:
                file.requirement(str(line), _line(lines, str(line)))
    return file.done()


def _dockerfile(text: str, name: str, _before: list[Fact]) -> list[Fact]:
    file = _File(name)
    for number, line in _joined(text):
        start = _FROM.match(line.strip())
        if start is not None:
            file.add("base_image", number, file=name, image=start["image"], cuda=_cuda_of(start["image"]))
        for installed in filter(None, map(_PIP_INSTALL.search, _COMMANDS.split(line))):
            command = installed["rest"]
            indexes = [file.index(found["url"], number) for found in _PIP_INDEX.finditer(command)]
            variant = indexes[0] if len(indexes) == 1 else None
            for word in _PIP_INDEX.sub("", command).split():
                package = word.strip("\"'")
                if package[:1].isalpha() and "/" not in package and not package.endswith((".txt", ".whl")):
                    file.requirement(package, number, variant)
    return file.done()


def _cuda_of(image: str) -> str | None:
    """The CUDA release that the name of an image states."""
    path, _, tag = image.partition("@")[0].rpartition(":")
    stated = _IMAGE_CUDA.search(tag) or (_TAG_CUDA.match(tag) if path.endswith("nvidia/cuda") else None)
    return stated["cuda"] if stated else None


def _compose(text: str, name: str, before: list[Fact]) -> list[Fact] | None:
    document = _yaml(text)
    if document is None:
        return None
    file, lines = _File(name), text.splitlines()
    builds_cuda = any(fact.type == "base_image" and "cuda" in fact.fields for fact in before)
    for key, value in _mapping(document.get("services")).items():
        service = _mapping(value)
        image = service.get("image") if isinstance(service.get("image"), str) else None
        cuda = _cuda_of(image) if image else None
        wants = cuda is not None or ("build" in service and builds_cuda)
        file.add("compose_service", _line(lines, f"{key}:"), file=name, name=str(key), gpu=_has_gpu(service),
                 wants_gpu=wants)  # fmt: skip
        if image and cuda:
            file.add("base_image", _line(lines, image), file=name, image=image, cuda=cuda)
    return file.facts


def _has_gpu(service: Mapping[str, Any]) -> bool:
    if service.get("gpus") or service.get("runtime") == "nvidia":
        return True
    if any("nvidia" in str(device) for device in _list(service.get("devices"))):
        return True
    reserved = _mapping(_mapping(_mapping(service.get("deploy")).get("resources")).get("reservations"))
    return any("gpu" in _list(_mapping(device).get("capabilities")) for device in _list(reserved.get("devices")))


def _yaml(text: str) -> dict[str, Any] | None:
    import yaml

    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _line(lines: list[str], part: str) -> int | None:
    """The first line that holds a text."""
    return next((number for number, line in enumerate(lines, 1) if part in line), None)


_READERS = {
    "requirements": _requirements,
    "pyproject": _pyproject,
    "conda": _conda,
    "dockerfile": _dockerfile,
    "compose": _compose,
}
