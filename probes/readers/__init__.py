"""Readers of pasted text: bytes in, facts out. One module a layout; every reader scans all lines for its own.

May live here: the dispatcher. Must not: layouts, rules. Knowledge (signatures) is passed in as data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...facts import Fact
from . import clean as cleaning
from . import (
    collect_env,
    environment,
    errors,
    kernel_log,
    lsmod,
    lspci,
    nccl_log,
    nvidia_smi,
    nvidia_smi_q,
    packages,
    rocm,
    topology,
    torch_shell,
)
from .common import merge_equal
from .line import Line
from .signatures import Signatures

_READERS: tuple[tuple[str, Callable[[Sequence[Line], str], list[Fact]]], ...] = (
    ("collect_env", collect_env.read),
    ("nvidia_smi", nvidia_smi.read),
    ("nvidia_smi_q", nvidia_smi_q.read),
    ("topology", topology.read),
    ("kernel_log", kernel_log.read),
    ("lspci", lspci.read),
    ("lsmod", lsmod.read),
    ("nccl_log", nccl_log.read),
    ("rocm", rocm.read),
    ("packages", packages.read),
    ("environment", environment.read),
    ("torch_shell", torch_shell.read),
)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text says. `layouts`: which readers found something; `refused`: why nothing was read."""

    facts: tuple[Fact, ...]
    layouts: tuple[str, ...]
    truncated: bool = False
    refused: str | None = None


def read_text(data: bytes | str, source: str, signatures: Signatures) -> Reading:
    """Facts of a pasted text, recognised by content; one text may mix several outputs."""
    cleaned = cleaning.clean(data)
    if cleaned.refused:
        return Reading((), (), cleaned.truncated, cleaned.refused)
    facts: list[Fact] = []
    layouts: list[str] = []
    for layout, read in _READERS:
        found = read(cleaned.lines, source)
        if found:
            layouts.append(layout)
            facts.extend(found)
    found = errors.read(cleaned.lines, source, signatures)
    if found:
        layouts.append("errors")
        facts.extend(found)
    return Reading(tuple(merge_equal(_without_coarser(facts))), tuple(layouts), cleaned.truncated)


def _without_coarser(facts: Sequence[Fact]) -> list[Fact]:
    """Drop a Python version read from a path (3.12) where another place gives it in full (3.12.4)."""
    versions = {str(fact.fields["version"]) for fact in facts if fact.type == "python" and "version" in fact.fields}
    return [
        fact
        for fact in facts
        if fact.type != "python"
        or fact.provenance[0].reader != errors.READER
        or not any(version.startswith(f"{fact.fields['version']}.") for version in versions)
    ]
