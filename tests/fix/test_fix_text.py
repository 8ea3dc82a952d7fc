"""The plan as text and as scripts; a real shell runs what hostile values give, an own tokenizer reads PowerShell."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from gpurules.report.fix_text import by_hand, fix_document, render_fix, render_script
from gpurules.report.model import Fix, FixPlan, PlanStep, Report, Step
from gpurules.report.quoting import one_line, passes_powershell, posix, powershell
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .support import fact, machine, report

NASTY = (
    "; rm -rf ~", "$(touch canary)", "`touch canary`", "'; touch canary; '", '"; touch canary; "', "a\ntouch canary",
    "a\r\ntouch canary", "a\u2028touch canary", "a\u0085touch canary", "' | touch canary #", "& touch canary",
    "\u2019; New-Item canary; \u2019", "$env:HOME", "@(1)", "%PATH%", "!!", "\\", "~", "*", "-rf", "", " ",
    "\x1b[2J", "é中", "#>", "<# x", "--%", "a,b", "{a}", "\x00",
)  # fmt: skip
WORDS = st.lists(st.sampled_from(NASTY) | st.text(max_size=8), min_size=1, max_size=3).map("".join)
ARGV = st.lists(WORDS, min_size=1, max_size=4).map(lambda words: ("tool", *words))
SETTINGS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
BASH = shutil.which("bash")


def of(step: Step, **fields: object) -> Report:
    """A report whose plan is this one step."""
    usual = {"id": "x", "finding": "1", "kind": "cure", "action": "x", "title": "Do it", "verified": "simulated"}
    fix = Fix.model_validate({**usual, "steps": [step], **fields})
    planned = PlanStep(
        fix="x", finding="1", cause="c", because="why", stage="torch", verified="simulated", instance=fix
    )
    return Report(
        version="0.1.0",
        knowledge_version="1",
        verdict="problems",
        summary=fix.title,
        platform="linux",
        fix_plan=FixPlan(steps=(planned,)),
    )


def run(script: str, folder: Path) -> list[list[str]]:
    """What commands a shell runs for the script, each with its arguments; a person has nothing to say."""
    assert BASH is not None
    log, tools = folder / "log", folder / "bin"
    tools.mkdir(exist_ok=True)
    log.unlink(missing_ok=True)
    for name in ("tool", "pip", "python", "uv"):
        stub = tools / name
        if not stub.exists():
            stub.write_text(
                '#!/bin/sh\n{ printf "%s\\0" "${0##*/}" "$@"; printf "\\1\\0"; } >>"$LOG"\n', encoding="utf-8"
            )
            stub.chmod(0o755)
    script = script.replace("read -r _ </dev/tty", ":")
    done = subprocess.run(
        [BASH, "-c", script],
        cwd=folder,
        env={"PATH": os.fspath(tools), "LOG": os.fspath(log), "LC_ALL": "C.UTF-8", "HOME": os.fspath(folder)},
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    entries = log.read_bytes().decode("utf-8", "surrogateescape").split("\0\1\0")[:-1] if log.exists() else []
    assert sorted(p.name for p in folder.iterdir()) == (["bin", "log"] if log.exists() else ["bin"])
    return [entry.split("\0") for entry in entries]


@pytest.mark.skipif(BASH is None, reason="needs bash")
@SETTINGS
@given(argv=ARGV, title=WORDS, undo=WORDS)
def test_a_shell_gets_exactly_the_arguments(
    argv: tuple[str, ...], title: str, undo: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    made = of(Step(argv=argv, command=posix(argv)), title=title, undo=undo, risks=[title])
    ran = run(render_script(made, "bash"), tmp_path_factory.mktemp("run"))
    assert ran == ([list(argv)] if one_line(argv) else [])


@pytest.mark.skipif(BASH is None, reason="needs bash")
@SETTINGS
@given(text=WORDS)
def test_values_that_were_pasted_run_nothing(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Names and versions as a hostile report may state them, through the whole diagnosis."""
    facts = machine(f"NVIDIA GeForce RTX 5090{text}", driver="570.124.06", torch="2.6.0+cu124")
    facts += [
        fact("package", name="torchvision", version=f"0.21.0{text}", manager="pip"),
        fact("python", version="3.12.3", executable=text),
        fact("gpu", index=1, name="NVIDIA GeForce RTX 5090", vendor="nvidia", uuid=text),
    ]
    for command in run(render_script(report(facts), "bash"), tmp_path_factory.mktemp("run")):
        assert command[0] in ("pip", "python")
        assert command[1] in ("install", "-c")


# --- PowerShell -------------------------------------------------------------------------------------------------------

_TOKEN = re.compile("'((?:[^'\u2018\u2019\u201a\u201b]|(['\u2018\u2019\u201a\u201b])\\2)*)'|([A-Za-z0-9_.\\\\/:=+-]+)")
_FIXED = (
    "$ErrorActionPreference = 'Stop'",
    "function Wait-ByHand([string]$What) { Write-Host $What; [void](Read-Host) }",
    "if ($LASTEXITCODE -ne 0) { throw $LASTEXITCODE }",
)


def tokens(line: str) -> list[str]:
    """The words of a command line as PowerShell parts them; anything but plain and single-quoted words is refused."""
    found, at = [], 2 if line.startswith("& '") else 0
    while at < len(line):
        match = _TOKEN.match(line, at)
        assert match, line[at:]
        word = (
            match.group(3)
            if match.group(3) is not None
            else re.sub("(['\u2018\u2019\u201a\u201b])\\1", r"\1", match.group(1))
        )
        found.append(word)
        at = match.end()
        assert at == len(line) or line[at] == " ", line[at:]
        at += 1
    return found


@SETTINGS
@given(argv=ARGV, title=WORDS)
def test_powershell_gets_exactly_the_arguments(argv: tuple[str, ...], title: str) -> None:
    script = render_script(of(Step(argv=argv, command=posix(argv)), title=title, risks=[title]), "powershell")
    lines = re.split("[\r\n\u0085\u2028\u2029]", script.removeprefix("\ufeff"))
    commands = [tokens(line) for line in lines if line and not line.startswith("#") and line not in _FIXED]
    if one_line(argv) and passes_powershell(argv):
        assert commands == [list(argv)]
    else:
        assert [c[0] for c in commands] == ["Wait-ByHand"]


def test_powershell_quotes_by_its_own_rules() -> None:
    assert powershell(["pip", "install", "torch==2.13.0+cu129"]) == "pip install torch==2.13.0+cu129"
    assert powershell(["C:\\Program Files\\x.exe", "it's"]) == "& 'C:\\Program Files\\x.exe' 'it''s'"
    assert powershell(["a,b", "@x", "$y"]) == "& 'a,b' '@x' '$y'"


# --- what is in them --------------------------------------------------------------------------------------------------


def both() -> Report:
    return report([*machine("NVIDIA GeForce RTX 5090", driver="550.54.15", torch="2.6.0+cu124")])


def test_the_script_says_why_and_how_to_go_back() -> None:
    lines = render_script(both(), "bash").splitlines()
    assert lines[:2] == ["#!/usr/bin/env bash", "set -eu"]
    assert "# because: The driver does not know GeForce RTX 5090" in lines
    assert "# risk: Other packages may pin another torch; pip names them." in lines
    assert "# undo: Install the former driver version again." in lines
    assert "pip install torch==2.15.0+cu132 --index-url https://download.pytorch.org/whl/cu132" in lines
    assert lines[-1] == "python -c \"import torch; print(torch.ones(1, device='cuda'))\""


def test_root_is_marked_and_a_sentence_waits_for_a_hand() -> None:
    lines = render_script(both(), "bash").splitlines()
    assert "# needs root" in lines
    assert any(line.startswith("by_hand 'By hand: 1. Install driver branch 620") for line in lines)


@pytest.mark.parametrize(
    "step",
    [
        Step(text="Put the name in place of IMAGE.", argv=("docker", "run", "IMAGE"), command="docker run IMAGE"),
        Step(argv=("sudo", "reboot"), command="sudo reboot", needs_root=True, reversible=False),
        Step(text="Look inside."),
        Step(argv=("export", "A=1"), command="export A=1"),
    ],
)
def test_what_needs_a_hand_is_never_run(step: Step) -> None:
    assert by_hand(step)
    for shell in ("bash", "powershell"):
        lines = render_script(of(step), shell).splitlines()
        ran = [
            line for line in lines if not line.startswith("#") and line.split(" ")[0] in ("docker", "sudo", "export")
        ]
        assert ran == []


def test_a_check_that_names_a_placeholder_is_a_comment() -> None:
    step = Step(text="Put its name in place of CONTAINER.", argv=("docker", "restart", "CONTAINER"), command="x")
    argv = ("docker", "exec", "CONTAINER", "nvidia-smi")
    lines = render_script(of(step, verify=posix(argv), verify_argv=argv), "bash").splitlines()
    assert lines[-1] == "# verify: docker exec CONTAINER nvidia-smi"


def test_the_text_shows_each_step_with_reason_command_and_check() -> None:
    text = render_fix(both())
    assert text.startswith("2 steps, in this order: simulated as a whole")
    assert "because   The driver does not know GeForce RTX 5090" in text
    assert "run       pip install torch==2.15.0+cu132 \\\n" in text
    assert "verify    python -c" in text


def test_what_cannot_be_fixed_is_said_in_every_form() -> None:
    found = report(machine("NVIDIA GeForce RTX 5090", "Tesla P100-PCIE-16GB", driver="570.124.06", torch="2.6.0+cu124"))
    assert "No fix: The installed torch has no code" in render_fix(found)
    assert "# No fix: The installed torch has no code" in render_script(found, "bash")
    assert [item["finding"] for item in fix_document(found)["left"]] == ["1"]


def test_a_report_without_a_plan_gives_a_script_that_does_nothing() -> None:
    found = report(machine("NVIDIA GeForce RTX 4090", driver="580.95.05", torch="2.13.0+cu129"))
    assert render_fix(found) == "There is nothing to fix here, or no fix is known.\n"
    lines = render_script(found, "bash").splitlines()
    assert [line for line in lines if not line.startswith(("#", "by_hand()"))] == ["set -eu"]


def test_a_chinese_powershell_script_is_marked_as_utf_8() -> None:
    found = report(machine("NVIDIA GeForce RTX 5090", driver="570.124.06", torch="2.6.0+cu124"), "zh")
    assert render_script(found, "powershell").startswith("\ufeff$ErrorActionPreference")
    assert not render_script(found, "bash").startswith("\ufeff")


def test_under_wsl_the_driver_belongs_to_windows() -> None:
    facts = machine("NVIDIA GeForce RTX 5090", driver="552.44", torch="2.6.0+cu124")
    facts[0] = fact("os", family="linux", machine="x86_64", wsl=True)
    script = render_script(report(facts), "bash")
    assert "# by hand: On the Windows side install" in script
    assert "package manager" not in script
