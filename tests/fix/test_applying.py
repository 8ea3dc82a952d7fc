"""Carrying out a plan: a stub interpreter at the border of the system writes down what it was asked to do."""

from __future__ import annotations

import json
import os
import platform
import stat
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from gpurules.applying import Applying, NotHere, log_path, target_of
from gpurules.facts import Fact, Provenance
from gpurules.report.model import Report

from .support import machine, report

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the stub is a shell script")

STUB = """#!/bin/sh
case "$1 $2" in
"-m pip") [ "$3" = freeze ] && exec echo torch==2.6.0+cu124; [ "$3" = --version ] && exec echo pip 25.0
          printf '%s\\n' "$*" >>"{folder}/ran"; exit "$(cat "{folder}/pip")" ;;
"-c import torch"*) printf '%s\\n' "$*" >>"{folder}/ran"; exit "$(cat "{folder}/verify")" ;;
esac
exec "{python}" "$@"
"""


@dataclass
class Stub:
    """An interpreter in a folder. pip, verify: the exit statuses of an installation and of the check."""

    folder: Path
    pip: int = 0
    verify: int = 0

    def path(self) -> str:
        target = self.folder / "bin" / "python"
        target.parent.mkdir(exist_ok=True)
        target.write_text(STUB.format(folder=self.folder, python=sys.executable), encoding="utf-8")
        target.chmod(0o755)
        for name in ("pip", "verify"):
            (self.folder / name).write_text(f"{getattr(self, name)}\n", encoding="utf-8")
        return os.fspath(target)

    def ran(self) -> list[str]:
        file = self.folder / "ran"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stub:
    monkeypatch.setenv("XDG_STATE_HOME", os.fspath(tmp_path / "state"))
    return Stub(tmp_path)


def probed(executable: str, driver: str = "570.124.06", version: str | None = None) -> Report:
    """The report of a live diagnosis of a machine with a new card and an old build."""
    facts = [f for f in machine("NVIDIA GeForce RTX 5090", driver=driver, torch="2.6.0+cu124") if f.type != "python"]
    fields = {"version": version or platform.python_version(), "executable": executable}
    return report([*facts, Fact("python", fields, (Provenance("probe", "python"),))])


def carried_out(made: Report, answer: bool = True) -> tuple[int, list[str], list[Sequence[str]]]:
    """The exit status, what was said, and what was asked."""
    said: list[str] = []
    asked: list[Sequence[str]] = []

    def confirm(_title: str, argv: Sequence[str]) -> bool:
        asked.append(argv)
        return answer

    healthy = report(machine("NVIDIA GeForce RTX 5090", driver="570.124.06", torch="2.13.0+cu129"))
    status = Applying(made, target_of(made), confirm, said.append, lambda _python: healthy).run()
    return status, said, asked


def test_the_step_runs_in_the_diagnosed_interpreter_is_checked_and_diagnosed_again(stub: Stub) -> None:
    made = probed(stub.path())
    assert made.fix_plan is not None
    packages = made.fix_plan.steps[0].instance.packages
    assert packages is not None
    status, said, asked = carried_out(made)
    assert status == 0
    assert stub.ran()[0].startswith(
        f"-m pip install torch{packages['torch']} --index-url https://download.pytorch.org/"
    )
    assert stub.ran()[1].startswith("-c import torch")
    assert [argv[:3] for argv in asked] == [[stub.path(), "-m", "pip"]]
    assert "The check passed." in said
    assert said[-1].startswith("Diagnosed again: ")


def test_what_ran_is_kept_for_the_owner_only(stub: Stub) -> None:
    carried_out(probed(stub.path()))
    assert stat.S_IMODE(log_path().stat().st_mode) == 0o600
    first = json.loads(log_path().read_text(encoding="ascii").splitlines()[0])
    assert (first["fix"], first["exit"]) == ("install-torch-build", 0)
    assert first["packages_before"] == ["torch==2.6.0+cu124"]


def test_nothing_runs_without_consent(stub: Stub) -> None:
    status, said, asked = carried_out(probed(stub.path()), answer=False)
    assert (status, len(asked), stub.ran()) == (1, 1, [])
    assert said[-1] == "Declined; nothing more was run."


def test_a_failure_ends_it_and_says_how_to_go_back(stub: Stub) -> None:
    stub.pip = 3
    status, said, _asked = carried_out(probed(stub.path()))
    assert (status, len(stub.ran())) == (1, 1)
    assert said[1] == "The command failed with exit status 3; nothing more was run."
    assert said[2].startswith("Undo: Install the former version again")
    assert str(log_path()) in said[2]


def test_a_check_that_fails_is_a_failure(stub: Stub) -> None:
    stub.verify = 1
    status, said, _asked = carried_out(probed(stub.path()))
    assert status == 1
    assert "The check failed with exit status 1." in said


def test_a_step_for_root_stops_before_anything_that_rests_on_it(stub: Stub) -> None:
    status, said, asked = carried_out(probed(stub.path(), driver="550.54.15"))
    assert (status, asked, stub.ran()) == (1, [], [])
    assert said[0].startswith("1. Install driver branch 620")
    assert said[1].startswith("This step has to be done by hand")


@pytest.mark.parametrize(
    ("executable", "version", "message"),
    [
        ("/nowhere/bin/python", None, "no interpreter at"),
        ("python", None, "no interpreter at"),
        ("", None, "no interpreter at"),
        (None, "3.9.99", "is Python"),
    ],
)
def test_another_machine_or_a_changed_one_is_refused(
    stub: Stub, executable: str | None, version: str | None, message: str
) -> None:
    with pytest.raises(NotHere, match=message):
        target_of(probed(stub.path() if executable is None else executable, version=version))


def test_a_pasted_report_is_refused(stub: Stub) -> None:
    facts = machine("NVIDIA GeForce RTX 5090", driver="570.124.06", torch="2.6.0+cu124")
    facts[1] = Fact("python", {"version": platform.python_version(), "executable": stub.path()}, facts[1].provenance)
    with pytest.raises(NotHere, match="no interpreter of this machine"):
        target_of(report(facts))


# --- the command ------------------------------------------------------------------------------------------------------


def command(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "XDG_STATE_HOME": os.fspath(folder / "state"), "LC_ALL": "C.UTF-8"}
    argv = [sys.executable, "-m", "gpurules", "fix", *args]
    return subprocess.run(
        argv, cwd=folder, env=environ, capture_output=True, encoding="utf-8", stdin=subprocess.DEVNULL, timeout=120
    )


def saved(folder: Path, made: Report) -> str:
    path = folder / "report.json"
    path.write_text(made.to_json(), encoding="utf-8")
    return os.fspath(path)


def test_the_command_applies_with_yes_and_diagnoses_this_machine(stub: Stub, tmp_path: Path) -> None:
    done = command(tmp_path, "--in", saved(tmp_path, probed(stub.path())), "--apply", "--yes")
    assert stub.ran()[0].startswith("-m pip install torch==")
    assert (done.stdout, "Diagnosed again: " in done.stderr) == ("", True)


def test_the_command_takes_no_answer_for_no(stub: Stub, tmp_path: Path) -> None:
    done = command(tmp_path, "--in", saved(tmp_path, probed(stub.path())), "--apply")
    assert (done.returncode, stub.ran()) == (1, [])


def test_commands_written_into_a_report_are_not_run(stub: Stub, tmp_path: Path) -> None:
    """The plan comes from the facts and the knowledge; what a forged report says of itself plays no part."""
    text = probed(stub.path()).to_json().replace('"install"', '"download"').replace("pip install", "pip download")
    (tmp_path / "forged.json").write_text(text, encoding="utf-8")
    assert "download torch" not in command(tmp_path, "--in", "forged.json", "--format", "bash").stdout
    command(tmp_path, "--in", "forged.json", "--apply", "--yes")
    assert stub.ran()[0].startswith("-m pip install torch==")


def test_a_report_of_another_machine_is_an_input_error(stub: Stub, tmp_path: Path) -> None:
    done = command(tmp_path, "--in", saved(tmp_path, probed("/nowhere/python")), "--apply", "--yes")
    assert done.returncode == 2
    assert "not of this machine as it is now" in done.stderr


@pytest.mark.parametrize("form", ["text", "json", "bash", "powershell"])
def test_every_form_comes_out(stub: Stub, tmp_path: Path, form: str) -> None:
    done = command(tmp_path, "--in", saved(tmp_path, probed(stub.path())), "--format", form)
    assert done.returncode == 0
    assert "pip install torch==" in done.stdout or '"install"' in done.stdout
