"""The command `gpurules ask` in a process of its own, with replies through a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from gpurules.knowledge.loader import Knowledge, load_knowledge

Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture(scope="session")
def knowledge() -> Knowledge:
    return load_knowledge()


@pytest.fixture
def ask(tmp_path: Path) -> Run:
    kept = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "NO_COLOR", "GPURULES_DEBUG"}}
    environ = {**kept, "XDG_STATE_HOME": str(tmp_path / "state"), "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8"}

    def run(*args: str, replies: str | bytes = "") -> subprocess.CompletedProcess[bytes]:
        data = replies.encode() if isinstance(replies, str) else replies
        return subprocess.run(
            [sys.executable, "-m", "gpurules", "ask", *args],
            input=data,
            capture_output=True,
            cwd=tmp_path,
            env=environ,
            timeout=60,
        )

    return run
