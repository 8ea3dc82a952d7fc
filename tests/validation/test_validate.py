"""`gpurules validate` as a user meets it: with stub torches everywhere, with a real one where there is one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from gpurules.report.schema import json_schema

from .conftest import PASSING

Stub = Callable[[str], dict[str, str]]


def gpurules(folder: Path, environ: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in environ.items() if name not in ("VIRTUAL_ENV", "CONDA_PREFIX")}
    return subprocess.run(
        [sys.executable, "-m", "gpurules", *args], capture_output=True, encoding="utf-8", cwd=folder, timeout=300,
        env={**kept, "XDG_STATE_HOME": str(folder / "state"), "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip


def document(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.stderr == ""
    read: dict[str, Any] = json.loads(done.stdout)
    jsonschema.validate(read, json_schema("validation-1.json"))
    return read


def test_what_comes_out_as_predicted_agrees(tmp_path: Path, stub: Stub) -> None:
    done = gpurules(tmp_path, stub(PASSING), "validate", "--device", "cpu", "--only", "available", "--json")
    read = document(done)
    assert done.returncode == 0
    assert (read["verdict"], read["device"], read["torch"], read["findings"]) == ("agrees", "cpu", "2.13.0+cpu", [])
    (row,) = read["checks"]
    assert row.pop("seconds") < 60
    assert row == {
        "check": "available",
        "title": "device answers",
        "predicted": "passed",
        "observed": "passed",
        "agrees": True,
        "because": "torch 2.13.0+cpu is installed, and available on the CPU needs no driver and no code for a GPU",
        "rule": "predict-on-cpu",
        "measured": {"threads": 2},
    }


def test_a_disagreement_is_a_finding_that_why_explains(tmp_path: Path, stub: Stub) -> None:
    environ = stub("os._exit(3)")
    one, other = ("--only", "available"), ("--only", "kernel")
    done = gpurules(tmp_path, environ, "validate", "--device", "cpu", *one, *other, "--json")
    read = document(done)
    assert done.returncode == 1
    assert read["verdict"] == "disagrees"
    assert [(row["observed"], row.get("agrees")) for row in read["checks"]] == [("crashed", False), ("skipped", None)]
    (finding,) = read["findings"]
    assert (finding["cause"], finding["subject"], finding["title"]) == (
        "validation_failed", "available", "available was to pass on cpu, and it did not",
    )  # fmt: skip
    assert [fix["action"] for fix in read["fixes"]] == ["report_disagreement"]
    proof = gpurules(tmp_path, environ, "why", "validation_failed")
    assert proof.returncode == 0
    assert "[check-fails-against-prediction]" in proof.stdout
    assert "[predict-on-cpu]" in proof.stdout
    text = gpurules(tmp_path, environ, "validate", "--device", "cpu", "--only", "available", "--lang", "en")
    assert text.stdout.splitlines()[2:5] == [
        "  ✗ device answers  crashed         predicted: passed",
        "      exit status 3",
        "      torch 2.13.0+cpu is installed, and available on the CPU needs no driver",
    ]
    assert text.stdout.splitlines()[-1].endswith("gpurules validate --json")


def test_a_failure_that_was_predicted_agrees_and_counts_as_failure(tmp_path: Path, stub: Stub) -> None:
    body = "class cuda:\n    def init():\n        raise AssertionError('Torch not compiled with CUDA enabled')"
    done = gpurules(tmp_path, stub(body), "validate", "--device", "cuda:1", "--only", "available", "--json")
    read = document(done)
    assert (done.returncode, read["verdict"], read["findings"]) == (1, "agrees", [])
    assert read["checks"][0]["rule"] == "predict-cpu-build-has-no-cuda"


def test_a_check_that_passes_against_the_rules_refutes_them(tmp_path: Path, stub: Stub) -> None:
    body = (
        "class device:\n    index = 0\n    def __init__(self, name): pass\n"
        "class cuda:\n    init = synchronize = lambda *a: None\n    device_count = lambda: 1\n"
        "    def get_device_properties(i):\n        class P: name = 'card'; total_memory = 1 << 30\n        return P\n"
    )
    done = gpurules(tmp_path, stub(body), "validate", "--device", "cuda", "--only", "available", "--json")
    read = document(done)
    assert (done.returncode, read["verdict"]) == (1, "disagrees")
    assert [f["cause"] for f in read["findings"]] == ["prediction_refuted"]
    assert read["checks"][0]["measured"] == {"name": "card", "total_mib": 1024}


def test_more_memory_than_expected_is_a_finding(tmp_path: Path, stub: Stub) -> None:
    line = '{"state": "passed", "measured": {"peak_mib": 9000}}'
    said = f"if 'kernel' in sys.argv[1]:\n    print('{line}', flush=True)\n    os._exit(0)\n"
    done = gpurules(
        tmp_path,
        stub(said + PASSING),
        "validate",
        "--device",
        "cpu",
        "--only",
        "available",
        "--only",
        "kernel",
        "--json",
    )
    read = document(done)
    assert (done.returncode, read["verdict"]) == (1, "disagrees")
    assert [(row["check"], row.get("predicted_mib"), row["agrees"]) for row in read["checks"]] == [
        ("available", None, True),
        ("kernel", 257, False),
    ]
    assert [(f["cause"], f["rule"]) for f in read["findings"]] == [("prediction_refuted", "check-takes-more-memory")]


def test_progress_is_told_on_stderr_where_it_is_wanted(tmp_path: Path, stub: Stub) -> None:
    done = gpurules(tmp_path, stub(PASSING), "validate", "--device", "cpu", "--only", "available", "-v")
    first, second = done.stderr.splitlines()
    assert first == "device answers ..."
    assert second.startswith("device answers: passed (")


def test_diagnose_runs_the_checks_where_asked(tmp_path: Path, stub: Stub) -> None:
    done = gpurules(tmp_path, stub("os._exit(3)"), "diagnose", "--validate", "--json", "--fail-on", "never")
    read = json.loads(done.stdout)
    assert done.returncode == 0
    states = {f["fields"]["check"]: f["fields"]["state"] for f in read["facts"] if f["type"] == "validation_check"}
    assert len(states) > 10
    assert states["available"] == "crashed"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["validate", "--device", "gpu"], 'gpurules: no device "gpu": there are auto, cpu, cuda and cuda:N'),
        (["validate", "--only", "kernal"], 'gpurules: no check "kernal"; did you mean "kernel"?; there are:'),
        (["diagnose", "--validate", "--question", "x"], "gpurules: --validate runs checks on this machine"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(tmp_path: Path, args: list[str], message: str) -> None:
    done = gpurules(tmp_path, dict(os.environ), *args)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(message)


@pytest.mark.torch_needed
def test_a_real_torch_agrees_on_every_check_on_the_cpu(tmp_path: Path, torch_python: str) -> None:
    args = ["validate", "--device", "cpu", "--python", torch_python, "--time", "240", "--json"]
    done = gpurules(tmp_path, dict(os.environ), *args)
    read = document(done)
    rows = {row["check"]: (row["observed"], row.get("agrees")) for row in read["checks"]}
    # A CPU build has no targets for GPUs; torch.compile needs a compiler and the headers of Python.
    optional = {"arch_list", "compile"}
    assert {name: row for name, row in rows.items() if row != ("passed", True)}.keys() <= optional
    assert {rows[name] for name in optional} <= {("passed", True), ("skipped", None)}
    assert (done.returncode, read["verdict"], read["findings"]) == (0, "agrees", [])
    several = [row["measured"] for row in read["checks"] if row["check"] in ("peer_copy", "topology", "all_reduce")]
    assert several == [{"ranks": 2, "backend": "gloo"}] * 3
