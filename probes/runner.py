"""How probes run commands: one small protocol and its implementation on this machine.

May live here: starting a program and limiting it in time and output. Must not: knowledge of any command's output.

A command is an absolute path and a list of arguments, never a shell line. It runs in the C locale, without standard
input, in its own process group, which is killed as a whole when a limit is passed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Literal, Protocol

from .decoding import decode

State = Literal["ok", "missing", "timeout", "too_large", "permission"]

# Where drivers put their programs outside PATH: NVIDIA's container images, WSL, Jetson.
_EXTRA_FOLDERS: tuple[str, ...] = (
    "/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/lib/wsl/lib", "/usr/local/nvidia/bin", "/opt/rocm/bin",
)  # fmt: skip
if os.name == "nt":
    _EXTRA_FOLDERS = ("C:\\Windows\\System32", "C:\\Program Files\\NVIDIA Corporation\\NVSMI")
_CHUNK = 65536
# A grandchild may keep the pipes open after the command itself has ended.
_DRAIN_S = 0.5


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a command; output up to the moment a limit was passed is kept.

    state: ok means that the command ended by itself, with whatever `returncode` (negative: killed by that signal).
    """

    state: State
    stdout: str = ""
    stderr: str = ""
    returncode: int | None = None


class Runner(Protocol):
    """Runs one command under limits; never raises for what the command does."""

    def run(self, argv: Sequence[str], *, limit_s: float, max_bytes: int = 4 << 20) -> Result:
        """Run `argv` for at most `limit_s` seconds and `max_bytes` of output on each of stdout and stderr."""
        ...  # pragma: no cover


class SystemRunner:
    """Runs commands on this machine with a given environment (default: that of this process)."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = dict(os.environ if environ is None else environ)

    def resolve(self, name: str) -> str | None:
        """The absolute path of a program, from PATH and the places where drivers install; None when there is none."""
        if os.path.dirname(name):
            found = shutil.which(name)
            return os.path.abspath(found) if found else None
        # Never from the current folder, where Windows would look first: it may hold anything.
        listed = [*self._environ.get("PATH", os.defpath).split(os.pathsep), *_EXTRA_FOLDERS]
        places = (shutil.which(os.path.join(folder, name)) for folder in listed if os.path.isabs(folder))
        return next((place for place in places if place), None)

    def run(self, argv: Sequence[str], *, limit_s: float, max_bytes: int = 4 << 20) -> Result:
        """Run `argv` for at most `limit_s` seconds and `max_bytes` of output on each of stdout and stderr."""
        path = self.resolve(argv[0])
        if path is None:
            # An existing file that may not be executed is a different fault from a missing one.
            return Result("permission" if os.path.isfile(argv[0]) else "missing")
        try:
            process = subprocess.Popen(
                [path, *argv[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._child_environ(),
                start_new_session=os.name == "posix",
            )
        except PermissionError:
            return Result("permission")
        except OSError:
            # No such file after all, or not a program for this machine.
            return Result("missing")
        return _supervise(process, time.monotonic() + limit_s, max_bytes)

    def _child_environ(self) -> dict[str, str]:
        environ = {name: value for name, value in self._environ.items() if name not in ("LANGUAGE", "LANG")}
        environ["LC_ALL"] = "C"
        return environ


class _Collector(threading.Thread):
    """Reads one pipe up to a limit; sets `event` when it is at its end or at the limit."""

    def __init__(self, pipe: IO[bytes], max_bytes: int, event: threading.Event) -> None:
        super().__init__(daemon=True)
        self._pipe = pipe
        self._max_bytes = max_bytes
        self._event = event
        self._parts: list[bytes] = []
        self.ended = False
        self.too_large = False

    def run(self) -> None:
        size = 0
        while chunk := os.read(self._pipe.fileno(), _CHUNK):
            self._parts.append(chunk[: self._max_bytes - size])
            size += len(chunk)
            if size > self._max_bytes:
                self.too_large = True
                break
        self.ended = True
        self._event.set()

    def text(self) -> str:
        return decode(b"".join(self._parts))


def _supervise(process: subprocess.Popen[bytes], deadline: float, max_bytes: int) -> Result:
    assert process.stdout is not None
    assert process.stderr is not None
    event = threading.Event()
    readers = [_Collector(pipe, max_bytes, event) for pipe in (process.stdout, process.stderr)]
    for reader in readers:
        reader.start()
    state: State = "ok"
    while not all(reader.ended for reader in readers):
        event.wait(max(0.0, min(deadline - time.monotonic(), _DRAIN_S)))
        event.clear()
        if any(reader.too_large for reader in readers):
            break
        if time.monotonic() >= deadline:
            state = "timeout"
            break
        if process.poll() is not None:
            # Ended, but its output is still open: give it a moment, then take what is there.
            for reader in readers:
                reader.join(_DRAIN_S)
            break
    if any(reader.too_large for reader in readers):
        state = "too_large"
    if state == "ok":
        try:
            process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            state = "timeout"
    _kill_group(process)
    returncode = _reap(process)
    for reader in readers:
        reader.join(_DRAIN_S)
    for reader, pipe in zip(readers, (process.stdout, process.stderr), strict=True):
        # Closing under a reader that still waits would hand its file number to someone else.
        if not reader.is_alive():
            pipe.close()
    return Result(state, readers[0].text(), readers[1].text(), returncode if state == "ok" else None)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill what is left of the command and of what it started."""
    if os.name == "posix":
        try:
            # The group lives on while a grandchild does, even after the command itself was reaped.
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return
    elif process.poll() is None:
        process.kill()


def _reap(process: subprocess.Popen[bytes]) -> int | None:
    """The return code; None for a process that even SIGKILL does not end (it hangs inside the driver)."""
    try:
        return process.wait(1.0)
    except subprocess.TimeoutExpired:
        return None
