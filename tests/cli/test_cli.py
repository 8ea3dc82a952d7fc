"""The command line as a user meets it: every test runs `python -m gpurules` in a process of its own."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from gpurules.report.schema import json_schema

ISSUE = (Path(__file__).parents[1] / "samples" / "issue.txt").read_text(encoding="utf-8")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


def environment(state: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "NO_COLOR", "GPURULES_DEBUG"}}
    return {**kept, "XDG_STATE_HOME": str(state), "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8"}


@pytest.fixture
def gpurules(tmp_path: Path) -> Run:
    (tmp_path / "issue.txt").write_text(ISSUE, encoding="utf-8")

    def run(*args: str, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "gpurules", *args],
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            cwd=tmp_path,
            env={**environment(tmp_path / "state"), **environ},
            timeout=60,
        )

    return run


@pytest.mark.parametrize("args", [["--version"], ["--help"], ["diagnose", "--help"], ["rules", "test", "--help"]])
def test_help_and_version_load_nothing_but_click(args: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "gpurules", *args], capture_output=True, encoding="utf-8", timeout=60
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.returncode == 0
    assert "click" in loaded
    assert loaded & {"pydantic", "yaml", "rich", "torch", "pynvml", "psutil", "asyncio"} == set()
    ours = {name for name in loaded if name.startswith("gpurules.") and not name.startswith("gpurules.commands")}
    assert ours == {"gpurules.cli", "gpurules.errors", "gpurules.messages"}


def test_version(gpurules: Run) -> None:
    assert gpurules("--version").stdout.split()[0] == "gpurules"


@pytest.mark.parametrize("args", [[], ["rules"]])
def test_without_a_command_comes_the_help_and_status_2(gpurules: Run, args: list[str]) -> None:
    done = gpurules(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: gpurules")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["diagnose", "--report", "nope.txt"], "gpurules: nope.txt: no such file or directory\n"),
        (["diagnose", "--facts", "."], "gpurules: .: is a directory\n"),
        (["diagnose", "--report", "-", "--facts", "-"], "gpurules: stdin (-) can be read only once\n"),
        (["diagnose", "--goal", "x"], "gpurules: Invalid value for '--goal': 'x' is not of the form NAME=VALUE\n"),
        (["diagnose", "--goal", "a=1", "--goal", "a=2"], "gpurules: Invalid value for '--goal': 'a' is given twice\n"),
        (["diagnose", "--today", "soon"], "gpurules: Invalid value for '--today':"),
        (["diagnose", "--format", "xml"], "gpurules: Invalid value for '--format':"),
        (["diagnose", "--knowledge", "none"], "gpurules: Invalid value for '--knowledge':"),
        (["diagnos"], "gpurules: No such command 'diagnos'."),
        (["diagnose", "--reprot", "x"], "gpurules: No such option"),
        (["why"], "gpurules: no report was kept here; run gpurules diagnose first, or name one with --in\n"),
        (["why", "--in", "nope.json"], "gpurules: nope.json: no such file or directory\n"),
        (
            ["why", "--in", "issue.txt"],
            "gpurules: issue.txt: this is no report of gpurules (schema gpurules.report/1)\n",
        ),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="the system's words for a missing file differ")
def test_what_cannot_be_done_is_one_line_and_status_2(gpurules: Run, args: list[str], message: str) -> None:
    done = gpurules(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(message)
    assert "Traceback" not in done.stderr


def test_a_false_alarm_is_told_in_the_language_of_the_reader(gpurules: Run) -> None:
    told = {lang: gpurules("diagnose", "-v", "--lang", lang, "--report", "issue.txt").stdout for lang in ("en", "zh")}
    assert "GB10 (sm_121) on sm_120 code" in told["en"]
    assert "GB10（sm_121）可运行 sm_120 代码" in told["zh"]
    assert "on sm_120 code" not in told["zh"]


def test_a_huge_file_is_refused_without_reading_it(gpurules: Run, tmp_path: Path) -> None:
    with open(tmp_path / "big.txt", "wb") as file:
        file.truncate(64 * 1024 * 1024 + 1)
    done = gpurules("diagnose", "--report", "big.txt")
    assert (done.returncode, done.stderr) == (2, "gpurules: big.txt: too large, the limit is 64 MiB\n")


def test_a_file_name_cannot_control_the_terminal(gpurules: Run) -> None:
    done = gpurules("diagnose", "--report", "a\x1b[2Jb")
    assert done.stderr == "gpurules: ab: no such file or directory\n"


def test_the_report_as_json(gpurules: Run) -> None:
    done = gpurules("diagnose", "--report", "issue.txt", "--format", "json", "--lang", "en")
    answer = json.loads(done.stdout)
    jsonschema.validate(answer, json_schema(), cls=jsonschema.Draft202012Validator)
    assert (done.returncode, answer["verdict"], answer["lang"]) == (1, "problems", "en")
    assert done.stderr == ""
    short = gpurules("diagnose", "--report", "issue.txt", "--json", "--no-save")
    assert json.loads(short.stdout) == answer


def test_json_is_ascii_where_stdout_is(gpurules: Run) -> None:
    done = gpurules("diagnose", "--report", "issue.txt", "--json", "--lang", "zh", PYTHONIOENCODING="ascii")
    assert done.stdout.isascii()
    assert json.loads(done.stdout)["lang"] == "zh"


def test_the_report_as_text(gpurules: Run) -> None:
    done = gpurules("diagnose", "--report", "issue.txt")
    assert done.stdout.startswith("PROBLEM  ")
    assert "\x1b" not in done.stdout
    assert gpurules("diagnose", "--report", "-", stdin=ISSUE).stdout.startswith("PROBLEM  ")


@pytest.mark.parametrize(
    ("environ", "args", "first"),
    [
        ({"LC_ALL": "zh_CN.UTF-8"}, [], "有问题"),
        ({"LC_ALL": "zh_CN.UTF-8"}, ["--lang", "en"], "PROBLEM"),
        ({"LC_ALL": "zh_CN.UTF-8", "PYTHONIOENCODING": "ascii"}, [], "PROBLEM"),
        ({"PYTHONIOENCODING": "ascii"}, ["--lang", "zh"], "有问题"),
    ],
)
def test_language(gpurules: Run, environ: dict[str, str], args: list[str], first: str) -> None:
    done = gpurules("diagnose", "--report", "issue.txt", "-q", *args, **environ)
    assert done.stdout.split()[0] == first


@pytest.mark.parametrize(("level", "status"), [("error", 1), ("warning", 1), ("never", 0)])
def test_fail_on(gpurules: Run, level: str, status: int) -> None:
    assert gpurules("diagnose", "--report", "issue.txt", "--fail-on", level).returncode == status


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")
def test_the_last_report_is_kept_for_why(gpurules: Run, tmp_path: Path) -> None:
    kept = tmp_path / "state" / "gpurules" / "last.json"
    gpurules("diagnose", "--report", "issue.txt", "--no-save")
    assert not kept.exists()
    shown = gpurules("diagnose", "--report", "issue.txt", "--json").stdout
    assert json.loads(kept.read_text(encoding="utf-8")) == json.loads(shown)
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    why = gpurules("why", "1")
    assert (why.returncode, why.stderr) == (0, "")
    assert why.stdout
    proofs: list[dict[str, Any]] = json.loads(gpurules("why", "1", "--in", str(kept), "--json").stdout)["proofs"]
    assert all(proof["text"] for proof in proofs)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that nobody can write to")
def test_not_being_able_to_keep_the_report_is_a_note_only(gpurules: Run) -> None:
    quiet = gpurules("diagnose", "--report", "issue.txt", XDG_STATE_HOME="/proc/none")
    assert (quiet.returncode, quiet.stderr) == (1, "")
    told = gpurules("diagnose", "--report", "issue.txt", "-v", XDG_STATE_HOME="/proc/none")
    assert told.stderr.startswith("gpurules: the report was not kept: ")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes end differently")
def test_a_reader_that_went_away_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "issue.txt").write_text(ISSUE, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "gpurules", "diagnose", "--report", "issue.txt", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(tmp_path),
    )
    assert process.stdout
    process.stdout.close()
    assert process.stderr
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=60) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "issue.txt").write_text(ISSUE, encoding="utf-8")
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gpurules", "diagnose", "--report", "issue.txt"],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env=environment(tmp_path),
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (2, b"gpurules: stdout: no space left on device\n")
