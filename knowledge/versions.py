"""Versions as ordered integers, so that every engine compares them alike.

May live here: the encoding and the parts of a version text. Must not: any particular version.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_VERSION = re.compile(r"\s*[vV=]{0,2}(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(.*)\Z", re.DOTALL)
_STAGES = (("dev", 0), ("a", 1), ("alpha", 1), ("b", 2), ("beta", 2), ("rc", 3), ("post", 5), ("u", 5))
_STAGE = re.compile(r"[.\-_]?(dev|alpha|beta|a|b|rc|post|u)[.\-_]?(\d*)")
_FINAL = 4
# Bits a component: 12 + 12 + 16 + 9 and 3 for the stage make 52, below the 2**53 that every engine holds exactly.
# Windows builds (26200) set the third, dates as major the first; larger numbers saturate.
_BITS = (12, 12, 16, 9)


class VersionParts(NamedTuple):
    """A version text taken apart: `order` compares, `public` and `local` are text, `release` is major.minor."""

    order: int
    public: str
    local: str
    release: str
    release_order: int
    major: int


def parse_version(text: str) -> VersionParts | None:
    """The parts of `2.7.0.dev20250310+cu124`, `580.95.05`, `12.9u1`, `3.12`; None where no number leads."""
    match = _VERSION.match(text)
    if not match:
        return None
    public, _, local = text[match.start(1) :].strip().partition("+")
    numbers = [int(n) if n else 0 for n in match.groups()[:4]]
    stage = _STAGE.match(match.group(5).partition("+")[0])
    rank = dict(_STAGES).get(stage.group(1), _FINAL) if stage else _FINAL
    minor = match.group(2) or "0"
    release_order = _encode([*numbers[:2], 0, 0], _FINAL)
    return VersionParts(_encode(numbers, rank), public, local, f"{match.group(1)}.{minor}", release_order, numbers[0])


def _encode(numbers: list[int], stage: int) -> int:
    order = 0
    for number, bits in zip(numbers, _BITS, strict=True):
        order = (order << bits) | min(number, (1 << bits) - 1)
    return (order << 3) | stage


def version_text(order: int) -> str:
    """The shortest version that has this order, without its stage: what an ordered integer of a rule stands for."""
    numbers: list[int] = []
    rest = order >> 3
    for bits in reversed(_BITS):
        numbers.insert(0, rest & ((1 << bits) - 1))
        rest >>= bits
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return ".".join(str(n) for n in numbers)
