"""Live probe of the interpreter that runs torch, its packages, and what torch's files say; torch is never imported.

May live here: running the child in the chosen interpreter, turning its record into facts. Must not: choosing the
interpreter (interpreters.py), judgement.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from ...facts import Fact
from .env_files import torch_values
from .interpreters import target as target_of
from .source import Machine, ProbeError, Stating

_PYTHON = Stating("python")
_CHILD = Path(__file__).with_name("_interpreter_child.py")


def probe_interpreter(machine: Machine, limit_s: float) -> list[Fact]:
    """The target interpreter, its packages and its torch."""
    target = target_of(machine)
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
