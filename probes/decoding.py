"""From the bytes that a program printed or a file holds to text.

May live here: recognising encodings. Must not: cleaning, layouts.
"""

from __future__ import annotations

import re

__all__ = ["decode"]

_SAMPLE = 4096
# Characters of GB 2312 are pairs of such bytes; letters of Western code pages stand alone among plain ones.
_HIGH = re.compile(rb"[\x80-\xff]+")
_PAIRS = re.compile(rb"(?:[\xa1-\xf7][\xa1-\xfe])+")


def decode(data: bytes) -> str:
    """UTF-8 unless the bytes say UTF-16 (a mark, or the pattern of NULs) or GBK; what fits nothing becomes U+FFFD."""
    head = data[:_SAMPLE]
    half = max(1, len(head) // 2)
    marked = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    # Every output has blanks and figures, which are half NUL; without any, the mark is a piece of rubbish.
    if marked and max(head[::2].count(0), head[1::2].count(0)) > 0.05 * half:
        return data.decode("utf-16", "replace")
    if head[1::2].count(0) > 0.4 * half and head[::2].count(0) < 0.05 * half:
        return data.decode("utf-16-le", "replace")
    if head[::2].count(0) > 0.4 * half and head[1::2].count(0) < 0.05 * half:
        return data.decode("utf-16-be", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("gb18030" if _is_gbk(data) else "utf-8-sig", "replace")


def _is_gbk(data: bytes) -> bool:
    """Whether all bytes outside ASCII stand in pairs of GB 2312, as Chinese Windows writes."""
    return all(_PAIRS.fullmatch(found.group()) for found in _HIGH.finditer(data))
