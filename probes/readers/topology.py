"""Reader of the matrix of `nvidia-smi topo -m`, with tabs, with blanks, cut, or of several machines.

May live here: the layout of the matrix. Must not: what a kind of link is good for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...facts import Fact, Scalar
from .emit import coverage, make, printed
from .line import Line

READER = "topology"

_ESCAPE_REST = re.compile(r"\x1b?\[\d{0,2}m")
_DEVICE = re.compile(
    r"^(?:GPU\d{1,3}|NIC\d{1,3}|mlx\d?_\w{1,20}|ib\w{1,20}|bnxt_re\w{1,20}|irdma\w{1,20}|efa\w{1,20}|roce\w{1,20})$"
)
_LINK = re.compile(r"^(?:X|SYS|NODE|PHB|PXB|PXN|PIX|SOC|PSB|C2C|NV\d{1,2})$")
_AFFINITY = re.compile(r"^\d[\d,-]{0,400}$")
_NIC_NAME = re.compile(r"^\s*(NIC\d{1,3})\s{0,8}[:=]\s{0,8}(\w{1,40})\s*$")


@dataclass
class _Matrix:
    """One matrix: the columns of its head, the links by pair, the rows and the names of its legend."""

    line: int
    columns: dict[str, int]
    links: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    rows: dict[str, tuple[int, str | None, str | None]] = field(default_factory=dict)
    nics: dict[str, str] = field(default_factory=dict)


def read(lines: Sequence[Line], source: str) -> list[Fact]:
    """Links, rows and NIC names of every matrix; a matrix printed twice counts once."""
    found: list[_Matrix] = []
    for line in lines:
        text = _ESCAPE_REST.sub("", line.text)
        head = _head(text)
        if head:
            found.append(_Matrix(line.number, {name: place for place, name in enumerate(head)}))
        elif found:
            _row(found[-1], line.number, text)
    distinct: dict[tuple[object, ...], _Matrix] = {}
    for matrix in found:
        if matrix.rows:
            distinct.setdefault(_stated(matrix), matrix)
    machines = enumerate(distinct.values())
    return [fact for machine, matrix in machines for fact in _facts(matrix, machine, source)]


def _head(text: str) -> list[str]:
    """The device columns of a head row, or nothing."""
    words = text.split()
    columns = words[: words.index("CPU")] if "CPU" in words else words
    if not columns or not columns[0].startswith("GPU") or not all(_DEVICE.match(word) for word in columns):
        return []
    return columns if len(columns) > 1 or len(words) > len(columns) else []


def _row(matrix: _Matrix, number: int, text: str) -> None:
    legend = _NIC_NAME.match(text)
    if legend:
        matrix.nics.setdefault(legend.group(1), legend.group(2))
        return
    words = text.split()
    if len(words) < 2 or words[0] not in matrix.columns or words[0] in matrix.rows or not _LINK.match(words[1]):
        return
    name, width = words[0], len(matrix.columns)
    at = matrix.columns[name]
    cells = 0
    for other, word in zip(matrix.columns, words[1:], strict=False):
        if not _LINK.match(word):
            break
        cells += 1
        if other != name:
            pair = (name, other) if at < matrix.columns[other] else (other, name)
            matrix.links.setdefault(pair, (number, word))
    affinity, numa = _affinities(text, words, width) if cells == width else (None, None)
    matrix.rows[name] = number, affinity, numa


def _affinities(text: str, words: list[str], width: int) -> tuple[str | None, str | None]:
    """CPU and NUMA affinity: by column where there are tabs, else the next two words."""
    rest = text.split("\t")[width + 1 :] if text.count("\t") >= width else words[width + 1 :]
    values = [value.strip() for value in (*rest[:2], "", "")]
    affinity, numa = (printed(value) if _AFFINITY.match(value) else None for value in values[:2])
    return affinity, numa


def _stated(matrix: _Matrix) -> tuple[object, ...]:
    """What makes two matrices the same one."""
    return tuple(matrix.columns), tuple((pair, link) for pair, (_, link) in matrix.links.items())


def _facts(matrix: _Matrix, machine: int, source: str) -> Iterator[Fact]:
    for (first, second), (number, link) in matrix.links.items():
        fields: dict[str, Scalar | None] = {"machine": machine, "a": first, "b": second, "link": link}
        yield make("topology_link", READER, source, number, fields)
    for name, (number, affinity, numa) in matrix.rows.items():
        row: dict[str, Scalar | None] = {"machine": machine, "name": name, "nic": matrix.nics.get(name)}
        row.update(cpu_affinity=affinity, numa=numa)
        yield make("topology_device", READER, source, number, row)
    if set(matrix.rows) == set(matrix.columns):
        yield coverage("topology", READER, source, matrix.line)
