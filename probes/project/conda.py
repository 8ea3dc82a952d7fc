"""Reader of conda environment files: packages with channels and builds, and what pip installs beside them.

May live here: that layout. Must not: other kinds of files, which builds conda chooses.
"""

from __future__ import annotations

import re

from ...facts import Fact
from .facts import Asked, Read, line_of, mapping, texts, yaml_of
from .requirements import INDEX
from .specs import parse

_SPEC = re.compile(
    r"^(?:(?P<channel>[A-Za-z0-9_./-]+)::)?(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)"
    r"(?P<version>(?:[ ]*[=<>!~]{1,2} ?|[ ]+)[0-9][^ =]*)?(?:[= ](?P<build>[A-Za-z0-9_.*]+))?$"
)
_MINOR = re.compile(r"^(?P<release>[0-9]{1,2}\.[0-9]{1,2})")


def read(text: str, name: str, target: Read, _before: tuple[Fact, ...]) -> Asked | None:
    """The facts of one file; None where it is no environment file."""
    document = yaml_of(text)
    if document is None or not isinstance(document.get("dependencies"), list):
        return None
    asked, lines = Asked(name, target), text.splitlines()
    for channel in texts(document.get("channels")):
        asked.add("conda_channel", line_of(lines, channel), file=name, name=channel)
    for item in document["dependencies"]:
        for entry in texts(mapping(item).get("pip")):
            index = INDEX.match(entry)
            if index is not None:
                asked.index(index["url"], line_of(lines, entry))
            else:
                asked.requirement(entry, line_of(lines, entry))
        if isinstance(item, str):
            _package(item, asked, line_of(lines, item))
    return asked


def _package(item: str, asked: Asked, line: int | None) -> None:
    found = _SPEC.match(" ".join(item.split()))
    if found is None:
        return
    version = (found["version"] or "").strip()
    # =2.5.1 stands for 2.5.1 and its rebuilds, =2.5 for all of 2.5.
    exact = version.startswith("=") and version.count(".") >= 2 and not version.endswith("*")
    wanted = parse(version.lstrip("=") if exact else version, bare="==" if exact else "=")
    cuda = _MINOR.match(version.lstrip("=<>~! "))
    asked.package(found["name"], wanted, line, item, manager="conda", role="asked", channel=found["channel"],
                  build=found["build"] or "any", cuda=cuda["release"] if cuda else None)  # fmt: skip
