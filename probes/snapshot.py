"""What the probes were given: the output of every command and the text of every file, kept beside the facts.

May live here: recording and bounding raw outputs. Must not: reading them, writing files.

A snapshot is a facts file: `--facts` reads its facts and leaves `raw` to people.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from .runner import Result, Runner

__all__ = ["Recorder"]

_MAX_TEXT = 16_384
_MAX_TEXTS = 400
# Names of accounts, servers and folders of one's own, of which the facts hold what matters.
_NEVER = frozenset({"/etc/group", "/proc/mounts", "/proc/self/mountinfo"})
# Logs of the whole machine, which name hosts, disks and networks.
_NEVER_RUN = frozenset({"dmesg", "journalctl"})


class Recorder:
    """Runs commands through another runner and remembers what they and the files said; probes run in threads."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._lock = threading.Lock()
        self._commands: list[dict[str, Any]] = []
        self._files: dict[str, str] = {}

    def run(self, argv: Sequence[str], *, limit_s: float, max_bytes: int = 4 << 20) -> Result:
        """Run `argv` as the runner does."""
        result = self._runner.run(argv, limit_s=limit_s, max_bytes=max_bytes)
        said = {"argv": [word[:_MAX_TEXT] for word in argv], "state": result.state, "returncode": result.returncode,
                "stdout": result.stdout[:_MAX_TEXT], "stderr": result.stderr[:_MAX_TEXT]}  # fmt: skip
        with self._lock:
            if argv[0] not in _NEVER_RUN:
                self._commands.append(said)
        return result

    def read(self, path: str, text: str) -> None:
        """Remember the text of a file."""
        with self._lock:
            if path not in _NEVER and len(self._files) < _MAX_TEXTS:
                self._files[path] = text[:_MAX_TEXT]

    def raw(self) -> Mapping[str, Any]:
        """All outputs, in an order that does not depend on which probe was faster."""
        with self._lock:
            commands = sorted(self._commands, key=lambda command: command["argv"])
            files = [{"path": path, "text": text} for path, text in sorted(self._files.items())]
        return {"commands": commands, "files": files}
