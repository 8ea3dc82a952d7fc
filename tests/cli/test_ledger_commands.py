"""The commands about the guides' claims and about own knowledge, as a user meets them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[2]


def run(*args: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "XDG_STATE_HOME": str(cwd / "state"), "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-m", "gpurules", *args]
    return subprocess.run(command, input=stdin, capture_output=True, encoding="utf-8", cwd=cwd, env=environ, timeout=60)


def document(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_coverage_prints_every_claim_and_ends_with_0(tmp_path: Path) -> None:
    done = run("rules", "coverage", cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert (done.returncode, len(lines)) == (0, 231)
    assert lines[-1].startswith("230 of 230 claims carried, 0 open")
    assert "G0-CORE-02   correct    row:gpu_model GeForce GTX 1650" in lines
    told = document(run("rules", "coverage", "--json", "--lang", "zh", cwd=tmp_path))
    assert (told["ok"], told["counts"]) == (True, {"claims": 230, "carried": 230, "open": 0})
    assert told["claims"][0]["topic"] == "硬件选型"


def test_coverage_fails_on_a_claim_that_is_not_in_the_ledger(tmp_path: Path) -> None:
    done = run("rules", "coverage", "-q", "--claims", "-", cwd=tmp_path, stdin="- id: G0-OS-01\n- id: G7-NEW-01\n")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "guidance.yaml: G7-NEW-01 is missing"
    assert run("rules", "coverage", "--claims", "-", cwd=tmp_path, stdin="{}").returncode == 2


def test_errata_list_what_the_guides_say_and_what_holds(tmp_path: Path) -> None:
    told = document(run("errata", "--json", cwd=tmp_path))
    assert len(told["errata"]) == 58
    assert all(e["says"] and e["right"] and e["sources"] for e in told["errata"])
    done = run("errata", "G2-CMP-03", "--lang", "zh", cwd=tmp_path)
    assert done.stdout.splitlines()[:3] == [
        "G2-CMP-03",
        "  指南：RTX 4090 的功耗比 RTX 3090 高 20%。",
        "  实际：450 W 对 350 W，高 29%。",
    ]
    assert run("errata", "G2-CMP-33", cwd=tmp_path).returncode == 2


def test_update_tells_faults_and_changes_nothing(tmp_path: Path) -> None:
    text = (CHECKOUT / "knowledge" / "facts" / "mirrors.yaml").read_text(encoding="utf-8")
    done = run("rules", "update", "--check", "-", cwd=tmp_path, stdin=text.replace("how: find_links", "how: magic"))
    assert done.returncode == 1
    assert "facts/mirrors.yaml" in done.stdout
    done = run("rules", "update", "--check", "-", cwd=tmp_path, stdin=text)
    assert (done.returncode, done.stdout) == (0, "mirrors: of 2026-11-30, in place of 2026-11-30\n")


def test_new_writes_a_rule_once(tmp_path: Path) -> None:
    args = ["rules", "new", "mine", "--area", "torch", "--when", "os.family=linux", "--cause", "cpu_only_wheel"]
    args += ["--source", "https://pytorch.org/", "--into", "own"]
    done = run(*args, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "own/rules/torch/mine.yaml\n")
    assert run("rules", "test", "mine", "--knowledge", "own", cwd=tmp_path).stdout == "3 of 3 examples as expected\n"
    assert run(*args, cwd=tmp_path).returncode == 2


def test_a_mirror_is_named_in_the_script_but_not_run(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text("gpus: RTX 5090\ndriver: 580.95\nos: Linux x86_64\ntorch: 2.6.0+cu124\n")
    run("diagnose", "--facts", "m.yaml", cwd=tmp_path)
    script = run("fix", "--format", "bash", "--mirror", "nju", cwd=tmp_path).stdout.splitlines()
    assert [line for line in script if "mirror.nju.edu.cn" in line and not line.startswith("# ")] == []
    assert any(
        line.startswith("# ") and "--index-url https://mirror.nju.edu.cn/pytorch/whl/" in line for line in script
    )
