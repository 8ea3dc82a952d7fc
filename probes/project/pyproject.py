"""Reader of pyproject.toml: the project's dependencies, and the indexes and sources of uv and Poetry.

May live here: those tables. Must not: lock files, other kinds of files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...facts import Fact
from .facts import Asked, Read, items, line_of, mapping, toml_of
from .specs import normalised, parse

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def read(text: str, name: str, target: Read, _before: tuple[Fact, ...]) -> Asked | None:
    """The facts of one file; None where it cannot be read."""
    document = toml_of(text)
    if document is None:
        return None
    asked, lines = Asked(name, target), text.splitlines()
    tool = mapping(document.get("tool"))
    indexes = _uv_indexes(mapping(tool.get("uv")), asked, lines) | _poetry_indexes(
        mapping(tool.get("poetry")), asked, lines
    )
    sources = _uv_sources(mapping(tool.get("uv")), target)
    for line in _dependencies(document):
        found = _NAME.match(line)
        index = sources.get(normalised(found.group())) if found else None
        asked.requirement(line, line_of(lines, line), indexes.get(index) if index else None)
    _poetry(mapping(tool.get("poetry")), asked, lines, indexes)
    return asked


def _dependencies(document: Mapping[str, Any]) -> Iterator[str]:
    project = mapping(document.get("project"))
    groups = [project.get("dependencies"), *mapping(project.get("optional-dependencies")).values()]
    groups += mapping(document.get("dependency-groups")).values()
    yield from (item for group in groups for item in items(group) if isinstance(item, str))


def _uv_indexes(uv: Mapping[str, Any], asked: Asked, lines: list[str]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    extra = [{"url": url} for url in items(uv.get("extra-index-url"))]
    for entry in map(mapping, [*items(uv.get("index")), *extra]):
        url = entry.get("url")
        if isinstance(url, str):
            # An explicit index serves only the packages whose source names it.
            for_all = entry.get("explicit") is not True
            found[str(entry.get("name"))] = asked.index(url, line_of(lines, url), for_all=for_all)
    return found


def _uv_sources(uv: Mapping[str, Any], target: Read) -> dict[str, str]:
    """The index of each package: the first whose condition holds; none where that cannot be told."""
    found: dict[str, str] = {}
    for name, source in mapping(uv.get("sources")).items():
        for entry in map(mapping, source if isinstance(source, list) else [source]):
            index, marker = entry.get("index"), entry.get("marker")
            holds = target.holds(marker if isinstance(marker, str) else None)
            if holds is None:
                break
            if holds and isinstance(index, str):
                found[normalised(name)] = index
                break
    return found


def _poetry_indexes(poetry: Mapping[str, Any], asked: Asked, lines: list[str]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for entry in map(mapping, items(poetry.get("source"))):
        url = entry.get("url")
        if isinstance(url, str):
            explicit = entry.get("priority") == "explicit"
            found[str(entry.get("name"))] = asked.index(url, line_of(lines, url), for_all=not explicit)
    return found


def _poetry(poetry: Mapping[str, Any], asked: Asked, lines: list[str], indexes: Mapping[str, str | None]) -> None:
    tables = [poetry.get("dependencies"), poetry.get("dev-dependencies")]
    tables += [mapping(group).get("dependencies") for group in mapping(poetry.get("group")).values()]
    for table in map(mapping, tables):
        for name, value in table.items():
            if name.lower() == "python":
                continue
            for entry in value if isinstance(value, list) else [value]:
                _poetry_entry(name, entry, asked, lines, indexes)


def _poetry_entry(name: str, entry: Any, asked: Asked, lines: list[str], indexes: Mapping[str, str | None]) -> None:
    said = mapping(entry) or {"version": entry}
    marker = said.get("markers")
    platform = said.get("platform")
    if isinstance(platform, str):
        marker = f"sys_platform == '{platform}'"
    holds = asked.target.holds(marker if isinstance(marker, str) else None)
    version = said.get("version")
    if holds is False or not isinstance(version, str):
        return
    wanted = parse("" if version == "*" else version)
    start = next((n for n, line in enumerate(lines, 1) if line.strip().startswith((f"{name} ", f"{name}="))), None)
    variant = wanted.local or indexes.get(str(said.get("source")))
    asked.package(name, wanted, start, lines[start - 1].strip() if start else version, role="asked", variant=variant,
                  conditional=True if holds is None else None)  # fmt: skip
