from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from gpurules.cli import cli

from .machines import machine


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reports") / "report.json"
    path.write_text(machine().to_json(), encoding="utf-8")
    return path


def run(saved: Path, *args: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, [*args, "--in", str(saved), "--lang", "en"])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    return done.exit_code, done.output


def document(saved: Path, *args: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(run(saved, *args, "--json")[1])
    return loaded


@pytest.mark.parametrize(
    ("args", "status", "begins"),
    [
        (("why", "1"), 0, "the build holds code for"),
        (("why", "1", "--all"), 0, "the build holds code for"),
        (("why", "1", "--format", "mermaid"), 0, "flowchart TD\n"),
        (("why-not", "torch==2.15.0"), 0, "torch 2.15.0 is not offered for this machine:"),
        (("what-if", "driver=580.95", "torch=2.15.0+cu130"), 0, "With NVIDIA driver 580.95, torch 2.15.0+cu130:"),
        (("how-to", "torch>=2.15"), 0, "Ways to torch>=2.15:"),
        (("how-to", "torch==9.9"), 1, "Nothing that may be changed brings about torch==9.9:"),
        (("why-not", "nonsense"), 1, "Error: no cause, fix, build, rule or fact type"),
        (("what-if", "driver"), 1, 'Error: "driver": write driver=VALUE'),
    ],
)
def test_commands(saved: Path, args: tuple[str, ...], status: int, begins: str) -> None:
    code, output = run(saved, *args)
    assert output.startswith(begins)
    assert code == status or (status and code)


def test_json_forms(saved: Path) -> None:
    why = document(saved, "why", "1")
    assert why["schema"] == "gpurules.why/1"
    assert why["proofs"][0]["kind"] == "rule"
    refused = document(saved, "why-not", "torch==2.15.0")
    assert refused["schema"] == "gpurules.why-not/1"
    assert refused["holds"] is False
    assert refused["reasons"][0]["kind"] == "struck"
    assert refused["changes"][0]["change"] == "driver=580"
    compared = document(saved, "what-if", "driver=580.95")
    assert compared["schema"] == "gpurules.what-if/1"
    assert compared["recommendation_after"] == "2.15.0+cu132"
    reached = document(saved, "how-to", "torch>=2.15")
    assert reached["schema"] == "gpurules.how-to/1"
    assert reached["ways"][0]["changes"][0]["change"] == "driver=580"
