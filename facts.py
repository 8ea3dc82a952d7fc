"""Facts: what probes and readers say about a machine.

May live here: the fact model, its provenance, what may become a fact, and nothing else. Must not: any knowledge of
GPUs, rules or output.

A fact is flat and typed: a type named in `knowledge/vocabulary.yaml` and scalar fields. A field that nobody looked
at is absent from `fields` and means *unknown*; it is never stored as None, "", "N/A" or "Could not collect".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Scalar = str | int | bool
SourceKind = Literal["report", "probe", "user", "catalog", "rule"]


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a fact was read.

    kind: report (a pasted text), probe (this machine), user (a facts file, question or goal), catalog, rule.
    source: file name of the report or facts file, or the probe's or rule's name.
    line: 1-based line in that file, None where lines make no sense.
    reader: the layout that was recognised ("collect_env", "nvidia_smi", ...) or the command that was run.
    fields: the fields of the fact that this place states; empty means all of them.
    """

    kind: SourceKind
    source: str
    line: int | None = None
    reader: str = ""
    fields: tuple[str, ...] = ()

    def __str__(self) -> str:
        """`issue.txt:41`, or the bare source where there is no line."""
        return f"{self.source}:{self.line}" if self.line is not None else self.source


@dataclass(frozen=True, slots=True)
class Fact:
    """One typed statement with its provenance; hashable by identity only, so compare `key()`."""

    type: str
    fields: Mapping[str, Scalar]
    provenance: tuple[Provenance, ...] = field(default=())

    def key(self) -> tuple[str, tuple[tuple[str, Scalar], ...]]:
        """What the fact says, without where it was read."""
        return self.type, tuple(sorted(self.fields.items()))

    def get(self, name: str) -> Scalar | None:
        """The field's value, or None where it is unknown."""
        return self.fields.get(name)


@dataclass(frozen=True, slots=True)
class Entry:
    """What somebody wrote of a machine, before it is known what it means: a label and its value.

    label: the key as written, empty for an item of a bare list. value: the value, or the whole item. line: 1-based line
    of the value. alone: it counts even where other items of its line are not understood.
    """

    label: str
    value: str
    line: int
    alone: bool = True
