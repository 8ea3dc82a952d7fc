"""Argument lists as command lines that a shell reads as just those arguments.

May live here: the quoting rules of POSIX shells and of PowerShell. Must not: what is run, wording, GPUs.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

# Words that PowerShell takes as they are; a comma would make a list, an @ or % at the front has a meaning.
_PLAIN = re.compile(r"[A-Za-z0-9_.\\/:=+-]+")
# PowerShell takes typographic single quotes for plain ones.
_SINGLE = re.compile("(['\u2018\u2019\u201a\u201b])")


def quoted(words: Sequence[str], platform: str) -> str:
    """The words as one command line: PowerShell's rules on Windows, those of a POSIX shell elsewhere."""
    return powershell(words) if platform == "windows" else posix(words)


def posix(words: Sequence[str]) -> str:
    """For sh, bash and their kin."""
    return " ".join(f'"{w}"' if _double_quotes_do(w) else shlex.quote(w) for w in words)


def powershell(words: Sequence[str]) -> str:
    """For PowerShell: a quoted command name needs the call operator."""
    line = " ".join(w if _PLAIN.fullmatch(w) else "'" + _SINGLE.sub(r"\1\1", w) + "'" for w in words)
    return "& " + line if line.startswith("'") else line


def one_line(words: Sequence[str]) -> bool:
    """Whether the words can stand in a script: printable, so that no shell sees the end of a line in them."""
    return all(word.isprintable() for word in words)


def passes_powershell(words: Sequence[str]) -> bool:
    """Whether PowerShell hands the words over unchanged: up to 7.2 it drops double quotes inside an argument."""
    return not any('"' in word or word == "" or word.endswith("\\") for word in words)


def _double_quotes_do(word: str) -> bool:
    """Whether double quotes suffice and read better: a text with single quotes and nothing that a shell expands."""
    return "'" in word and not any(c in word for c in '"$`\\!')
