"""Runs checks, each in a child of the target interpreter, within limits of time and memory.

May live here: starting, watching and stopping a child, and telling apart how it ended. Must not: the computations,
what is expected of them.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import psutil

from ...errors import reason
from ...facts import Fact, Provenance, Scalar
from ...messages import NOTHING, Message, known
from .checks import PROBE, Check, Device

State = Literal["passed", "failed", "skipped", "timeout", "killed", "crashed", "out_of_memory"]

_FIRST = "available"
_NO_TIME = Message("validate.detail.no_time")
_NO_DEVICE = Message("validate.detail.no_device")
_CHILD = Path(__file__).with_name("_child.py")
_POLL_S = 0.05
_USUAL_S = 55.0
_MAX_OUTPUT = 1 << 20
_MAX_DETAIL = 400
_AT_ONCE = 2  # most of a check's time goes into importing torch, and a second core is everywhere
_LEAST_S = 1.0  # a check that has less time than this is not begun
_ENDED_FROM_OUTSIDE = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")


@dataclass(frozen=True, slots=True)
class Budget:
    """What all checks together may use: seconds, and a share of the free memory of the host and of the device.

    More seconds than usual, for a slow machine, lengthen the limit of each check too.
    """

    seconds: float = _USUAL_S
    share: float = 0.5

    def limit_s(self, check: Check) -> float:
        """How long one check may take."""
        return check.limit_s * max(1.0, self.seconds / _USUAL_S)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a check. value: what it read, where a check reads something; measured: figures for the report."""

    check: Check
    device: Device
    state: State
    detail: Message = NOTHING
    seconds: float = 0.0
    value: str | None = None
    measured: Mapping[str, Scalar | float] | None = None

    def fact(self) -> Fact:
        """The outcome as a fact."""
        fields: dict[str, Scalar] = {
            "check": self.check.name,
            "device": self.device.kind,
            "index": self.device.index,
            "state": self.state,
        }
        fields |= {"detail": detail} if (detail := str(self.detail)[:_MAX_DETAIL]) else {}
        fields |= {"value": self.value} if self.value else {}
        peak = (self.measured or {}).get("peak_mib")
        fields |= {"peak_mib": peak} if isinstance(peak, int) else {}
        return Fact("validation_check", fields, (Provenance("probe", PROBE, reader=self.check.name),))


def run_checks(
    checks: Sequence[Check],
    device: Device,
    python: str,
    budget: Budget | None = None,
    environ: Mapping[str, str] | None = None,
    progress: Callable[[Check, Outcome | None], None] = lambda _check, _outcome: None,
) -> list[Outcome]:
    """What came of each check; never raises for what a check does.

    python: the interpreter that has torch. progress: called before each check, and after it with its outcome.
    """
    limits = budget or Budget()
    end = time.monotonic() + limits.seconds
    telling = threading.Lock()

    def done(check: Check, why_not: Message | None = None) -> Outcome:
        left = end - time.monotonic()
        if why_not is None and left < _LEAST_S:
            why_not = _NO_TIME
        with telling:
            progress(check, None)
        outcome = (
            Outcome(check, device, "skipped", why_not)
            if why_not is not None
            else _run(check, device, python, min(limits.limit_s(check), left), limits.share / _AT_ONCE, environ)
        )
        if outcome.state == "timeout" and left < limits.limit_s(check):
            # It had less time than it may take, which says nothing of the device.
            outcome = Outcome(check, device, "skipped", _NO_TIME, outcome.seconds)
        with telling:
            progress(check, outcome)
        return outcome

    # Where the device does not answer, no other check can tell more of it.
    first = {check: done(check) for check in checks if check.work == _FIRST}
    dead = any(outcome.state != "passed" for outcome in first.values())
    rest = sorted((c for c in checks if c not in first), key=lambda check: -check.limit_s)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        after = pool.map(lambda c: done(c, _NO_DEVICE if dead and c.needs != "build" else None), rest)
        try:
            found = {**first, **dict(zip(rest, after, strict=True))}
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # interrupted: begin nothing more
            raise
    return [found[check] for check in checks]


def _run(
    check: Check, device: Device, python: str, limit_s: float, share: float, environ: Mapping[str, str] | None
) -> Outcome:
    host_mib = int(psutil.virtual_memory().available * share) >> 20
    order = {"work": check.work, "dtype": check.dtype, "device": str(device), "share": share, "host_mib": host_mib}
    order["measured"] = check.tensors_mib is not None
    begun = time.monotonic()
    # Files instead of pipes: a child that prints without end can neither block nor fill our memory.
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            child = subprocess.Popen(
                [python, "-B", "-W", "ignore", os.fspath(_CHILD), json.dumps(order)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=dict(os.environ if environ is None else environ),
                start_new_session=os.name == "posix",
            )
        except OSError as error:
            return Outcome(check, device, "failed", Message("input.file", file=python, reason=reason(error)))
        stopped = _watch(child, begun + limit_s, host_mib, (out, err))
        seconds = round(time.monotonic() - begun, 2)
        texts = [_text(file) for file in (out, err)]
    if stopped is not None:
        return Outcome(check, device, stopped[0], stopped[1], seconds)
    return _judged(check, device, child.returncode, texts[0], texts[1], seconds)


def _watch(
    child: subprocess.Popen[bytes], end: float, host_mib: int, files: Sequence[IO[bytes]]
) -> tuple[State, Message] | None:
    """Waits for the child; why it was stopped, or None where it ended by itself. Nothing of it is left afterwards."""
    begun = time.monotonic()
    try:
        while child.poll() is None:
            if time.monotonic() >= end:
                return "timeout", _detail("timeout", seconds=f"{end - begun:.0f}")
            used = _used_mib(child.pid)
            if used > host_mib:
                return "out_of_memory", _detail("too_much_memory", used=used, share=host_mib)
            if any(os.fstat(file.fileno()).st_size > _MAX_OUTPUT for file in files):
                return "crashed", _detail("prints")
            time.sleep(_POLL_S)
        return None
    finally:
        _stop(child)


def _used_mib(pid: int) -> int:
    """Main memory of a process and of all that it started."""
    total = 0
    try:
        first = psutil.Process(pid)
        for process in (first, *first.children(recursive=True)):
            try:
                total += process.memory_info().rss
            except psutil.Error:
                continue  # ended meanwhile
    except psutil.Error:
        return 0
    return total >> 20


def _stop(child: subprocess.Popen[bytes]) -> None:
    """Ends the child and everything in its process group."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):  # all of it is gone
            os.killpg(child.pid, signal.SIGKILL)
    elif child.poll() is None:
        child.kill()
    try:
        child.wait(5.0)
    except subprocess.TimeoutExpired:
        return  # inside the driver, where no signal reaches it; it must not hold the other checks up


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_MAX_OUTPUT).decode("utf-8", "replace")


def _judged(check: Check, device: Device, code: int, out: str, err: str, seconds: float) -> Outcome:
    """The child's own word, else what its end tells."""
    said = _record(out)
    if said is not None:
        return Outcome(
            check, device, said["state"], _told(said), seconds,
            said.get("value"), said.get("measured"),
        )  # fmt: skip
    last = next((line.strip() for line in reversed(err.splitlines()) if line.strip()), "")
    if code < 0:
        name = _signal_name(-code)
        state: State = "killed" if name in _ENDED_FROM_OUTSIDE else "crashed"
        return Outcome(check, device, state, _quoted(" ".join(filter(None, (name, last)))), seconds)
    ended = _detail("exit_and_said", code=code, text=last[:_MAX_DETAIL]) if last else _detail("exit", code=code)
    return Outcome(check, device, "crashed", ended, seconds)


def _detail(name: str, **values: object) -> Message:
    return Message(f"validate.detail.{name}", **values)


def _quoted(text: str) -> Message:
    """What somebody else's program says."""
    return _detail("quoted", text=text[:_MAX_DETAIL])


def _told(said: Mapping[str, Any]) -> Message:
    """Why a check did not pass, as its child says it: see `said_by` there."""
    name, values = said.get("said"), said.get("values")
    if name is None:
        return NOTHING
    if not known(f"validate.detail.{name}") or not isinstance(values, dict):
        return _quoted(str(name))
    return _detail(str(name), **{key: _value(value) for key, value in values.items()})


def _value(value: Any) -> object:
    if isinstance(value, dict):
        return _told(value)
    return value[:_MAX_DETAIL] if isinstance(value, str) else value


def _record(out: str) -> dict[str, Any] | None:
    """The last line that is a result: libraries may print before it and after it."""
    for line in reversed(out.splitlines()):
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and record.get("state") in ("passed", "failed", "skipped", "out_of_memory"):
            return record
    return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
