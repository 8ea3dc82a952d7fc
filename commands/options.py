"""The options that several commands take.

May live here: options and what becomes of their values. Must not: commands, reading files, output.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import click

from ..messages import Lang, said
from .helping import lang_of, option

if TYPE_CHECKING:
    from ..report.text import Detail

_MORE_FORMS = "_more_forms"
_F = TypeVar("_F", bound=Callable[..., Any])
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
NEW_FILE = click.Path(dir_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True)
class Common:
    """The options that every command takes."""

    format: str
    lang: Lang
    engine: Literal["native", "durable", "both"]
    knowledge: Path | None
    today: date | None
    detail: Detail
    mirror: str | None = None


def more_formats(*names: str) -> Callable[[_F], _F]:
    """Forms that a command has beside text and JSON; stands under `common_options`."""

    def with_forms(function: _F) -> _F:
        setattr(function, _MORE_FORMS, names)
        return function

    return with_forms


def common_options(function: _F) -> _F:
    """Adds the options that every command takes, and hands them over as one `common`."""

    @functools.wraps(function)
    def with_common(
        *args: Any,
        format_: str,
        as_json: bool,
        lang: Lang | None,
        engine: Literal["native", "durable", "both"],
        knowledge: Path | None,
        today: datetime | None,
        verbose: bool,
        quiet: bool,
        mirror: str | None,
        **options: Any,
    ) -> Any:
        form = "json" if as_json else format_
        common = Common(
            format=form,
            lang=lang_of(click.get_current_context(), lang, shown=form != "json"),
            engine=engine,
            knowledge=knowledge,
            today=today.date() if today else None,
            detail="all" if verbose else "verdict" if quiet else "normal",
            mirror=mirror,
        )
        return function(*args, common=common, **options)

    forms = ["text", "json", *getattr(function, _MORE_FORMS, ())]
    for added in reversed(
        [
            option("--format", "format_", type=click.Choice(forms), default="text"),
            option("--json", "as_json", is_flag=True),
            option("--lang", type=click.Choice(["en", "zh"])),
            option("--engine", type=click.Choice(["native", "durable", "both"]), default="native"),
            option("--knowledge", type=FOLDER, metavar="DIR"),
            option("--today", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE"),
            option("--mirror", metavar="NAME"),
            option("-v", "--verbose", is_flag=True),
            option("-q", "--quiet", is_flag=True),
        ]
    ):
        with_common = added(with_common)
    return cast(_F, with_common)


def input_options(function: _F) -> _F:
    """`--report` and `--facts`, each repeatable."""
    for added in (
        option("--facts", "facts", multiple=True, metavar="FILE"),
        option("--report", "reports", multiple=True, metavar="FILE"),
    ):
        function = added(function)
    return function


def _goals(context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    goals: dict[str, str] = {}
    for value in values:
        name, equals, wanted = value.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(said("usage.goal_form", lang_of(context), {"value": value}))
        if name.strip() in goals:
            raise click.BadParameter(said("usage.goal_twice", lang_of(context), {"name": name.strip()}))
        goals[name.strip()] = wanted.strip()
    return goals


goal_option = option("--goal", "goals", multiple=True, callback=_goals, metavar="NAME=VALUE")
probe_option = option("--probe/--no-probe", default=None)
python_option = option("--python", metavar="PATH")
question_option = option("--question", metavar="TEXT")
no_save_option = option("--no-save", is_flag=True)
in_option = option("--in", "source", default="last", metavar="REPORT.json|last")
