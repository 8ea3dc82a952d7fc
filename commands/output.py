"""What the commands write: results to stdout, everything else to stderr.

May live here: how and where text is written, the look of the terminal, keeping the last report. Must not: layout of
documents (report/), words.
"""

from __future__ import annotations

import errno
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..messages import Message
from .inputs import failure

if TYPE_CHECKING:
    from ..report.layout import Look
    from ..report.model import Report
    from .options import Common

_WIDTHS = (40, 100)  # narrower terminals wrap by themselves, wider lines are hard to read


# --- stdout -------------------------------------------------------------------------------------------------------


def look() -> Look:
    """How the terminal wants things drawn."""
    from ..report.layout import Look

    low, high = _WIDTHS
    coloured = (
        bool(sys.stdout) and sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )
    width = min(max(shutil.get_terminal_size().columns, low), high)
    return Look(width=width, colour=coloured, encoding=encoding())


def encoding() -> str:
    """The encoding of stdout."""
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def utf8() -> bool:
    """Whether stdout takes every character."""
    return encoding().lower().replace("-", "").startswith("utf8")


def emit_document(document: Any, render: Callable[..., str], common: Common) -> None:
    """A document of the output contract as JSON, or as `render` draws it."""
    if common.format == "json":
        emit(document.to_json(ascii_only=not utf8()) + "\n")
    else:
        emit(render(document, lang=common.lang, look=look(), detail=common.detail))


def emit_answer(answer: Any, render: Callable[..., str], common: Common) -> None:
    """An explanation as JSON, or as `render` draws it."""
    if common.format == "json":
        emit_json(answer.to_dict())
    else:
        from .. import pipeline

        pages = pipeline.pages(common.knowledge)
        emit(render(answer, lang=common.lang, look=look(), detail=common.detail, pages=pages))


def emit_json(value: Any, indent: int | None = 1) -> None:
    """A value as JSON."""
    import json

    emit(json.dumps(value, ensure_ascii=not utf8(), indent=indent) + "\n")


def emit_lines(lines: Iterable[str]) -> None:
    """Lines that may hold what was pasted."""
    from ..report.layout import clean_lines

    emit_fitted("".join("\n".join(clean_lines(line)) + "\n" for line in lines))


def emit_fitted(text: str) -> None:
    """Text of which stdout may lack characters."""
    from ..report.layout import fit

    emit(fit(text, encoding()))


def emit(text: str) -> None:
    """Write to stdout. A reader that went away (`| head`) is not an error: the rest is dropped in silence."""
    if not sys.stdout:
        return
    try:
        click.echo(text, nl=False, color=True)  # colours are decided in `look`
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains once more as it ends
        gone = isinstance(error, BrokenPipeError) or (sys.platform == "win32" and error.errno == errno.EINVAL)
        if not gone:
            raise failure("stdout", error) from error


# --- stderr -------------------------------------------------------------------------------------------------------


def tell(text: str) -> None:
    """One line to whoever watches."""
    from ..report.layout import clean, fit

    click.echo(fit(clean(text), getattr(sys.stderr, "encoding", None) or "utf-8"), err=True)


def complain(message: str) -> None:
    """Lines on stderr, the first with our name before it."""
    first, *rest = message.splitlines() or [""]
    for line in (f"gpurules: {first}", *rest):
        tell(line)


def progress(common: Common) -> Callable[[Any, Any], None]:
    """Says on stderr which check runs and how it ended, where somebody watches or wants to know all."""
    from ..report.validation_text import progress_line

    if common.detail == "verdict" or not (common.detail == "all" or sys.stderr.isatty()):
        return lambda _check, _outcome: None
    return lambda check, outcome: tell(progress_line(check.name, outcome, common.lang))


def confirm(yes: bool) -> Callable[[str, Sequence[str]], bool]:
    """Asks on stderr before a command runs; no answer means no."""

    def ask(_title: str, argv: Sequence[str]) -> bool:
        from ..report.layout import clean
        from ..report.quoting import posix

        click.echo(f"$ {clean(posix(argv))}", err=True)
        try:
            return yes or click.confirm("?", err=True)
        except click.Abort:
            return False

    return ask


# --- the last report ----------------------------------------------------------------------------------------------


def save(report: Report, common: Common) -> None:
    """Keep the report for `gpurules why`; that it cannot be kept is no failure."""
    from ..errors import reason
    from ..report.state import save_last

    try:
        save_last(report)
    except (OSError, RuntimeError) as error:  # RuntimeError: no home folder
        if common.detail == "all":
            complain(Message("error.not_kept", reason=reason(error)).said(common.lang))
