"""Which Python environments there are on this machine, and which one is judged.

May live here: the order in which one is chosen, and stating the facts. Must not: layouts and places (env_files.py,
env_places.py), running an interpreter (interpreter.py), judging what one holds.

Named by the user, else active in the shell, else the first with torch among: the project's in the current folder, the
one that gpurules was installed in, the first `python` on PATH. One that pipx or uv made for gpurules alone is none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...facts import Fact, Scalar
from .env_files import Contents, contents, is_for_one_tool, key_of, prefix_of, python_in
from .env_places import of_conda, of_kernels, of_projects
from .source import Machine, ProbeError, Stating

_ENVIRONMENTS = Stating("python_environments")
_MAX_FOUND = 32
_DECISIVE = ("named", "active")
# Windows puts programs of these names there that open its shop.
_SHOP = "microsoft\\windowsapps"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter that was found; name: of the conda environment; kernel: the notebook kernel that uses it."""

    executable: str
    found_by: str
    name: str | None = None
    kernel: str | None = None


def target(machine: Machine) -> str:
    """The interpreter to judge. Raises ProbeError where there is none."""
    return chosen(machine, found(machine)).executable


def probe_environments(machine: Machine) -> list[Fact]:
    """Every environment that was found, and which of them is judged."""
    every = found(machine)
    try:
        judged: Interpreter | None = chosen(machine, every)
    except ProbeError:
        judged = None
    facts = [_fact(item, _read(machine, item), chosen=item is judged) for item in every]
    return [*facts, _ENVIRONMENTS.coverage("python_environments", "files", complete=False)]


def chosen(machine: Machine, every: list[Interpreter]) -> Interpreter:
    """The one to judge. Raises ProbeError where none can be."""
    likely = [item for item in every if item.found_by in ("project", "own", "path")]
    first = next((item for item in every if item.found_by in _DECISIVE), None)
    if first is not None:
        return first
    for wanted in (True, None):
        with_torch = next((item for item in likely if _read(machine, item).torch_present is wanted), None)
        if with_torch is not None:
            return with_torch
    if likely:
        return likely[0]
    raise ProbeError("missing", "no Python environment: --python PATH names one")


def found(machine: Machine) -> list[Interpreter]:
    """Every environment once, those that may be judged first."""
    every: dict[str, Interpreter] = {}
    for item in _all(machine):
        key = key_of(item.executable)
        known = every.get(key)
        if known is None:
            if len(every) < _MAX_FOUND:
                every[key] = item
        elif item.kernel or item.name:
            kernel, name = known.kernel or item.kernel, known.name or item.name
            every[key] = Interpreter(known.executable, known.found_by, name, kernel)
    return list(every.values())


def _all(machine: Machine) -> Iterator[Interpreter]:
    if machine.python is not None:
        folder = Path(machine.python)
        inside = python_in(folder, machine.system) if folder.is_dir() else None
        yield Interpreter(inside or machine.python, "named")
    yield from (Interpreter(path, "active") for path in _active(machine))
    # What these find is of this machine, not of a folder that stands for another.
    if machine.live:
        yield from (Interpreter(path, "project") for path in of_projects(machine))
    if not is_for_one_tool(Path(machine.prefix)):
        yield Interpreter(machine.executable, "own")
    if machine.live:
        yield from (Interpreter(path, "path") for path in _on_path(machine))
        yield from (Interpreter(path, "kernel", kernel=name) for path, name in of_kernels(machine))
        yield from (Interpreter(path, "conda", name=name) for path, name in of_conda(machine))


def _active(machine: Machine) -> Iterator[str]:
    """Of the environments that the shell names, the one that its PATH reaches first comes first."""
    environ = machine.environ
    names = [environ.get("VIRTUAL_ENV"), environ.get("CONDA_PREFIX")]
    if environ.get("CONDA_DEFAULT_ENV") in ("base", "root"):
        names.pop()  # conda switches it on in every shell: it says nothing of what the user means
    prefixes = [Path(name) for name in names if name and not is_for_one_tool(Path(name))]
    order = [os.path.normcase(entry) for entry in environ.get("PATH", "").split(os.pathsep)]
    found = [path for prefix in prefixes if (path := python_in(prefix, machine.system)) is not None]

    def reached(path: str) -> int:
        folder = os.path.normcase(os.path.dirname(path))
        return order.index(folder) if folder in order else len(order)

    yield from sorted(found, key=reached)


def _on_path(machine: Machine) -> Iterator[str]:
    """The first interpreter on PATH."""
    names = ("python.exe",) if machine.system == "windows" else ("python", "python3")
    for entry in machine.environ.get("PATH", "").split(os.pathsep):
        if not entry or _SHOP in entry.lower():
            continue
        place = next((path for name in names if _is_program(path := os.path.join(entry, name))), None)
        prefix = prefix_of(place) if place else None
        if place is not None and not (prefix is not None and is_for_one_tool(prefix)):
            yield place
            return


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _read(machine: Machine, item: Interpreter) -> Contents:
    return contents(item.executable, machine.system, machine.home)


def _fact(item: Interpreter, read: Contents, *, chosen: bool) -> Fact:
    torch: dict[str, Scalar | None] = {name: read.torch.get(name) for name in ("cuda", "cuda_built")}
    return _ENVIRONMENTS.fact(
        "python_environment", item.executable, executable=item.executable, kind=read.kind, name=item.name,
        kernel=item.kernel, found_by=item.found_by, chosen=chosen, version=read.version,
        torch_present=read.torch_present, torch=read.torch.get("version"), **torch,
    )  # fmt: skip
