"""From arguments to what the pipeline takes: files are read here, and nowhere else in the command line.

May live here: reading and naming input files, saved reports. Must not: understanding what they hold.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..errors import reason
from ..messages import Message, said
from .helping import Failure

if TYPE_CHECKING:
    from .. import pipeline
    from ..report.model import Report
    from .options import Common

MAX_INPUT = 64 * 1024 * 1024  # bytes of one input file; readers keep less


def inputs_of(
    common: Common,
    reports: Sequence[str] = (),
    facts: Sequence[str] = (),
    *,
    question: str | None = None,
    goals: dict[str, str] | None = None,
    probe: bool | None = None,
    python: str | None = None,
    described: Sequence[str] = (),
) -> pipeline.Inputs:
    """The inputs of a command. A machine that is described is not looked at, unless that is asked for."""
    from .. import pipeline

    if [*reports, *facts].count("-") > 1:
        raise click.UsageError(said("usage.one_stdin", common.lang))
    names = _names([*reports, *facts])
    told = bool(reports or facts or question or any(text.startswith("gpu=") for text in described))
    return pipeline.Inputs(
        reports=[(names[path], read(path)) for path in reports],
        facts=[(names[path], read(path)) for path in facts],
        question=question,
        goals=goals or {},
        probe=not told if probe is None else probe,
        python=python,
        described=described,
        lang=common.lang,
        engine=common.engine,
        knowledge=common.knowledge,
        today=common.today,
        mirror=common.mirror,
    )


def _names(paths: Sequence[str]) -> dict[str, str]:
    """What to call each input: its file name, or the path as given where two would be called the same."""
    short = {path: Path(path).name or path for path in dict.fromkeys(paths)}
    taken = list(short.values())
    names = {path: name if taken.count(name) == 1 else path for path, name in short.items()}
    return {path: shown(name) for path, name in names.items()}


def shown(path: str) -> str:
    """A path as it can be printed."""
    return "stdin" if path == "-" else click.format_filename(path)


def failure(path: str, error: Exception) -> Failure:
    """Why a file cannot be read or written."""
    return Failure(Message("input.file", file=shown(path), reason=reason(error)))


def read(path: str) -> bytes:
    """The content of a file, or of stdin."""
    try:
        if path == "-":
            data = sys.stdin.buffer.read(MAX_INPUT + 1) if sys.stdin else b""
        else:
            with open(path, "rb") as file:
                if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    _refuse_large(path, os.fstat(file.fileno()).st_size)
                data = file.read(MAX_INPUT + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL byte in the path
        raise failure(path, error) from error
    _refuse_large(path, len(data))
    return data


def _refuse_large(path: str, size: int) -> None:
    if size > MAX_INPUT:
        raise Failure(Message("error.too_large", file=shown(path), mib=MAX_INPUT // 1024 // 1024))


def saved_report(source: str) -> Report:
    """The last report, or one that was saved as JSON."""
    from ..report.state import last_report_path, load_report

    try:
        path = last_report_path() if source == "last" else Path(source)
        _refuse_large(source, path.stat().st_size)
        return load_report(path)
    except (OSError, RuntimeError) as error:  # RuntimeError: no home folder
        if source == "last":
            raise Failure(Message("error.no_last")) from error
        raise failure(source, error) from error
    except ValueError as error:
        raise Failure(Message("error.no_report", file=shown(source))) from error
