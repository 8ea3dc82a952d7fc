"""Reader of requirements and constraints files, as pip reads them.

May live here: that layout. Must not: other kinds of files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...facts import Fact
from .facts import MAX_LINES, Asked, Read

# An option that names an index; `beside`: one that comes on top of the default index.
INDEX = re.compile(
    r"(?:(?P<beside>--extra-index-url|--find-links|-f)|--index-url|-i)[ =]+[\"']?(?P<url>https?://[^\s\"']+)"
)
_INCLUDE = re.compile(r"^(?P<option>-r|--requirement|-c|--constraint)[ =]*(?P<name>[^\s#:]+)")
_CONSTRAINTS = re.compile(r"(?:^|/)constraints[^/]*\.(?:txt|in)$")


def read(text: str, name: str, target: Read, _before: tuple[Fact, ...]) -> Asked:
    """The facts of one file; its own indexes count, and those of the files that include it."""
    asked = Asked(name, target)
    role = "constraint" if _is_constraint(name, target) else "asked"
    for number, raw in joined(text):
        line = raw.strip()
        index = INDEX.match(line)
        if index is not None:
            asked.index(index["url"], number, beside=bool(index["beside"]))
        elif line and line[0] not in "#-" and "://" not in line:
            asked.requirement(line, number, role=role)
    if not any(fact.type == "project_index" for fact in asked.facts):
        for index in _inherited(name, target):
            asked.index(index["url"], None, beside=bool(index["beside"]))
    return asked


def includes(text: str) -> list[str]:
    """The files that a file includes, as it writes them."""
    return [found["name"] for _, line in joined(text) if (found := _INCLUDE.match(line.strip()))]


def joined(text: str) -> Iterator[tuple[int, str]]:
    """Lines with those that a backslash continues, by the number of the first."""
    held, start = "", 0
    for number, line in enumerate(text.splitlines()[:MAX_LINES], 1):
        start = start or number
        if line.endswith("\\"):
            held += line[:-1] + " "
            continue
        yield start, held + line
        held, start = "", 0
    if held:
        yield start, held


def _including(name: str, target: Read, options: tuple[str, ...]) -> Iterator[str]:
    base = name.rpartition("/")[2]
    for other, text in target.texts.items():
        for _, line in joined(text) if other != name else ():
            found = _INCLUDE.match(line.strip())
            if found and found["option"] in options and found["name"].rpartition("/")[2] == base:
                yield other


def _is_constraint(name: str, target: Read) -> bool:
    """Constraints say which version, where something else asks for the package."""
    return bool(_CONSTRAINTS.search(name)) or any(True for _ in _including(name, target, ("-c", "--constraint")))


def _inherited(name: str, target: Read) -> Iterator[re.Match[str]]:
    for other in _including(name, target, ("-r", "--requirement", "-c", "--constraint")):
        for _, line in joined(target.texts[other]):
            if found := INDEX.match(line.strip()):
                yield found
