"""How a reader makes a fact out of what it read: provenance, and no fact for what a program could not tell.

May live here: making facts and recognising printed placeholders. Must not: any layout.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...facts import Fact, Provenance, Scalar
from .common import ABSENT

# What only the tools of these layouts print where they do not know.
_ABSENT = ABSENT | {"<unknown>", "'<unknown>'", "(null)", "gpu is lost", "insufficient permissions"}


def printed(value: str | None) -> str | None:
    """The value as printed, or None where the program printed a placeholder for "I do not know"."""
    if value is None:
        return None
    text = value.strip()
    return None if text.lower().strip("[]") in _ABSENT else text


def cuda_release(version: str) -> str:
    """`10.0` of `10.0.130`: torch before 1.5 tells the build of its toolkit."""
    return ".".join(version.split(".")[:2])


def whole(value: str | None) -> int | None:
    """The leading whole number of `72.62 W`, `16x` or `24564 MiB`, or None."""
    text = printed(value)
    if text is None:
        return None
    digits = text.split()[0].split(".")[0].rstrip("xX%W")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 16 else None


def device_id(value: str) -> str:
    """NVML's `0x268410DE` (device, then vendor) as lspci's `10de:2684`; anything else as printed."""
    if len(value) == 10 and value.startswith("0x"):
        return f"{value[6:]}:{value[2:6]}".lower()
    return value


def make(kind: str, reader: str, source: str, line: int | None, fields: Mapping[str, Scalar | None]) -> Fact:
    """A fact of the fields that are known."""
    known = {name: value for name, value in fields.items() if value is not None}
    return Fact(kind, known, (Provenance("report", source, line, reader),))


def coverage(domain: str, reader: str, source: str, line: int | None) -> Fact:
    """The statement that a whole domain was seen."""
    return make("coverage", reader, source, line, {"domain": domain, "complete": True})
