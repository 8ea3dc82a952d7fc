"""Live probe of the interpreter that runs torch, its packages, and what torch's files say; torch is never imported.

May live here: choosing the interpreter, running the child, turning its record into facts. Must not: judgement.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from ...facts import Fact, Scalar
from .source import Machine, ProbeError, Stating

_PYTHON = Stating("python")
_CHILD = Path(__file__).with_name("_interpreter_child.py")
_ASSIGNMENT = re.compile(r"^(__version__|debug|cuda|hip) *(?::[^=]*)?= *([^#\n]+)", re.MULTILINE)


def probe_interpreter(machine: Machine, limit_s: float) -> list[Fact]:
    """The target interpreter, its packages and its torch."""
    target = _target(machine)
    result = machine.runner.run([target, "-B", "-W", "ignore", os.fspath(_CHILD)], limit_s=limit_s)
    if result.state != "ok":
        raise ProbeError(result.state, target)
    try:
        # A start-up hook of the environment may print before us.
        record = json.loads(result.stdout.strip().rsplit("\n", 1)[-1])
    except ValueError:
        lines = result.stderr.strip().splitlines() or [f"{target} printed no record"]
        raise ProbeError("crashed" if (result.returncode or 0) < 0 else "error", lines[-1]) from None
    return [*_python(record), *_packages(record), *_torch(record)]


def _target(machine: Machine) -> str:
    """The interpreter the user named, else that of the active environment, else ours."""
    if machine.python is not None:
        folder = Path(machine.python)
        return _inside(machine, folder) or machine.python if folder.is_dir() else machine.python
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = machine.environ.get(name)
        found = _inside(machine, Path(prefix)) if prefix else None
        if found is not None:
            return found
    return sys.executable


def _inside(machine: Machine, prefix: Path) -> str | None:
    """The interpreter of an environment folder."""
    names = ("Scripts/python.exe", "python.exe") if machine.system == "windows" else ("bin/python", "bin/python3")
    return next((os.fspath(prefix / name) for name in names if (prefix / name).exists()), None)


def _python(record: dict[str, Any]) -> list[Fact]:
    reader = record["executable"]
    fact = _PYTHON.fact(
        "python",
        reader,
        version=record["version"],
        executable=record["executable"],
        environment=record["environment"],
        bits=record["bits"],
    )
    return [fact, _PYTHON.coverage("python", reader)]


def _packages(record: dict[str, Any]) -> list[Fact]:
    facts = [
        _PYTHON.fact("package", item["location"], name=item["name"], version=item["version"], manager="pip",
                     location=item["location"])
        for item in record["packages"]
    ]  # fmt: skip
    facts += [
        _PYTHON.fact("package", "conda-meta", name=re.sub(r"[-_.]+", "-", item["name"]).lower(),
                     version=item["version"], manager="conda", build=item["build"])
        for item in record["conda"]
    ]  # fmt: skip
    return [*facts, _PYTHON.coverage("packages", record["executable"])]


def _torch(record: dict[str, Any]) -> list[Fact]:
    found = record["torch"]
    if found is None:
        # A torch that is installed but not found as files (an editable build) is not absent.
        installed = any(item["name"] == "torch" for item in record["packages"])
        return [_PYTHON.coverage("torch", record["executable"], complete=not installed)]
    values = torch_values(found["text"])
    facts = [_PYTHON.fact("torch", found["path"], **values)] if values else []
    return [*facts, _PYTHON.coverage("torch", found["path"], complete="version" in values)]


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
