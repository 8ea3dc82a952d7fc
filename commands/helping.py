"""Commands whose help and complaints are in the language of the reader.

May live here: click classes that take their texts from the catalog by id, and which language is wanted. Must not: any
command, any words. The text of a command is `help.NAME` (and `.long`, `.examples`, `.after`), that of an option
`option.COMMAND.NAME`, or `option.NAME` where several commands share it.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import click

from ..errors import GpurulesError
from ..messages import LANGS, Lang, Message, known, locale_lang, said

_WANTED = "gpurules.lang"
_F = TypeVar("_F", bound=Callable[..., Any])
_TERMS = 30  # columns of the terms of a list at most


class Failure(click.ClickException):
    """An input or tool error: one line on stderr, status 2."""

    exit_code = 2

    def __init__(self, told: Message | GpurulesError) -> None:
        super().__init__(str(told))
        self.told = told


# --- the language -------------------------------------------------------------------------------------------------


def wanted_lang(args: Sequence[str]) -> Lang | None:
    """The language that the arguments ask for; looked up before they are parsed, as their faults are told in it."""
    for number, arg in enumerate(args):
        if arg == "--":
            break
        value = args[number + 1] if arg == "--lang" and number + 1 < len(args) else arg.removeprefix("--lang=")
        if value in LANGS and (arg == "--lang" or arg != value):
            return value
    return None


def language(wanted: Lang | None, *, shown: bool = True) -> Lang:
    """The language asked for, else the locale's. Where stdout cannot show Chinese, asking for it means UTF-8.

    shown: whether what is written are characters, and not escapes of them.
    """
    lang = wanted or locale_lang()
    if lang == "en" or not shown:
        return lang
    from ..report.layout import can_show

    if can_show("中文", getattr(sys.stdout, "encoding", None) or "utf-8"):
        return "zh"
    if wanted is None:
        return "en"
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    return "zh"


def lang_of(context: click.Context, own: Lang | None = None, *, shown: bool = True) -> Lang:
    """The language of a run of the command line. own: what the command's own option says; shown: as in `language`."""
    return language(own or context.meta.get(_WANTED), shown=shown)


# --- help ---------------------------------------------------------------------------------------------------------


class Formatter(click.HelpFormatter):
    """Help whose lines are measured by what they take on a terminal: Chinese characters are twice as wide."""

    def write_heading(self, heading: str) -> None:
        """`Options:`"""
        self.write(f"{'':>{self.current_indent}}{heading}{':' if heading.isascii() else '：'}\n")

    def write_text(self, text: str) -> None:
        """Paragraphs; one that begins with a backspace keeps its lines."""
        if text.isascii():
            super().write_text(text)
            return
        indent = " " * self.current_indent
        lines = [line for number, part in enumerate(text.split("\n\n")) for line in self._paragraph(part, number)]
        self.write("\n".join(indent + line if line else "" for line in lines) + "\n")

    def _paragraph(self, text: str, number: int) -> Iterator[str]:
        from ..report.layout import wrap

        if number:
            yield ""
        kept, _, body = text.rpartition("\b\n")
        yield from body.split("\n") if kept or body != text else wrap(body, self.width - self.current_indent)

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = _TERMS, col_spacing: int = 2) -> None:
        """Terms with their explanations."""
        rows = list(rows)
        if all(text.isascii() for _, text in rows):
            super().write_dl(rows, col_max, col_spacing)
            return
        from ..report.layout import wrap

        column = min(max(len(term) for term, _ in rows), col_max) + col_spacing
        for term, text in rows:
            lines = wrap(text, max(self.width - column - 2, 10)) or [""]
            if len(term) > column - col_spacing:
                lines.insert(0, "")
            indent = " " * self.current_indent
            self.write(f"{indent}{term:{column}}{lines[0]}".rstrip() + "\n")
            self.write("".join(f"{indent}{'':{column}}{line}\n" for line in lines[1:]))


class Context(click.Context):
    """A context whose help is laid out by `Formatter`."""

    formatter_class = Formatter


class Option(click.Option):
    """An option that is explained in the language of the reader."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """How it is written, and what it does with its default and range."""
        record = super().get_help_record(ctx)
        if record is None:
            return None
        lang, (term, extra) = lang_of(ctx), record
        if lang != "en":
            for word in ("required", "default"):
                extra = extra.replace(said(f"help.{word}", "en"), said(f"help.{word}", lang))
        text = said(_option_id(_about(ctx.command), self), lang)
        return term, f"{text}  {extra}" if extra else text


def _option_id(about: str, option: click.Parameter) -> str:
    name = max(option.opts, key=len).lstrip("-")
    own = f"option.{about}.{name}"
    return own if known(own) else f"option.{name}"


def option(*names: str, **settings: Any) -> Callable[[_F], _F]:
    """As `click.option`, explained from the catalog."""
    return click.option(*names, cls=Option, **settings)


class Command(click.Command):
    """A command that is explained in the language of the reader, and complains in it."""

    context_class = Context
    # What click would complain of in English only: see `parse_args`.
    allow_extra_args = True

    def __init__(self, *args: Any, about: str | None = None, **settings: Any) -> None:
        """about: what its texts are called in the catalog; by default its name."""
        super().__init__(*args, **settings)
        self.about = about or str(self.name)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments, once it is known in which language to complain of them; only a group may leave some over."""
        ctx.meta.setdefault(_WANTED, wanted_lang(args))
        try:
            left = super().parse_args(ctx, args)
        except click.BadOptionUsage as error:
            error.ctx = error.ctx or ctx
            raise
        if left and not isinstance(self, click.Group) and not ctx.resilient_parsing:
            raise click.UsageError(said("usage.extra", lang_of(ctx), {"values": left}), ctx)
        return left

    def invoke(self, ctx: click.Context) -> Any:
        """The command; errors of ours become one complaint."""
        try:
            return super().invoke(ctx)
        except GpurulesError as error:
            raise Failure(error) from error

    def format_usage(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The line that shows what the command takes."""
        pieces = " ".join(self.collect_usage_pieces(ctx))
        formatter.write_usage(ctx.command_path, pieces, prefix=said("help.usage", lang_of(ctx)))

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """What the command does, with examples."""
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text("\n\n".join(_help_parts(self.about, lang_of(ctx))))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options."""
        asked = self.get_help_option(ctx)
        if asked is not None:
            asked.help = said("option.help", lang_of(ctx))
        options = [param for param in self.get_params(ctx) if isinstance(param, click.Option)]
        records = [record for param in options if (record := param.get_help_record(ctx)) is not None]
        with formatter.section(said("help.options", lang_of(ctx))):
            formatter.write_dl(records)


class Group(Command, click.Group):
    """A group of commands, explained in the language of the reader."""

    command_class = Command
    group_class = type

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options, and the commands with what they do."""
        Command.format_options(self, ctx, formatter)
        lang = lang_of(ctx)
        rows = [(name, said(f"help.{_about(self.commands[name])}", lang)) for name in self.list_commands(ctx)]
        with formatter.section(said("help.commands", lang)):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name."""
        if args[0] not in self.commands and not args[0].startswith("-"):
            ctx.fail(said("usage.no_command", lang_of(ctx), {"name": args[0]}))
        return super().resolve_command(ctx, args)


def _about(command: click.Command) -> str:
    return command.about if isinstance(command, Command) else str(command.name)


def _help_parts(about: str, lang: Lang) -> Iterator[str]:
    long = f"help.{about}.long"
    yield said(long if known(long) else f"help.{about}", lang)
    if known(f"help.{about}.examples"):
        yield "\b\n" + said(f"help.{about}.examples", lang)
    if known(f"help.{about}.after"):
        yield said(f"help.{about}.after", lang)


def help_without_command(context: click.Context) -> None:
    """For a group that was given no command: its help, as a complaint."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)


# --- complaints ---------------------------------------------------------------------------------------------------


def complaint(error: click.ClickException, lang: Lang) -> str:
    """What is wrong with the arguments or the input. Where click has only English words for it, they stay."""
    if isinstance(error, Failure):
        return error.told.said(lang)
    context = error.ctx if isinstance(error, click.UsageError) else None
    text = _usage_fault(error, lang) or error.format_message()
    return f"{text}\n{said('usage.try_help', lang, {'command': context.command_path})}" if context else text


def _usage_fault(error: click.ClickException, lang: Lang) -> str | None:
    """The fault in our words, None where click's do."""
    if lang == "en":
        return None
    if isinstance(error, click.NoSuchOption):
        return said("usage.no_option", lang, {"name": error.option_name})
    if isinstance(error, click.BadOptionUsage) and error.ctx is not None:
        return said(_option_fault(error.option_name, error.ctx), lang, {"name": error.option_name})
    if isinstance(error, click.BadParameter) and error.param is not None:
        name = error.param.get_error_hint(error.ctx) if error.ctx else str(error.param.name)
        if isinstance(error, click.MissingParameter):
            return said("usage.missing", lang, {"name": name})
        return said("usage.bad_value", lang, {"name": name, "text": _value_fault(error.param.type) or error.message})
    return None


def _option_fault(name: str, context: click.Context) -> str:
    """A known option is used wrongly where its value is missing, or where it is a flag and was given one."""
    flags = (o for o in context.command.params if isinstance(o, click.Option) and o.is_flag)
    return "usage.takes_no_value" if any(name in (*o.opts, *o.secondary_opts) for o in flags) else "usage.needs_value"


def _value_fault(kind: click.ParamType[Any]) -> Message | None:
    """What a value must be, where its type says so; what a callback of ours says stays."""
    if isinstance(kind, click.Choice):
        return Message("usage.one_of", values=[*kind.choices])
    if isinstance(kind, click.IntRange | click.FloatRange):
        return Message("usage.range", low=kind.min, high=kind.max)
    if isinstance(kind, click.DateTime):
        return Message("usage.date")
    return Message("usage.path") if isinstance(kind, click.Path) else None
