"""Reader of lsmod tables and /proc/modules.

May live here: these two layouts. Must not: which modules belong together.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...facts import Fact
from .emit import coverage, make
from .line import Line

READER = "lsmod"

_HEAD = re.compile(r"^\s*Module\s{1,60}Size\s{1,20}Used by\s*$")
_ROW = re.compile(r"^\s{0,8}(\w{2,60})\s{1,60}(\d{4,10})\s{1,20}\d{1,6}(?:\s{1,8}([\w,.-]{1,900}|\[permanent\]))?\s*$")
_PROC = re.compile(r"^\s{0,8}(\w{2,60}) \d{4,10} \d{1,6} \S{1,900} (Live|Loading|Unloading) 0x[0-9a-f]{1,16}\b")
_DISPLAY = re.compile(r"^(?:nvidia|nouveau|nova|amdgpu|radeon|i915|nv_peer_mem|gdrdrv)")
_WHOLE = 20


def read(lines: Sequence[Line], source: str) -> list[Fact]:
    """A fact a module; the domain is covered by a table with its head, or by /proc/modules, of more than 20 rows."""
    modules: dict[str, int] = {}
    in_table, rows = False, 0
    covered: int | None = None
    for line in lines:
        if _HEAD.match(line.text):
            in_table, rows = True, 0
            continue
        row, proc = _ROW.match(line.text), _PROC.match(line.text)
        name = proc.group(1) if proc else row.group(1) if row else None
        if name is None:
            in_table, rows = False, 0
        elif proc or in_table or _DISPLAY.match(name):
            modules.setdefault(name, line.number)
            rows += 1 if proc or in_table else 0
            covered = line.number if rows == _WHOLE + 1 else covered
    facts = [make("module", READER, source, at, {"name": name, "loaded": True}) for name, at in modules.items()]
    if covered is not None:
        facts.append(coverage("modules", READER, source, covered))
    return facts
