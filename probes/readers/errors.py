"""Reader of error lines: runs the signatures it is given, and reads what tracebacks say of themselves.

May live here: the layout of tracebacks and native assertions. Must not: message texts (they are data).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...facts import Fact
from .common import FactList
from .line import Line
from .signatures import Signatures

READER = "errors"

_PYTHON_PATH = re.compile(r"[/\\](?:lib|lib64)[/\\][Pp]ython(?P<version>[23]\.[0-9]{1,2})[/\\]", re.ASCII)
_CUDA_SOURCE = re.compile(r"(?P<file>[A-Za-z0-9_]{1,80}\.(?:cu|cuh|cpp|h):[0-9]{1,6}): ", re.ASCII)
# A module tree named after the release: /software/pytorch/v1.3.1-gpu/lib/python3.6/.
_TORCH_TREE = re.compile(r"/pytorch/v?(?P<version>[0-9]\.[0-9]{1,2}\.[0-9]{1,2})(?:[-/][A-Za-z]{0,20})?/lib/python", re.ASCII)
_MPI_TREE = re.compile(r"/openmpi/(?P<version>[0-9]\.[0-9]{1,2}\.[0-9]{1,2})[-/]", re.ASCII)
_CUDA_TREE = re.compile(r"[/-]cuda-(?P<version>[0-9]{1,2}\.[0-9](?:\.[0-9]{1,3})?)[/-]", re.ASCII)


def read(lines: Sequence[Line], source: str, signatures: Signatures) -> list[Fact]:
    """Facts of the error lines and traceback frames of a text."""
    out = FactList(source, READER)
    narrowed = signatures.narrow("\n".join(line.text for line in lines))
    for line in lines:
        text = line.text
        for statement in narrowed.match(text):
            fields = dict(statement.fields)
            if statement.type == "error" and (match := _CUDA_SOURCE.search(text)):
                fields.setdefault("source_file", match.group("file"))
            out.add(statement.type, fields, line)
    _read_paths(lines, out)
    return out.facts


def _read_paths(lines: Sequence[Line], out: FactList) -> None:
    """Versions that the paths of frames contain; each said once."""
    said: set[tuple[str, str]] = set()
    for line in lines:
        text = line.text
        if "/lib" not in text and "\\lib\\" not in text:
            continue
        for kind, pattern in (("python", _PYTHON_PATH), ("torch", _TORCH_TREE), ("mpi", _MPI_TREE)):
            match = pattern.search(text)
            if match and (kind, match.group("version")) not in said:
                said.add((kind, match.group("version")))
                out.add(kind, {"version": match.group("version")}, line)
        match = _CUDA_TREE.search(text)
        if match and ("cuda", match.group("version")) not in said:
            said.add(("cuda", match.group("version")))
            release = ".".join(match.group("version").split(".")[:2])
            out.add("cuda_toolkit", {"version": match.group("version"), "release": release}, line)
