"""Reader of error lines: runs the signatures it is given, and reads what tracebacks say of themselves.

May live here: the layout of tracebacks and native assertions. Must not: message texts (they are data).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from ...facts import Fact
from .common import FactList
from .line import Line
from .signatures import Signatures

READER = "errors"

# So many lines of one kind say all that there is to say; a flood must not cost more.
_FLOOD = 2000

_SOURCE_LINE = re.compile(r"[ \t]*(?:-+> ?)?[0-9]{0,5}[ \t]*(?:raise |warnings\.warn\(|warn\()", re.ASCII)
_BACKTRACE = re.compile(r"\.so[.0-9]*\([^()]{0,200}\) ?\[0x[0-9a-f]+\]", re.ASCII)
_PYTHON_PATH = re.compile(r"[/\\](?:lib|lib64)[/\\][Pp]ython(?P<version>[23]\.[0-9]{1,2})[/\\]", re.ASCII)
_CUDA_SOURCE = re.compile(r"(?P<file>[A-Za-z0-9_]{1,80}\.(?:cu|cuh|cpp|h):[0-9]{1,6}): ", re.ASCII)
# A module tree named after the release: /software/pytorch/v1.3.1-gpu/lib/python3.6/.
_TORCH_TREE = re.compile(
    r"/pytorch/v?(?P<version>[0-9]\.[0-9]{1,2}\.[0-9]{1,2})(?:[-/][A-Za-z]{0,20})?/lib/python", re.ASCII
)
_MPI_TREE = re.compile(r"/openmpi/(?P<version>[0-9]\.[0-9]{1,2}\.[0-9]{1,2})[-/]", re.ASCII)
_CUDA_TREE = re.compile(r"[/-]cuda-(?P<version>[0-9]{1,2}\.[0-9](?:\.[0-9]{1,3})?)[/-]", re.ASCII)


def read(lines: Sequence[Line], source: str, signatures: Signatures) -> list[Fact]:
    """Facts of the error lines and traceback frames of a text."""
    out = FactList(source, READER)
    narrowed = signatures.narrow("\n".join(line.text for line in lines))
    seen: Counter[str] = Counter()
    for line in lines:
        text = line.text
        # The quoted source of a frame shows the message that the last line prints.
        if not text or _SOURCE_LINE.match(text):
            continue
        statements = narrowed.match(text)
        seen.update({statement.signature for statement in statements})
        for statement in statements:
            fields = dict(statement.fields)
            if statement.type == "error" and (match := _CUDA_SOURCE.search(text)):
                fields.setdefault("source_file", match.group("file"))
            out.add(statement.type, fields, line)
        if statements and seen.most_common(1)[0][1] >= _FLOOD:
            narrowed = narrowed.without({signature for signature, count in seen.items() if count >= _FLOOD})
            seen = Counter({signature: count for signature, count in seen.items() if count < _FLOOD})
    _read_paths(lines, out)
    return out.facts


def _read_paths(lines: Sequence[Line], out: FactList) -> None:
    """Versions that the paths of frames contain; the first of each kind."""
    said: set[str] = set()
    for line in lines:
        text = line.text
        native = _BACKTRACE.search(text) is not None
        if not native and "site-packages" not in text and "dist-packages" not in text and 'File "' not in text:
            continue
        for kind, pattern in _NATIVE_PATHS if native else _FRAME_PATHS:
            match = pattern.search(text)
            if match and kind not in said:
                said.add(kind)
                out.add(kind, {"version": match.group("version")}, line)


_FRAME_PATHS = (("python", _PYTHON_PATH),)
_NATIVE_PATHS = (("python", _PYTHON_PATH), ("torch", _TORCH_TREE), ("mpi", _MPI_TREE), ("cuda_toolkit", _CUDA_TREE))
