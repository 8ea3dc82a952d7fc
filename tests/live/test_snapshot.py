"""Snapshots: raw outputs beside the facts, and the same conclusions when they are read back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from gpurules import pipeline
from gpurules.cli import cli
from gpurules.probes.live import collect
from gpurules.report.snapshot_text import snapshot_json, snapshot_yaml

Build = Callable[..., Path]

FILES: dict[str, str | Path] = {
    "proc/sys/kernel/osrelease": "6.8.0-52-generic\n",
    "proc/sys/kernel/arch": "x86_64\n",
    "proc/modules": "nouveau 2 0 - Live 0x0\n",
    "proc/self/mountinfo": "22 1 0:40 / / rw - nfs4 private-server:/x rw\n",
    "etc/os-release": "ID=ubuntu\nVERSION_ID=24.04\n",
    "sys/bus/pci/devices/0000:01:00.0/class": "0x030000",
    "sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de",
    "sys/bus/pci/devices/0000:01:00.0/device": "0x2684",
    "var/lib/dkms/nvidia/570.133.07/source": "",
    "lib/modules/6.8.0-52-generic/modules.dep": "",
}
PROFILES = Path(__file__).parents[1] / "fakes" / "profiles"
MACHINES = Path(__file__).parents[1] / "machines"
ERROR = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."


def conclusions(inputs: pipeline.Inputs) -> object:
    report = pipeline.diagnose(inputs)
    findings = [(f.cause, f.rule, f.title, f.severity) for f in report.findings]
    return report.verdict, findings, [(fix.id, fix.title) for fix in report.fixes]


@pytest.mark.parametrize("render", [snapshot_yaml, snapshot_json])
@pytest.mark.parametrize("redact", [True, False])
@pytest.mark.parametrize("profile", sorted(path.stem for path in PROFILES.glob("*.env")))
def test_replay_concludes_the_same(
    build: Build,
    nvml_environ: Callable[..., dict[str, str]],
    profile: str,
    redact: bool,
    render: Callable[..., str],
) -> None:
    root = build(FILES)
    environ = nvml_environ(profile) | {"LD_LIBRARY_PATH_X": "1", "MASTER_ADDR": "node7.internal"}
    saved = render(pipeline.snapshot(pipeline.Inputs(), redact=redact, root=root, environ=environ))
    report = [("error.txt", ERROR.encode())]
    live = pipeline.Inputs(given=collect(root, environ=environ), reports=report)
    replayed = pipeline.Inputs(facts=[("snapshot.yaml", saved.encode())], reports=report)
    assert conclusions(live) == conclusions(replayed)
    assert ("node7" in saved) is not redact


@pytest.mark.parametrize("name", sorted(path.stem for path in MACHINES.glob("*.txt")))
def test_a_pasted_machine_read_back_from_its_facts(name: str) -> None:
    """The facts of a report, written as a facts file, lead to the same conclusions as the report."""
    inputs = pipeline.Inputs(reports=[(f"{name}.txt", (MACHINES / f"{name}.txt").read_bytes())])
    facts = [{fact.type: dict(fact.fields)} for fact in pipeline.read(inputs)]
    saved = yaml.safe_dump({"facts": facts}, allow_unicode=True)
    assert conclusions(inputs) == conclusions(pipeline.Inputs(facts=[("facts.yaml", saved.encode())]))


def test_raw_outputs_are_kept_without_names(build: Build) -> None:
    snapshot = pipeline.snapshot(pipeline.Inputs(), root=build(FILES), environ={"PATH": "/nowhere"})
    document = yaml.safe_load(snapshot_yaml(snapshot))
    files = {entry["path"]: entry["text"] for entry in document["raw"]["files"]}
    assert files["/proc/modules"] == "nouveau 2 0 - Live 0x0"
    assert "/proc/self/mountinfo" not in files
    assert "private-server" not in json.dumps(document)
    assert {tuple(command["argv"][:1]) for command in document["raw"]["commands"]} >= {("gcc",), ("nvidia-smi",)}


def test_saved_by_the_command(tmp_path: Path) -> None:
    target = tmp_path / "machine.yaml"
    assert CliRunner().invoke(cli, ["probe", "--save", str(target)]).exit_code == 0
    assert set(yaml.safe_load(target.read_text(encoding="utf-8"))) == {"schema", "facts", "raw"}
    result = CliRunner().invoke(cli, ["diagnose", "--no-save", "--facts", str(target), "--json"])
    assert json.loads(result.output)["schema"].startswith("gpurules.report/")
