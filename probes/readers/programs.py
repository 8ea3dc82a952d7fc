"""Reader of what programs print over several lines: a block of memory figures, the devices of an error report.

May live here: layouts in which one line alone says nothing. Must not: single lines of programs (they are signatures,
which are data) and what the figures mean.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...facts import Fact, Scalar
from .common import FactList
from .line import Line
from .signatures import to_mib

READER = "programs"
# So many lines belong to a block at most.
_REACH = 12

# The driver's own allocator tells its figures below the error.
_REFUSED = re.compile(r"Allocation on device(?: (?P<gpu>[0-9]{1,2}))? would exceed allowed memory", re.ASCII)
_FIGURE = re.compile(
    r" {0,8}(?P<label>Currently allocated|Requested|Device limit|Free \(according to CUDA\)) *: "
    r"(?P<amount>[0-9.]{1,10} (?:[KMGT]i?B|bytes))[ \t]*$",
    re.ASCII,
)
_FIELDS = {
    "Currently allocated": "allocated", "Requested": "requested", "Device limit": "total",
    "Free (according to CUDA)": "free",
}  # fmt: skip

_DEVICE = re.compile(r"[ \t]*(?:- )?\*\*Name:\*\* cuda:(?P<index>[0-9]{1,2}) ", re.ASCII)
_BYTES = re.compile(r"[ \t]*(?:- )?\*\*VRAM (?P<label>Total|Free):\*\* (?P<bytes>[0-9]{1,15})[ \t]*$", re.ASCII)


def read(lines: Sequence[Line], source: str) -> list[Fact]:
    """Facts of every such block in the text."""
    out = FactList(source, READER)
    for start, line in enumerate(lines):
        following = lines[start + 1 : start + 1 + _REACH]
        if match := _REFUSED.search(line.text):
            _figures(match, line, following, out)
        elif match := _DEVICE.match(line.text):
            _memory(int(match["index"]), line, following, out)
    return out.facts


def _figures(refused: re.Match[str], line: Line, following: Sequence[Line], out: FactList) -> None:
    amounts = {_FIELDS[m["label"]]: m["amount"] for other in following if (m := _FIGURE.match(other.text))}
    if not amounts:
        return
    fields: dict[str, Scalar | None] = {"kind": "torch_oom", "text": "Allocation on device", **amounts}
    fields |= {f"{name}_mib": to_mib(amount) for name, amount in amounts.items()}
    out.add("error", {**fields, "gpu": int(refused["gpu"]) if refused["gpu"] else None}, line)


def _memory(index: int, line: Line, following: Sequence[Line], out: FactList) -> None:
    found = {m["label"]: int(m["bytes"]) >> 20 for other in following if (m := _BYTES.match(other.text))}
    if "Total" in found:
        used = found["Total"] - found["Free"] if "Free" in found else None
        out.add("gpu", {"index": index, "vram_mib": found["Total"], "vram_used_mib": used}, line)
