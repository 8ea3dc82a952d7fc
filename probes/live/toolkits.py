"""Live probes of what is there to build and to load: CUDA toolkits, the host compiler, CUDA libraries searched first.

May live here: folders of toolkits, LD_LIBRARY_PATH, asking the compiler for its version. Must not: which versions fit.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

from ...facts import Fact
from .host import is_wsl
from .source import Machine, Stating

_TOOLKITS = Stating("toolkits")
_LIBRARIES = Stating("libraries")
_PARENTS = ("/usr/local", "/opt")
_FOLDER = re.compile(r"^cuda(?:-[0-9]+(?:\.[0-9]+)?)?$")
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)+")
_LIBRARY = re.compile(r"^lib(?P<name>cuda|cudart|cublas|cublasLt|cudnn|nvJitLink|nvrtc|nccl)\.so(?:\.[0-9.]+)?$")
_WSL_FOLDER = "/usr/lib/wsl/lib"
# Where a driver package for Linux puts the libcuda that hides the one of Windows.
_SYSTEM_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")
_MAX_FOLDERS = 64
_COMPILER_LIMIT_S = 2.0


def probe_toolkits(machine: Machine, limit_s: float) -> list[Fact]:
    """The CUDA toolkits under the usual folders, which one `cuda` stands for, and the host compiler."""
    facts = [fact for parent in _PARENTS for fact in _toolkits(machine, parent)]
    if machine.path("/usr").is_dir():
        # One may be anywhere, as in a conda environment.
        facts.append(_TOOLKITS.coverage("toolkit", "/usr/local", complete=False))
    return facts + _compiler(machine, min(limit_s, _COMPILER_LIMIT_S))


def probe_libraries(machine: Machine) -> list[Fact]:
    """The CUDA libraries that the search path puts before those of a wheel; in WSL also a libcuda of Linux."""
    facts = list(_searched(machine))
    if is_wsl(machine):
        facts += _shadowing(machine)
    return [*facts, _LIBRARIES.coverage("libraries", "LD_LIBRARY_PATH")]


def _toolkits(machine: Machine, parent: str) -> Iterator[Fact]:
    folder = machine.path(parent)
    try:
        names = sorted(name for name in os.listdir(folder) if _FOLDER.match(name))
    except OSError:
        return
    default = machine.resolved(f"{parent}/cuda") if "cuda" in names else None
    for name in names:
        place = f"{parent}/{name}"
        # `cuda` is mostly a link to one of the others, which is listed under its own name.
        if name == "cuda" and len(names) > 1 and machine.path(place).is_symlink():
            continue
        version = _toolkit_version(machine, place)
        if version is not None:
            release = ".".join(version.split(".")[:2])
            chosen = default is not None and default == machine.resolved(place)
            yield _TOOLKITS.fact("cuda_toolkit", place, path=place, version=version, release=release, default=chosen)


def _toolkit_version(machine: Machine, place: str) -> str | None:
    text = machine.text(f"{place}/version.json")
    if text is not None:
        try:
            found = json.loads(text)["cuda"]["version"]
        except (ValueError, KeyError, TypeError):
            found = None
        if isinstance(found, str) and _VERSION.fullmatch(found):
            return found
    old = _VERSION.search(machine.text(f"{place}/version.txt") or "")
    return old.group() if old else None


def _compiler(machine: Machine, limit_s: float) -> list[Fact]:
    result = machine.runner.run(["gcc", "-dumpfullversion"], limit_s=limit_s)
    version = result.stdout.strip()
    if result.state != "ok" or not _VERSION.fullmatch(version):
        return []
    return [_TOOLKITS.fact("compiler", "gcc", name="gcc", version=version)]


def _searched(machine: Machine) -> Iterator[Fact]:
    folders = [f for f in machine.environ.get("LD_LIBRARY_PATH", "").split(":") if f.startswith("/")]
    for position, folder in enumerate(folders[:_MAX_FOLDERS]):
        for name in _names(machine.path(folder)):
            found = _LIBRARY.match(name)
            # The driver's own library belongs to no toolkit, and WSL's folder is where it has to be.
            if found is not None and found["name"] != "cuda":
                yield _LIBRARIES.fact(
                    "library_file", "LD_LIBRARY_PATH", name=f"lib{found['name']}", path=f"{folder.rstrip('/')}/{name}",
                    position=position, role="search_path",
                )  # fmt: skip


def _shadowing(machine: Machine) -> Iterator[Fact]:
    for folder in _SYSTEM_FOLDERS:
        path = f"{folder}/libcuda.so.1"
        place = machine.path(path)
        # Some images link to WSL's library, which hides nothing.
        if (place.exists() or place.is_symlink()) and _WSL_FOLDER not in str(machine.resolved(path)):
            yield _LIBRARIES.fact("library_file", folder, name="libcuda", path=path, role="shadows_wsl")


def _names(folder: Path) -> list[str]:
    """One name for each library: the shortest, which programs ask for or which links to it."""
    try:
        names = sorted(os.listdir(folder), key=lambda name: (len(name), name))
    except OSError:
        return []
    chosen: dict[str, str] = {}
    for name in names:
        found = _LIBRARY.match(name)
        if found is not None:
            chosen.setdefault(found["name"], name)
    return list(chosen.values())
