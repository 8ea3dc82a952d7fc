"""One Python environment, read from its files without starting it: kind, Python version, torch.

May live here: the layout of environment folders (venv, conda, system) on each system. Must not: where environments lie
(env_places.py), choosing one (interpreters.py), running anything.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...facts import Scalar
from .source import read_text

_ASSIGNMENT = re.compile(r"^(__version__|debug|cuda|hip) *(?::[^=]*)?= *([^#\n]+)", re.MULTILINE)
_CONFIG = re.compile(r"^[ \t]*(?P<key>[a-z_-]+)[ \t]*=[ \t]*(?P<value>.*?)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_VERSION = re.compile(r"^(?P<version>[0-9]+\.[0-9]+(?:\.[0-9]+)?)")
_CONDA_PYTHON = re.compile(r"^python-(?P<version>[0-9]+\.[0-9]+\.[0-9]+)-")
_PROGRAM = re.compile(r"^python(?P<version>[0-9]\.[0-9]{1,2})$")
# Environments of tools that run one program: nothing else is ever installed there by hand.
_TOOL_MARKS = ("pipx_metadata.json", "uv-receipt.toml")
_TOOL_FOLDERS = re.compile(
    r"[\\/]uv[\\/](?:cache[\\/])?(?:archive|environments|builds)-v[0-9]+[\\/]|[\\/](?:\.cache[\\/]pipx|pipx[\\/]\.cache)[\\/]"
)


@dataclass(frozen=True, slots=True)
class Contents:
    """What the files of an environment say. torch_present: None where the files cannot tell."""

    kind: str
    version: str | None
    torch_present: bool | None
    torch: dict[str, Scalar | None]


def python_in(prefix: Path, system: str) -> str | None:
    """The interpreter of an environment folder."""
    names = ("Scripts/python.exe", "python.exe") if system == "windows" else ("bin/python", "bin/python3")
    return next((os.fspath(prefix / name) for name in names if (prefix / name).exists()), None)


def prefix_of(executable: str) -> Path | None:
    """The environment folder that an interpreter belongs to; None for one of the system."""
    folder = Path(executable).parent
    for prefix in (folder.parent, folder):
        if (prefix / "pyvenv.cfg").is_file() or (prefix / "conda-meta").is_dir():
            return prefix
    return None


def key_of(executable: str) -> str:
    """The same text for every path that leads to the same environment."""
    prefix = prefix_of(executable)
    # Inside a virtual environment the interpreter itself is a link to the one it was made from.
    return os.path.normcase(os.path.realpath(prefix if prefix is not None else executable))


def is_for_one_tool(prefix: Path) -> bool:
    """Whether pipx, uv tool or uvx made the environment to run one program in it."""
    return any((prefix / mark).is_file() for mark in _TOOL_MARKS) or bool(_TOOL_FOLDERS.search(f"{prefix}{os.sep}"))


def contents(executable: str, system: str, home: Path | None) -> Contents:
    """What the files of the interpreter's environment say."""
    prefix = prefix_of(executable)
    if prefix is None:
        return _of_system(executable, system, home)
    config = _config(prefix)
    version = _VERSION.match(config.get("version_info", config.get("version", "")))
    found = version["version"] if version else _conda_python(prefix)
    torch = _torch(_site_packages(prefix, system))
    # What a base interpreter lends is not in these folders.
    lends = config.get("include-system-site-packages", "").lower() == "true"
    present = True if torch is not None else None if lends else False
    return Contents(_kind(prefix, config), found, present, torch or {})


def torch_values(text: str) -> dict[str, Scalar | None]:
    """The fields of a torch fact that the text of torch/version.py states."""
    stated: dict[str, Any] = {}
    for name, expression in _ASSIGNMENT.findall(text):
        try:
            stated[name] = ast.literal_eval(expression.strip())
        except (ValueError, SyntaxError):
            continue
    values: dict[str, Scalar | None] = {}
    if isinstance(stated.get("__version__"), str):
        values["version"] = stated["__version__"]
    if isinstance(stated.get("debug"), bool):
        values["debug"] = stated["debug"]
    for name in ("cuda", "hip"):
        if name in stated:
            built_with = stated[name]
            values[f"{name}_built"] = built_with is not None
            values[name] = built_with if isinstance(built_with, str) else None
    return values


def _config(prefix: Path) -> dict[str, str]:
    text = read_text(prefix / "pyvenv.cfg") or ""
    return {found["key"].lower(): found["value"] for found in _CONFIG.finditer(text)}


def _kind(prefix: Path, config: dict[str, str]) -> str:
    if not config:
        return "conda"
    if (prefix / ".project").is_file():
        return "pipenv"
    if "pypoetry" in os.fspath(prefix):
        return "poetry"
    return "uv" if "uv" in config else "venv"


def _conda_python(prefix: Path) -> str | None:
    try:
        names = os.listdir(prefix / "conda-meta")
    except OSError:
        return None
    return next((found["version"] for name in sorted(names) if (found := _CONDA_PYTHON.match(name))), None)


def _site_packages(prefix: Path, system: str) -> Iterator[Path]:
    if system == "windows":
        yield prefix / "Lib" / "site-packages"
        return
    for lib in ("lib", "lib64"):
        yield from sorted((prefix / lib).glob("python3*/site-packages"))


def _torch(folders: Iterator[Path]) -> dict[str, Scalar | None] | None:
    for folder in folders:
        text = read_text(folder / "torch" / "version.py")
        if text is not None:
            return torch_values(text)
    return None


def _of_system(executable: str, system: str, home: Path | None) -> Contents:
    """An interpreter outside any environment; where its packages lie is only known for the usual layouts."""
    real = Path(os.path.realpath(executable))
    program = _PROGRAM.match(real.name)
    if system == "windows":
        torch = _torch(iter([real.parent / "Lib" / "site-packages"]))
        return Contents("system", None, True if torch is not None else None, torch or {})
    if program is None:
        # A script that starts one of several interpreters (pyenv), or a name that tells no version.
        return Contents("unknown", None, None, {})
    named, prefix = f"python{program['version']}", real.parent.parent
    folders = [prefix / "lib" / named / "site-packages", prefix / "lib" / "python3" / "dist-packages",
               prefix / "local" / "lib" / named / "dist-packages"]  # fmt: skip
    if home is not None:
        folders.insert(0, home / ".local" / "lib" / named / "site-packages")
    torch = _torch(iter(folders))
    kind = "system" if os.fspath(prefix) in ("/usr", "/usr/local", "/") else "unknown"
    return Contents(kind, program["version"], torch is not None, torch or {})
