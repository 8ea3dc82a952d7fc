"""Stub environments: a module `torch` that does on import what a test wants to see reported."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# What a stub needs to pass `available` on the CPU; other checks only pass by a line that they print themselves.
PASSING = "def get_num_threads():\n    return 2\n"
Stub = Callable[[str], dict[str, str]]


@pytest.fixture
def stub(tmp_path: Path) -> Stub:
    """The environment of a child whose torch has this body, run on import."""

    def make(body: str) -> dict[str, str]:
        package = tmp_path / "stub" / "torch"
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").write_text(f"import os, signal, sys, time\n{body}\n", encoding="utf-8")
        (package / "version.py").write_text(
            '__version__ = "2.13.0+cpu"\ndebug = False\ncuda = None\nhip = None\n', encoding="utf-8"
        )
        paths = [str(package.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}

    return make


@pytest.fixture(scope="session")
def torch_python() -> str:
    """An interpreter that has torch: this one, or the one that the environment names."""
    return os.environ.get("GPURULES_TORCH_PYTHON", sys.executable)
