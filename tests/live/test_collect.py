"""All live probes together."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpurules.knowledge
import pytest
import yaml
from gpurules.facts import Fact
from gpurules.probes.live import collect

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads procfs")

Build = Callable[..., Path]
Vocabulary = dict[str, Any]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    text = Path(gpurules.knowledge.__file__).with_name("vocabulary.yaml").read_text(encoding="utf-8")
    loaded: Vocabulary = yaml.safe_load(text)
    return loaded


def check(facts: list[Fact], vocabulary: Vocabulary) -> None:
    """Every fact is in the vocabulary, well typed, and says where it was read."""
    python_types = {"int": int, "bool": bool, "sm": int}
    for fact in facts:
        fields = vocabulary["types"][fact.type]["fields"]
        for name, value in fact.fields.items():
            declared = fields[name]
            kind = str(declared["type"])
            assert type(value) is python_types.get(kind, str), (fact.type, name, value)
            assert kind != "enum" or value in declared["values"], (fact.type, name, value)
        (place,) = fact.provenance
        assert place.kind == "probe"
        assert place.source


def test_this_machine(vocabulary: Vocabulary) -> None:
    begin = time.monotonic()
    facts = collect()
    assert time.monotonic() - begin < 5.0
    check(facts, vocabulary)
    kinds = {fact.type for fact in facts}
    assert {"os", "kernel", "cpu", "memory", "container", "nvml", "python", "package", "coverage"} <= kinds
    assert "torch" not in sys.modules


@pytest.mark.parametrize("profile", ["rtx3060", "two4090", "eight_h100", "gb10", "none"])
def test_fake_machines(
    nvml_environ: Callable[..., dict[str, str]], build: Build, vocabulary: Vocabulary, profile: str
) -> None:
    root = build(
        {"proc/sys/kernel/osrelease": "6.8.0-51-generic", "proc/modules": "", "sys/bus/pci/devices/x/class": ""}
    )
    facts = collect(root, environ=nvml_environ(profile))
    check(facts, vocabulary)
    failures = {fact.get("probe"): fact.get("reason") for fact in facts if fact.type == "probe_failure"}
    assert failures == {"cpu": "missing", "container": "missing", "device_nodes": "missing"}
    assert [fact.get("state") for fact in facts if fact.type == "nvml"] == ["ok"]


def test_same_order_each_time(build: Build) -> None:
    root = build({"etc/os-release": "ID=arch\n", "dev/null": ""})
    first, second = (collect(root, environ={"RANK": "0"}) for _ in range(2))
    assert [fact.key() for fact in first] == [fact.key() for fact in second]


def test_time_limit_of_all_probes(program: Callable[[str, str], Path], vocabulary: Vocabulary) -> None:
    folder = program("python3", "sleep 30")
    program("nvidia-smi", "sleep 30")
    begin = time.monotonic()
    facts = collect(python=os.fspath(folder / "python3"), environ={"PATH": f"{folder}:/usr/bin:/bin"}, limit_s=1.0)
    assert time.monotonic() - begin < 2.0
    check(facts, vocabulary)
    failures = {fact.get("probe"): fact.get("reason") for fact in facts if fact.type == "probe_failure"}
    assert failures["python"] == "timeout"
    states = [fact.get("state") for fact in facts if fact.type == "nvidia_smi"]
    assert states in (["timeout"], [])


def test_unreadable_root_never_raises(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    facts = collect(tmp_path / "file", environ={})
    assert {fact.get("probe") for fact in facts if fact.type == "probe_failure"} >= {"host", "cpu", "container", "pci"}
