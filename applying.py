"""Carrying out a plan on this machine: the steps that can be undone, need no root and stay inside one environment.

May live here: which steps may run, running them one at a time, the log. Must not: choosing or ordering fixes, asking
(the caller does), wording (knowledge/messages.yaml).

A command runs as an argument list in the interpreter that was diagnosed, never through a shell. The first step that
needs a hand, is declined or fails ends it: the later ones rest on it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from .errors import InputError
from .messages import Message
from .report.fix_text import by_hand, titles
from .report.messages import Words
from .report.model import PlanStep, Report, Step
from .report.state import last_report_path

LOG = "applied.jsonl"
_INSTALL_S = 3600
_VERIFY_S = 300
_LOOK_S = 60


class NotHere(InputError):
    """The report is not of an interpreter of this machine, as it is now; `reason` says what differs."""

    def __init__(self, reason: Message) -> None:
        super().__init__("input.not_this_machine", reason=reason)


@dataclass(frozen=True, slots=True)
class Target:
    """The interpreter that was diagnosed."""

    python: str

    def adapted(self, argv: Sequence[str]) -> list[str] | None:
        """The command for this interpreter, None where the tool is not here or it is no command for an environment."""
        tool, *rest = argv
        if tool == "pip" and self._answers("-m", "pip", "--version"):
            return [self.python, "-m", "pip", *rest]
        if tool == "uv" and rest[:2] == ["pip", "install"] and (found := shutil.which("uv")):
            return [found, "pip", "install", "--python", self.python, *rest[2:]]
        prefix = Path(self.python).parent if os.name == "nt" else Path(self.python).parent.parent
        if tool == "conda" and rest[:1] == ["install"] and (prefix / "conda-meta").is_dir():
            found = shutil.which("conda")
            return [found, "install", "--yes", "--prefix", os.fspath(prefix), *rest[1:]] if found else None
        return None

    def version(self) -> str:
        """What the interpreter calls itself. Raises NotHere."""
        code = "import platform; print(platform.python_version())"
        try:
            done = subprocess.run(
                [self.python, "-I", "-c", code], capture_output=True, text=True, timeout=_LOOK_S, check=True
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise NotHere(Message("input.file", file=self.python, reason=error)) from error
        return done.stdout.strip()

    def packages(self) -> str:
        """What is installed, as `pip freeze` says it; empty where pip cannot say."""
        try:
            done = subprocess.run(
                [self.python, "-m", "pip", "freeze"], capture_output=True, text=True, timeout=_LOOK_S, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return ""
        return done.stdout

    def _answers(self, *arguments: str) -> bool:
        try:
            done = subprocess.run(
                [self.python, *arguments], capture_output=True, stdin=subprocess.DEVNULL, timeout=_LOOK_S
            )
        except (OSError, subprocess.SubprocessError):
            return False
        return done.returncode == 0


def target_of(report: Report) -> Target:
    """The interpreter that the live probe of this machine looked at. Raises NotHere."""
    for fact in report.facts:
        if fact.type != "python" or not any(p.kind == "probe" for p in fact.provenance):
            continue
        path = os.path.expanduser(str(fact.fields.get("executable", "")))
        if not os.path.isabs(path) or not os.path.isfile(path):
            raise NotHere(Message("here.no_interpreter", path=path))
        target = Target(path)
        if (found := target.version()) != fact.fields.get("version"):
            wanted = fact.fields.get("version")
            raise NotHere(Message("here.other_python", path=path, found=found, wanted=wanted))
        return target
    raise NotHere(Message("here.none"))


@dataclass(slots=True)
class Applying:
    """One run over a plan. confirm: asks whether a command may run; say: tells one line; judge: a new diagnosis."""

    report: Report
    target: Target
    confirm: Callable[[str, Sequence[str]], bool]
    say: Callable[[str], None]
    judge: Callable[[str], Report]

    def run(self) -> int:
        """Exit status: 0 all done and no error left, else 1."""
        words = Words(self.report.lang)
        plan = self.report.fix_plan
        steps = plan.steps if plan else ()
        if not steps:
            self.say(words("fix_plan.none"))
            return int(bool(plan and plan.left))
        before = self.target.packages()
        for number, step in enumerate(steps, 1):
            self.say(f"{number}. {step.instance.title}")
            status = self._step(step, words, before)
            if status:
                return status
        return self._verified(steps[-1], words)

    def _step(self, step: PlanStep, words: Words, before: str) -> int:
        commands = self.commands(step)
        if not commands:
            self.say(words("fix_plan.apply.by_hand"))
            for action in step.instance.steps:
                for text in (action.text, action.command):
                    if text:
                        self.say(f"   {text}")
            return 1
        for argv in commands:
            if not self.confirm(step.instance.title, argv):
                self.say(words("fix_plan.apply.declined"))
                return 1
            code = _run(argv, _INSTALL_S)
            _log({"fix": step.fix, "argv": argv, "exit": code, "packages_before": before.splitlines()})
            if code != 0:
                self.say(words("fix_plan.apply.failed", code=code))
                self._undo(step, words)
                return 1
        self._undo(step, words)
        return 0

    def commands(self, step: PlanStep) -> list[list[str]]:
        """The commands of the first tool with which the whole step can run here, empty where a hand is needed."""
        for tool in dict.fromkeys(action.tool for action in step.instance.steps):
            mine = [action for action in step.instance.steps if action.tool in (None, tool)]
            adapted = [self._command(action) for action in mine]
            if tool is not None and all(adapted):
                return [argv for argv in adapted if argv]
        return []

    def _command(self, action: Step) -> list[str] | None:
        if action.needs_root or by_hand(action) or not action.argv:
            return None
        return self.target.adapted(action.argv)

    def _undo(self, step: PlanStep, words: Words) -> None:
        if step.instance.undo:
            self.say(words("fix_plan.apply.undo", text=step.instance.undo, log=log_path()))

    def _verified(self, step: PlanStep, words: Words) -> int:
        argv = step.instance.verify_argv
        if argv and argv[0] == "python":
            code = _run([self.target.python, *argv[1:]], _VERIFY_S)
            _log({"fix": step.fix, "verify": list(argv), "exit": code})
            self.say(words("fix_plan.apply.verified" if code == 0 else "fix_plan.apply.not_verified", code=code))
            if code != 0:
                self._undo(step, words)
        else:
            code = 0
        after = self.judge(self.target.python)
        self.say(words("fix_plan.apply.after", summary=after.summary))
        for title in _open(after):
            self.say(f"   {title}")
        return int(code != 0 or after.exit_status() != 0)


def log_path() -> Path:
    """Where what was run is kept, the owner's only."""
    return last_report_path().with_name(LOG)


def _open(report: Report) -> Iterable[str]:
    shown = titles(report)
    return [shown[f.id] for f in report.findings if f.severity == "error"]


def _run(argv: Sequence[str], limit_s: float) -> int:
    """The exit status of a command whose output the user sees; 124 past the limit, 127 where it cannot start."""
    try:
        return subprocess.run(list(argv), stdin=subprocess.DEVNULL, stdout=2, timeout=limit_s).returncode
    except subprocess.TimeoutExpired:
        return 124
    except OSError:
        return 127


def _log(entry: dict[str, object]) -> None:
    path = log_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    line = json.dumps({"at": datetime.now(timezone.utc).isoformat(timespec="seconds"), **entry}, ensure_ascii=True)
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(handle, "a", encoding="ascii") as file:
        file.write(line + "\n")
