"""What every live probe is given, and how it reads files and states facts.

May live here: the probe's view of a machine, bounded reading, making facts. Must not: any single probe.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from ...facts import Fact, Provenance, Scalar
from ..runner import Runner

if TYPE_CHECKING:
    from ..readers.line import Line
    from ..readers.signatures import Signatures

# procfs refuses reads as large as the limit, so files are read in pieces.
_MAX_PIECES = 64
_PIECE = 1 << 16
_MAX_LINKS = 16
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


class ProbeError(Exception):
    """A probe cannot do its work; `reason` is a value of `probe_failure.reason`."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.reason = reason
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine as a probe sees it.

    root: the folder that stands for /; another one than / is a recorded or mounted machine.
    system: linux, windows or macos.
    python: the interpreter the user named, if any.
    cwd: the current folder, where known.
    prefix, executable: the environment that gpurules itself runs in.
    read: called with the absolute path and the text of each file that is read; for snapshots.
    signatures: the known error lines; without them no error is recognised.
    """

    root: Path
    runner: Runner
    environ: Mapping[str, str]
    system: str
    python: str | None = None
    read: Callable[[str, str], None] | None = None
    signatures: Signatures | None = None
    cwd: Path | None = None
    prefix: str = sys.prefix
    executable: str = sys.executable

    @property
    def live(self) -> bool:
        """Whether system calls of this process speak of the same machine as `root`."""
        return self.root == Path("/")

    @property
    def home(self) -> Path | None:
        """The folder of the account."""
        named = self.environ.get("USERPROFILE" if self.system == "windows" else "HOME")
        return Path(named) if named else None

    def path(self, name: str) -> Path:
        """The place under the root of an absolute path of the machine."""
        return self.root / name.lstrip("/")

    def text(self, name: str) -> str | None:
        """The text of a file of the machine without outer white space; None where it cannot be read."""
        text = read_text(self.path(name))
        if text is not None and self.read is not None:
            self.read(name, text)
        return text

    def errors_in(self, lines: Sequence[Line], source: str) -> list[Fact]:
        """The known errors among the lines of a program's output."""
        if self.signatures is None or not lines:
            return []
        from ..readers import errors

        return [fact for fact in errors.read(lines, source, self.signatures) if fact.type == "error"]

    def resolved(self, name: str) -> Path:
        """Where an absolute path of the machine leads, links followed; absolute ones stay under the root."""
        place = self.path(name)
        for _ in range(_MAX_LINKS):
            if not place.is_symlink():
                break
            target = place.readlink()
            place = self.path(str(target)) if target.is_absolute() else place.parent / target
        return Path(os.path.normpath(place))


def read_text(path: Path) -> str | None:
    """The text of a file without outer white space and NULs; None where it cannot be read or is empty.

    What a terminal might obey is replaced: the text of a damaged file may become a fact.
    """
    try:
        with path.open("rb", buffering=0) as file:
            data = b"".join(islice(iter(lambda: file.read(_PIECE), b""), _MAX_PIECES))
    except OSError:
        return None
    text = data.decode("utf-8", "replace").strip(" \t\r\n\0")
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text) or None


def number(text: str | None) -> int | None:
    """A plain decimal number, else None."""
    return int(text) if text is not None and text.isascii() and text.isdigit() else None


@dataclass(frozen=True, slots=True)
class Stating:
    """Makes the facts of one probe; a field without a value (None) is left out."""

    probe: str

    def fact(self, kind: str, reader: str, /, **fields: Scalar | None) -> Fact:
        """A fact read from `reader` (a file or command); `class_` stands for the field `class`."""
        known = {name.rstrip("_"): value for name, value in fields.items() if value is not None}
        return Fact(kind, known, (Provenance("probe", self.probe, reader=reader),))

    def coverage(self, domain: str, reader: str, *, complete: bool = True) -> Fact:
        """That the probe looked at all (or part) of a domain."""
        return self.fact("coverage", reader, domain=domain, complete=complete)

    def probed(self, facts: Iterable[Fact], reader: str) -> list[Fact]:
        """A reader's facts as this probe's: the same lines of the same text, but read here and now."""
        return [
            replace(
                f, provenance=tuple(replace(p, kind="probe", source=self.probe, reader=reader) for p in f.provenance)
            )
            for f in facts
        ]

    def failure(self, error: ProbeError) -> Fact:
        """That the probe could not do its work."""
        return self.fact("probe_failure", "", probe=self.probe, reason=error.reason, detail=error.detail or None)
