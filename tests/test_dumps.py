"""The readers against a corpus of genuine machine output (a folder `dumps` of text and YAML pairs).

The corpus is not part of this repository: GPURULES_CORPUS names the folder above it, or it lies beside the checkout as
`shared`. Without it the tests are skipped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpurules.facts import Fact
from gpurules.probes.readers import read_text
from gpurules.probes.readers.common import package_name
from gpurules.probes.readers.signatures import Signatures

from . import dump_keys
from .dump_keys import MISSING, field, rows

ROOT = Path(__file__).resolve().parent.parent
CORPUS = Path(os.environ.get("GPURULES_CORPUS", ROOT.parent / "shared")) / "dumps"
NAMES = sorted(path.stem for path in CORPUS.glob("*.yaml"))
TARGET = 0.97

# Expected paths that no fact states, each with the reason.
SKIPPED = {
    **dump_keys.SKIPPED,
    "torch.cudnn_build": "the cuDNN in a conda build string is kept there (package.build), not as a fact of torch",
}
# Forbidden facts in words, or of things that readers never emit: nothing to look at.
WORDS = {
    "cause", "cause line", "vendor", "nic link", "fault", "incidents.count", "topology merged", "nic NIC0 name",
    "topology.links from the legend", "driver.installed", "open_kernel_module", "processes[].count", "errors[].cuda",
}  # fmt: skip

SINGLE = {
    "torch.version": ("torch", "version"),
    "torch.cuda_build": ("torch", "cuda"),
    "os": ("os", "name"),
    "kernel": ("kernel", "release"),
    "driver.version": ("driver", "version"),
    "driver.cuda_max": ("driver", "cuda_max"),
    "cuda_toolkit_found": ("cuda_toolkit", "version"),
    "cuda_toolkit.release": ("cuda_toolkit", "release"),
    "nccl.transport": ("nccl", "transport"),
    "nccl.interface": ("nccl", "interface"),
}

pytestmark = pytest.mark.skipif(not NAMES, reason="no corpus of dumps beside the checkout")


@cache
def signatures() -> Signatures:
    catalog = yaml.safe_load((ROOT / "knowledge" / "facts" / "errors.yaml").read_text("utf-8"))
    return Signatures.compile(catalog["signatures"])


@cache
def facts_of(name: str) -> tuple[Fact, ...]:
    return read_text((CORPUS / f"{name}.txt").read_bytes(), f"{name}.txt", signatures()).facts


@cache
def case(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((CORPUS / f"{name}.yaml").read_text("utf-8"))
    return loaded


def document(facts: Sequence[Fact]) -> dict[str, Any]:
    """What the facts say, under the names of the corpus."""
    toolkit = {name: field(facts, "cuda_toolkit", name) for name in ("release", "version", "text")}
    found = {
        "torch": {
            "version": field(facts, "torch", "version"),
            "cuda_build": _cuda_build(facts),
            "hip_build": field(facts, "torch", "hip"),
            **{name: field(facts, "torch", name) for name in ("debug", "cuda_available", "xpu_available")},
        },
        "os": field(facts, "os", "name"),
        "libc": field(facts, "libc", "text"),
        "gcc": _gcc(facts),
        "python": {"version": field(facts, "python", "version")},
        "cuda_toolkit_found": toolkit["version"],
        "cuda_toolkit": {"release": toolkit["release"], "version": toolkit["text"], "": toolkit["version"]},
        "cudnn_candidates": [row["path"] for row in rows(facts, "cudnn_file")],
        "packages": _packages(facts, "pip") or _packages(facts, "conda"),
        "conda_packages": _packages(facts, "conda"),
        "vllm": {name: field(facts, "vllm", name) for name in ("version", "cuda_archs")},
        "mpi": field(facts, "mpi", "version"),
        "source_file": field(facts, "error", "source_file"),
        "errors": rows(facts, "error"),
    }
    others = (*dump_keys.SUBTREES, *dump_keys.PATHS)
    for path in others:
        value = dump_keys.value(facts, path)
        target, last = found, path
        if "." in path:
            first, last = path.split(".", 1)
            target = found.setdefault(first, {})
        if isinstance(target, dict):
            target.setdefault(last, value)
    return found


def _cuda_build(facts: Sequence[Fact]) -> Any:
    stated = field(facts, "torch", "cuda")
    if stated is not MISSING or rows(facts, "torch"):
        return stated
    # A conda list says it in pytorch's build string only.
    match = re.search(r"_cuda([0-9.]+)_", str(_pytorch_build(facts)))
    return match.group(1) if match else MISSING


def _pytorch_build(facts: Sequence[Fact]) -> str:
    return next((str(row.get("build")) for row in rows(facts, "package") if row["name"] == "pytorch"), "")


def _gcc(facts: Sequence[Fact]) -> Any:
    return next((row["text"] for row in rows(facts, "compiler") if row["name"] == "gcc"), MISSING)


def _packages(facts: Sequence[Fact], manager: str) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in rows(facts, "package"):
        if row.get("manager") == manager and "version" in row:
            found.setdefault(str(row["name"]), []).append(row["version"])
    return found


def leaves(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every scalar of an expectation with its path; an expected error or device is one leaf for each field."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, (*path, str(key)))
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from leaves(value, (*path, str(number)))
    else:
        yield path, node


def met(found: dict[str, Any], expected: dict[str, Any], path: tuple[str, ...], value: Any) -> bool:
    """Whether our facts say what one scalar of the expectation says."""
    first = path[0]
    if first == "errors":
        entry = expected["errors"][int(path[1])]
        return any(_same_error(row, entry, path[2:], value) for row in found["errors"])
    if first in ("packages", "conda_packages"):
        return value in found[first].get(package_name(path[1]), ())
    if first in ("cudnn_candidates", "bus_ids", "modules") or path[:2] == ("nccl", "net_devices"):
        listed = found["nccl"]["net_devices"] if first == "nccl" else found[first]
        return listed is not MISSING and value in listed
    if first == "pci":
        wanted = expected["pci"][int(path[1])]
        return any(all(row.get(key) == val for key, val in wanted.items()) for row in found["pci"])
    if first == "cuda_toolkit" and len(path) == 1:
        return bool(found["cuda_toolkit"][""] == value)
    return bool(_at(found, path) == value)


def _same_error(row: dict[str, Any], entry: Any, rest: tuple[str, ...], value: Any) -> bool:
    line = entry["line"] if isinstance(entry, dict) else entry
    text = str(row["text"])
    if line not in text and text not in line:
        return False
    return not rest or rest[0] == "line" or row.get(rest[0]) == value


def _at(node: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        if isinstance(node, dict):
            node = node.get(step, MISSING)
        elif isinstance(node, list) and step.isdigit() and int(step) < len(node):
            node = node[int(step)]
        else:
            return MISSING
    return node


def skipped(path: tuple[str, ...]) -> bool:
    return any(".".join(path).startswith(prefix) for prefix in SKIPPED)


def every(facts: Sequence[Fact]) -> dict[str, list[Any]]:
    """All values of what a machine has once, so that a wrong second value cannot hide behind the first."""
    return {path: [row[name] for row in rows(facts, kind) if name in row] for path, (kind, name) in SINGLE.items()}


def violated(found: dict[str, Any], single: dict[str, list[Any]], entry: dict[str, Any]) -> bool:
    """Whether our facts contain what a careless reader would invent."""
    fact = str(entry["fact"])
    if fact in WORDS:
        return False
    if fact == "gpus.count":
        return bool(len(found["gpus"]) == entry["value"])
    values = single.get(fact) or [value for value in _matching(found, fact) if value is not MISSING]
    if "value" not in entry:
        return bool(values)
    return any(str(value) == str(entry["value"]) for value in _flat(values))


def _matching(found: dict[str, Any], fact: str) -> list[Any]:
    """The values at a path in which `[]` stands for any place of a list."""
    nodes: list[Any] = [found]
    for step in re.findall(r"\[\d*\]|[^.\[\]]+(?:\.\d[^\[]*)?", fact):
        inner: list[Any] = []
        for node in nodes:
            if step.startswith("["):
                chosen = node if isinstance(node, list) else []
                inner.extend(chosen[int(step[1:-1]) :][:1] if step[1:-1] else chosen)
            elif isinstance(node, dict):
                inner.append(node.get(step, MISSING))
        nodes = [node for node in inner if node is not MISSING]
    return [node for node in nodes if not isinstance(node, dict | list) or list(_flat([node]))]


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, dict):
            yield from _flat(list(value.values()))
        elif isinstance(value, list | tuple):
            yield from _flat(value)
        elif value is not MISSING:
            yield value


def score(name: str) -> tuple[list[str], int]:
    """Unmet paths of a dump, and how many were looked at."""
    expected = case(name)["expected"]
    found = document(facts_of(name))
    checked = [(path, value) for path, value in leaves(expected) if not skipped(path)]
    missed = [f"{'.'.join(path)} = {value!r}" for path, value in checked if not met(found, expected, path, value)]
    return missed, len(checked)


@pytest.mark.parametrize("name", NAMES)
def test_no_invented_fact(name: str) -> None:
    found, single = document(facts_of(name)), every(facts_of(name))
    assert [entry["fact"] for entry in case(name).get("must_not") or () if violated(found, single, entry)] == []


@pytest.mark.parametrize("name", NAMES)
def test_dump_is_read(name: str) -> None:
    missed, looked_at = score(name)
    assert len(missed) <= 0.2 * looked_at, missed


def test_coverage_of_the_corpus(capsys: pytest.CaptureFixture[str]) -> None:
    results = {name: score(name) for name in NAMES}
    total = sum(looked_at for _, looked_at in results.values())
    missed = [f"{name}: {path}" for name, (paths, _) in results.items() for path in paths]
    with capsys.disabled():
        print(f"\ndumps: {total - len(missed)} of {total} expected values read", *missed, sep="\n  ")
    assert len(missed) <= (1 - TARGET) * total
