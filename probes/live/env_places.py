"""Where Python environments lie: of the project in the current folder, in the lists of conda, behind notebook kernels.

May live here: the places and names that uv, poetry, pipenv, conda, mamba and Jupyter use. Must not: reading an
environment (env_files.py), choosing one (interpreters.py), running anything.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from .env_files import python_in
from .source import Machine, read_text

# A project is at most this many folders above the current one.
_MAX_UP = 8
_PROJECT_MARKS = ("pyproject.toml", "Pipfile", "uv.lock", "poetry.lock", ".git")
_FOLDERS = (".venv", "venv", "env", ".env")
_MAX_ENTRIES = 200
_MAX_PATH = 4096
_MAX_SHOWN = 100
_PLAIN = re.compile(r"^python(?:3(?:\.[0-9]{1,2})?)?(?:\.exe)?$")


def projects(machine: Machine) -> Iterator[Path]:
    """The current folder and those above it, up to the root of the project that it is part of."""
    if machine.cwd is None:
        return
    above = [machine.cwd, *machine.cwd.parents][:_MAX_UP]
    marked = [n for n, folder in enumerate(above) if any((folder / mark).exists() for mark in _PROJECT_MARKS)]
    yield from above[: (marked[0] if marked else 0) + 1]


def of_projects(machine: Machine) -> Iterator[str]:
    """The interpreters of the environments that belong to the project in the current folder."""
    for folder in projects(machine):
        for prefix in _of_project(machine, folder):
            found = python_in(prefix, machine.system)
            if found is not None and _is_own(prefix):
                yield found


def of_conda(machine: Machine) -> Iterator[tuple[str, str]]:
    """Interpreter and name of the environments that conda and mamba know."""
    prefixes: dict[Path, None] = {}
    if machine.home is not None:
        listed = read_text(machine.home / ".conda" / "environments.txt") or ""
        prefixes.update(dict.fromkeys(Path(line.strip()) for line in listed.splitlines() if line.strip()))
    root = machine.environ.get("MAMBA_ROOT_PREFIX")
    if root:
        prefixes.update(dict.fromkeys(Path(root, "envs", name) for name in _names(Path(root, "envs"))))
    for prefix in list(prefixes)[:_MAX_ENTRIES]:
        found = python_in(prefix, machine.system)
        if found is not None:
            yield found, prefix.name


def of_kernels(machine: Machine) -> Iterator[tuple[str, str]]:
    """Interpreter and shown name of the notebook kernels that name one; then of the Jupyter that is found first."""
    jupyter = _jupyter(machine)
    for folder in (*_kernel_folders(machine), *([jupyter / "share" / "jupyter" / "kernels"] if jupyter else ())):
        for name in _names(folder):
            found = _kernel(folder / name)
            if found is None:
                continue
            argument, shown = found
            if os.path.isabs(argument):
                yield argument, shown
            elif jupyter is not None and _PLAIN.match(argument):
                # Jupyter takes its own interpreter for a kernel that only says python.
                own = python_in(jupyter, machine.system)
                if own is not None:
                    yield own, shown


def _of_project(machine: Machine, folder: Path) -> Iterator[Path]:
    named = machine.environ.get("UV_PROJECT_ENVIRONMENT")
    if named and (folder / "pyproject.toml").is_file():
        yield folder / named
    for name in _FOLDERS:
        place = folder / name
        if (place / "pyvenv.cfg").is_file() or (place / "conda-meta").is_dir():
            yield place
    if (folder / "pyproject.toml").is_file():
        yield from _poetry(machine, folder)
    if (folder / "Pipfile").is_file():
        yield from _pipenv(machine, folder)


def _is_own(prefix: Path) -> bool:
    """Whether this account or the administrator made the environment: others' programs are not started unasked."""
    if os.name != "posix":
        return True
    try:
        return prefix.stat().st_uid in (0, os.getuid())
    except OSError:
        return False


def _poetry(machine: Machine, folder: Path) -> Iterator[Path]:
    """The names end in a hash of the project's folder and the Python version."""
    digest = hashlib.sha256(os.path.normcase(os.path.realpath(folder)).encode("utf-8", "replace")).digest()
    mark = f"-{base64.urlsafe_b64encode(digest).decode()[:8]}-py"
    for home in _poetry_homes(machine):
        yield from (home / name for name in reversed(_names(home)) if mark in name)


def _poetry_homes(machine: Machine) -> Iterator[Path]:
    environ = machine.environ
    if "POETRY_VIRTUALENVS_PATH" in environ:
        yield Path(environ["POETRY_VIRTUALENVS_PATH"])
    if "POETRY_CACHE_DIR" in environ:
        yield Path(environ["POETRY_CACHE_DIR"], "virtualenvs")
    if machine.system == "windows":
        if "LOCALAPPDATA" in environ:
            yield Path(environ["LOCALAPPDATA"], "pypoetry", "Cache", "virtualenvs")
    elif machine.home is not None:
        caches = machine.home / ("Library/Caches" if machine.system == "macos" else ".cache")
        yield Path(environ.get("XDG_CACHE_HOME") or caches, "pypoetry", "virtualenvs")


def _pipenv(machine: Machine, folder: Path) -> Iterator[Path]:
    """The file .venv names one; otherwise each one names its project in the file .project."""
    work = _pipenv_home(machine)
    said = read_text(folder / ".venv") if (folder / ".venv").is_file() else None
    if said is not None:
        yield folder / said if os.sep in said or "/" in said else (work or folder) / said
    if work is not None:
        wanted = os.path.realpath(folder)
        for name in _names(work):
            project = read_text(work / name / ".project")
            if project is not None and os.path.realpath(project) == wanted:
                yield work / name


def _pipenv_home(machine: Machine) -> Path | None:
    if "WORKON_HOME" in machine.environ:
        return Path(machine.environ["WORKON_HOME"])
    if machine.home is None:
        return None
    if machine.system == "windows":
        return machine.home / ".virtualenvs"
    return Path(machine.environ.get("XDG_DATA_HOME") or machine.home / ".local" / "share", "virtualenvs")


def _jupyter(machine: Machine) -> Path | None:
    """The environment of the first Jupyter on PATH."""
    names = ("jupyter.exe",) if machine.system == "windows" else ("jupyter", "jupyter-lab")
    for entry in machine.environ.get("PATH", "").split(os.pathsep):
        place = next((Path(entry, name) for name in names if entry and Path(entry, name).is_file()), None)
        if place is not None:
            return Path(os.path.realpath(place)).parent.parent
    return None


def _kernel_folders(machine: Machine) -> Iterator[Path]:
    """The folders that Jupyter searches for kernels, beside those of environments."""
    environ, home = machine.environ, machine.home
    yield from (Path(entry, "kernels") for entry in environ.get("JUPYTER_PATH", "").split(os.pathsep) if entry)
    if "JUPYTER_DATA_DIR" in environ:
        yield Path(environ["JUPYTER_DATA_DIR"], "kernels")
    if machine.system == "windows":
        yield from (Path(environ[name], "jupyter", "kernels") for name in ("APPDATA", "PROGRAMDATA") if name in environ)
    elif home is not None and machine.system == "macos":
        yield home / "Library" / "Jupyter" / "kernels"
    elif home is not None:
        yield Path(environ.get("XDG_DATA_HOME") or home / ".local" / "share", "jupyter", "kernels")
    if machine.system != "windows":
        yield from (machine.path(f"/{name}/share/jupyter/kernels") for name in ("usr/local", "usr"))
    if home is not None:
        yield home / ".ipython" / "kernels"


def _kernel(folder: Path) -> tuple[str, str] | None:
    """First word of the command and shown name of a Python kernel."""
    try:
        spec = json.loads(read_text(folder / "kernel.json") or "")
    except (ValueError, RecursionError):
        return None
    argv = spec.get("argv") if isinstance(spec, dict) else None
    if not isinstance(argv, list) or not argv or not isinstance(argv[0], str) or not argv[0]:
        return None
    if str(spec.get("language", "python")).lower() != "python":
        return None
    shown = spec.get("display_name")
    return argv[0][:_MAX_PATH], shown[:_MAX_SHOWN] if isinstance(shown, str) and shown else folder.name


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))[:_MAX_ENTRIES]
    except OSError:
        return []
