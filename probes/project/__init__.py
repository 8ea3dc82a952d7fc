"""What the files of a project ask for: packages and indexes, base images, services with or without GPUs.

May live here: finding the files, and handing each to the reader of its kind. Must not: layouts (one module a kind),
which versions exist, fit or run (the knowledge says so), running anything of the project.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ...facts import Fact, Scalar
from . import conda, docker, locks, pyproject, requirements
from .facts import Asked, Read

__all__ = ["Project", "Read", "project_files", "read_project"]

_KINDS = (
    ("requirements", re.compile(r"^(?:requirements.*|.*requirements|constraints.*)\.(?:txt|in)$")),
    ("pyproject", re.compile(r"^pyproject\.toml$")),
    ("conda", re.compile(r"^(?:environment|conda|env).*\.ya?ml$")),
    ("lock", re.compile(r"^(?:uv|poetry)\.lock$")),
    ("dockerfile", re.compile(r"^(?:Dockerfile|Containerfile)(?:\..*)?$|^.*\.[Dd]ockerfile$")),
    ("compose", re.compile(r"^(?:docker-)?compose.*\.ya?ml$")),
)
# Folders right below the project that hold such files only.
_FOLDERS = ("requirements", "docker", ".devcontainer", "conda", "envs")
_MAX_FILES = 100
_MAX_BYTES = 4 << 20
# What an image brings matters to its services, and a lock is the last word on what files ask for.
_ORDER = ("lock", "requirements", "pyproject", "conda", "dockerfile", "compose")


@dataclass(frozen=True, slots=True)
class Project:
    """The facts of a project, its files that were read, and those that could not be."""

    facts: tuple[Fact, ...]
    read: tuple[str, ...]
    unread: tuple[str, ...]


def project_files(path: Path) -> dict[str, bytes]:
    """The content of the file, or of the known files in the folder, by their names from there; larger ones are cut.

    Files that a requirements file includes are added where they lie inside the folder.
    """
    root = path.parent if path.is_file() else path
    found: dict[str, bytes] = {}
    for place in [path] if path.is_file() else _known(root):
        _add(found, root, place)
    waiting = list(found)
    while waiting:
        name = waiting.pop(0)
        if _kind(name) in (None, "requirements"):
            for included in requirements.includes(_text(found[name])):
                place = (root / PurePosixPath(name).parent / included).resolve()
                if place.is_relative_to(root.resolve()) and place.is_file():
                    new = _add(found, root.resolve(), place)
                    waiting += [new] if new else []
    return found


def read_project(
    files: Mapping[str, bytes], system: str = "linux", machine: str = "x86_64", python: str | None = None
) -> Project:
    """The facts of all files of a project, of lines under conditions those that hold for the target.

    system: linux, windows or macos; machine: the processor; python: its version where it is known.
    """
    facts: list[Fact] = []
    read: list[str] = []
    unread: list[str] = []
    target = Read(system, machine, python, {name: _text(data) for name, data in files.items()})
    for name in sorted(files, key=lambda name: (_ORDER.index(_kind(name) or "requirements"), name)):
        asked = _READERS[_kind(name) or "requirements"](target.texts[name], name, target, tuple(facts))
        (unread if asked is None else read).append(name)
        facts += asked.done() if asked is not None else []
    if read:
        complete: dict[str, Scalar] = {"domain": "project", "complete": not unread}
        facts.append(Fact("coverage", complete))
    return Project(tuple(facts), tuple(read), tuple(unread))


def _known(root: Path) -> list[Path]:
    folders = [root, *(root / name for name in _FOLDERS if (root / name).is_dir())]
    return [place for folder in folders for place in sorted(folder.iterdir()) if _kind(place.name) and place.is_file()]


def _add(found: dict[str, bytes], root: Path, place: Path) -> str | None:
    name = place.relative_to(root).as_posix()
    if name in found or len(found) >= _MAX_FILES:
        return None
    with place.open("rb") as file:
        found[name] = file.read(_MAX_BYTES)
    return name


def _kind(name: str) -> str | None:
    base = PurePosixPath(name).name
    if PurePosixPath(name).parent.name == "requirements" and base.endswith((".txt", ".in")):
        return "requirements"
    return next((kind for kind, pattern in _KINDS if pattern.match(base)), None)


def _text(data: bytes) -> str:
    return data.decode("utf-8-sig", "replace").replace("\r\n", "\n")


_Reader = Callable[[str, str, Read, tuple[Fact, ...]], Asked | None]
_READERS: dict[str, _Reader] = {
    "requirements": requirements.read,
    "pyproject": pyproject.read,
    "lock": locks.read,
    "conda": conda.read,
    "dockerfile": docker.read_dockerfile,
    "compose": docker.read_compose,
}
