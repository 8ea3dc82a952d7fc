"""The command line: arguments in, a rendered result out.

May live here: options, reading input files, choosing a renderer, exit codes. Must not: any logic of diagnosis.
Everything but click is imported inside the command that needs it, so that `--help` and `--version` answer at once.

Exit status: 0 nothing at or above --fail-on, 1 something, 2 usage, input or tool error, 130 interrupted.
"""

from __future__ import annotations

import errno
import functools
import gc
import io
import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, cast

import click

if TYPE_CHECKING:
    from . import pipeline
    from .reasoning.dialogue import Dialogue
    from .report.layout import Look
    from .report.model import FailOn, Lang, Report
    from .report.text import Detail

MAX_INPUT = 64 * 1024 * 1024  # bytes of one input file; readers keep less
_WIDTHS = (40, 100)  # narrower terminals wrap by themselves, wider lines are hard to read

_MORE_FORMS = "_more_forms"

_F = TypeVar("_F", bound=Callable[..., Any])


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


class Failure(click.ClickException):
    """An input or tool error: one line on stderr, status 2."""

    exit_code = 2


def main() -> NoReturn:
    """The console script: runs the command and leaves with its status."""
    # Loading the knowledge makes many objects and no garbage; looking for it after every 700 costs a tenth of the run.
    gc.set_threshold(50_000, 20, 100)
    try:
        code = cli.main(prog_name="gpurules", standalone_mode=False)
    except click.UsageError as error:
        hint = f"\nTry '{error.ctx.command_path} --help'." if error.ctx else ""
        code = _complain(error.format_message() + hint)
    except click.ClickException as error:
        code = _complain(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        code = 130
    except Exception as error:
        if os.environ.get("GPURULES_DEBUG"):
            raise
        code = _complain(
            f"internal error: {type(error).__name__}: {error}\n"
            "This is a defect of gpurules; GPURULES_DEBUG=1 shows where it happened."
        )
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str) -> int:
    from .report.layout import clean, fit

    first, *rest = [clean(line) for line in message.splitlines()]
    text = "\n".join([f"gpurules: {first}", *rest])
    click.echo(fit(text, getattr(sys.stderr, "encoding", None) or "utf-8"), err=True)
    return 2


# --- options ------------------------------------------------------------------------------------------------------


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
            lang=_language(lang, form),
            engine=engine,
            knowledge=knowledge,
            today=today.date() if today else None,
            detail="all" if verbose else "verdict" if quiet else "normal",
            mirror=mirror,
        )
        return function(*args, common=common, **options)

    folder = click.Path(exists=True, file_okay=False, path_type=Path)
    forms = ["text", "json", *getattr(function, _MORE_FORMS, ())]
    for option in reversed(
        [
            click.option("--format", "format_", type=click.Choice(forms), default="text", help="Form."),
            click.option("--json", "as_json", is_flag=True, help="Short for --format json."),
            click.option("--lang", type=click.Choice(["en", "zh"]), help="Language; by default that of the locale."),
            click.option(
                "--engine", type=click.Choice(["native", "durable", "both"]), default="native", help="Inference engine."
            ),
            click.option("--knowledge", type=folder, metavar="DIR", help="Another knowledge folder."),
            click.option(
                "--today", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE", help="The date to reckon ages from."
            ),
            click.option("--mirror", metavar="NAME", help="Name this mirror of the PyTorch index beside the original."),
            click.option("-v", "--verbose", is_flag=True, help="Evidence, sources and passed checks too."),
            click.option("-q", "--quiet", is_flag=True, help="Only the verdict and what to do."),
        ]
    ):
        with_common = option(with_common)
    return cast(_F, with_common)


def _language(wanted: Lang | None, form: str) -> Lang:
    """The language asked for, else the locale's. Where stdout cannot show Chinese, asking for it means UTF-8."""
    from .messages import locale_lang
    from .report.layout import can_show

    lang = wanted or locale_lang()
    if lang == "zh" and form != "json" and not can_show("中文", _encoding()):
        if wanted is None:
            return "en"
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")
    return lang


def _input_options(function: _F) -> _F:
    for option in (
        click.option(
            "--facts", "facts", multiple=True, metavar="FILE", help="Facts in YAML or JSON; - is stdin. Repeatable."
        ),
        click.option(
            "--report", "reports", multiple=True, metavar="FILE", help="A pasted text; - is stdin. Repeatable."
        ),
    ):
        function = option(function)
    return function


def _goals(_context: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    goals: dict[str, str] = {}
    for value in values:
        name, equals, wanted = value.partition("=")
        if not equals or not name.strip():
            raise click.BadParameter(f"{value!r} is not of the form NAME=VALUE")
        if name.strip() in goals:
            raise click.BadParameter(f"{name.strip()!r} is given twice")
        goals[name.strip()] = wanted.strip()
    return goals


# --- commands -----------------------------------------------------------------------------------------------------


def _show_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("gpurules")
    except PackageNotFoundError:  # run from a source tree that was never installed
        number = "(not installed)"
    click.echo(f"gpurules {number}")
    context.exit()


@click.group(
    invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Show the version."
)
@click.pass_context
def cli(context: click.Context) -> None:
    """Will this GPU, driver, system and PyTorch build work together; if not, why, and what exactly to do."""
    _help_without_command(context)


def _help_without_command(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)


@cli.command(short_help="Find what is wrong and what to do about it.")
@_input_options
@click.option("--question", metavar="TEXT", help="What you want to know, in your words.")
@click.option(
    "--goal", "goals", multiple=True, callback=_goals, metavar="NAME=VALUE", help="What you want. Repeatable."
)
@click.option("--probe/--no-probe", default=None, help="Look at this machine; default: unless it is described.")
@click.option("--python", metavar="PATH", help="The interpreter that runs torch.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "never"]),
    default="error",
    show_default=True,
    help="Exit with 1 from this severity on.",
)
@click.option("--no-save", is_flag=True, help="Do not keep the report for `gpurules why`.")
@click.option("--validate", "validated", is_flag=True, help="Run checks on the device too (up to a minute).")
@common_options
@more_formats("markdown")
@click.pass_context
def diagnose(
    context: click.Context,
    *,
    reports: tuple[str, ...],
    facts: tuple[str, ...],
    question: str | None,
    goals: dict[str, str],
    probe: bool | None,
    python: str | None,
    fail_on: FailOn,
    no_save: bool,
    validated: bool,
    common: Common,
) -> None:
    """Find what is wrong, on this machine or in what you paste, and what to do about it.

    \b
    gpurules diagnose                         this machine
    gpurules diagnose --report issue.txt      a pasted collect_env, nvidia-smi, traceback, log ...
    nvidia-smi | gpurules diagnose --report -
    """
    from .report.text import render_text

    inputs = _inputs(common, reports, facts, question=question, goals=goals, probe=probe, python=python)
    if validated:
        inputs = replace(inputs, validate=True, progress=_progress(common))
    with _pipeline() as pipeline:
        report = pipeline.diagnose(inputs)
    if not no_save:
        _save(report, common)
    if common.format == "json":
        _emit(report.to_json(ascii_only=not _utf8()) + "\n")
    elif common.format == "markdown":
        from .report.layout import fit
        from .report.markdown import render_markdown

        _emit(fit(render_markdown(pipeline.redacted(report), lang=common.lang), _encoding()))
    else:
        _emit(render_text(report, lang=common.lang, look=_look(), detail=common.detail))
    context.exit(report.exit_status(fail_on))


@cli.command(short_help="Say which torch to install.")
@_input_options
@click.option("--gpu", multiple=True, metavar="NAME", help="For this card; repeatable.")
@click.option("--driver", metavar="VERSION", help="For this driver, such as 535.183.")
@click.option("--python", metavar="VERSION", help="For this Python, such as 3.12.")
@click.option(
    "--os",
    type=click.Choice(["linux", "windows", "wsl", "aarch64", "macos"]),
    help="For this system.",
)
@click.option("--goal", "goals", multiple=True, callback=_goals, metavar="NAME=VALUE", help="What you want.")
@click.option("--probe/--no-probe", default=None, help="Look at this machine; default: unless it is described.")
@common_options
@click.pass_context
def recommend(
    context: click.Context,
    /,
    *,
    reports: tuple[str, ...],
    facts: tuple[str, ...],
    gpu: tuple[str, ...],
    goals: dict[str, str],
    probe: bool | None,
    common: Common,
    **machine: str | None,
) -> None:
    """Say which torch to install here, or on the machine described.

    \b
    gpurules recommend                                        for this machine
    gpurules recommend --gpu "RTX 3060" --driver 535 --os linux --python 3.12
    """
    from .report.recommend_text import render_recommend

    said = [f"{name}={value}" for name, value in machine.items() if value is not None]
    said += [f"gpu={name}" for name in gpu]
    inputs = _inputs(common, reports, facts, goals=goals, probe=probe, described=said)
    with _pipeline() as pipeline:
        result = pipeline.recommend(inputs)
    if common.format == "json":
        _emit(result.to_json(ascii_only=not _utf8()) + "\n")
    else:
        _emit(render_recommend(result, lang=common.lang, look=_look(), detail=common.detail))
    context.exit(result.exit_status())


@cli.command(short_help="Say whether a model, a method and cards go together.")
@_input_options
@click.option("--question", metavar="TEXT", help="What you want to know, in your words; options add to it.")
@click.option("--model", metavar="NAME", help="A model of the catalog, such as Llama-3.1-8B.")
@click.option(
    "--params-b", metavar="N", type=click.FloatRange(0.001, 99_999), help="Its billions of parameters instead."
)
@click.option(
    "--method",
    type=click.Choice(["full", "lora", "qlora", "pretrain", "inference"]),
    help="What is to be done with it.",
)
@click.option(
    "--precision",
    type=click.Choice(["mixed", "fp32", "pure-bf16", "int8", "int4"]),
    help="Of training (mixed by default), or of the weights of inference (16 bits by default).",
)
@click.option("--batch", metavar="N", type=click.IntRange(1, 100_000), help="Sequences a card, or served at once.")
@click.option("--seq", metavar="N", type=click.IntRange(1, 10_000_000), help="Tokens of a sequence.")
@click.option(
    "--optimizer", type=click.Choice(["adamw", "adamw8bit", "sgd", "adafactor", "lion"]), help="AdamW by default."
)
@click.option(
    "--shard", type=click.Choice(["full", "none"]), help="Divide the state among the cards (default), or not (DDP)."
)
@click.option(
    "--gpu", "gpus", multiple=True, metavar="CARDS", help='Cards of the machine, such as "2x NAME". Repeatable.'
)
@click.option("--option", "options", multiple=True, metavar="CARD", help="A card to choose from. Repeatable.")
@click.option("--budget", metavar="N", type=click.IntRange(1, 99_999_999), help="What may be spent on a card.")
@click.option("--currency", type=click.Choice(["USD", "CNY"]), default="USD", show_default=True, help="Of the budget.")
@click.option("--use", metavar="TEXT", help="What the cards are for, in words: training, inference ...")
@click.option("--psu-w", metavar="N", type=click.IntRange(1, 100_000), help="Watts of the power supply.")
@click.option("--cores", metavar="N", type=click.IntRange(1, 4096), help="Processor cores, for the DataLoader.")
@click.option("--probe/--no-probe", default=False, help="Plan for the GPUs of this machine.")
@click.option("--no-save", is_flag=True, help="Do not keep the report for `gpurules why`.")
@common_options
@click.pass_context
def plan(
    context: click.Context,
    /,
    *,
    reports: tuple[str, ...],
    facts: tuple[str, ...],
    question: str | None,
    gpus: tuple[str, ...],
    options: tuple[str, ...],
    probe: bool,
    no_save: bool,
    common: Common,
    **wishes: Any,
) -> None:
    """Say whether a model and method fit on cards, which card to take, and whether the power supply suffices.

    \b
    gpurules plan --model Llama-3.1-8B --method full --gpu "2x A10"
    gpurules plan --params-b 13 --method inference --option A10 --option L4
    gpurules plan --gpu "2x A10" --psu-w 1000
    gpurules plan --question "Which card runs a 14B model for 800 USD?"

    Exit status 0 for yes, 1 for anything else.
    """
    from .report.text import render_text

    inputs = _inputs(common, reports, facts, question=question, probe=probe)
    with _pipeline() as pipeline:
        report = pipeline.plan(inputs, _wishes(wishes, options), gpus)
    if not no_save:
        _save(report, common)
    if common.format == "json":
        _emit(report.to_json(ascii_only=not _utf8()) + "\n")
    else:
        _emit(render_text(report, lang=common.lang, look=_look(), detail=common.detail))
    context.exit(int(report.plan is None or report.plan.verdict != "yes"))


# What the options of `plan` are called as goals, and the words that the phrase catalog knows for their values.
_WISHES = {"params_b": "model_params_b", "precision": "dtype", "batch": "batch_size", "seq": "context_length",
           "use": "task", "cores": "cpu_cores"}  # fmt: skip
_IN_WORDS = {"full": "full fine-tuning", "mixed": "mixed precision", "pure-bf16": "pure bf16", "none": "ddp",
             "adamw8bit": "adamw_8bit"}  # fmt: skip


def _wishes(values: dict[str, Any], options: Sequence[str]) -> dict[str, str]:
    """The options of `plan` as goals."""
    given = {name: value for name, value in values.items() if value is not None}
    if "budget" not in given:
        given.pop("currency", None)
    if given.get("shard") == "full":
        given["shard"] = "fsdp"
    wishes = {_WISHES.get(name, name): _IN_WORDS.get(str(value), str(value)) for name, value in given.items()}
    return wishes | ({"options": ", ".join(options)} if options else {})


_in_option = click.option(
    "--in", "source", default="last", metavar="REPORT.json|last", help="The report to ask about; default: the last one."
)


@cli.command(short_help="Explain a finding, fix, build or fact.")
@click.argument("target", default="1")
@_in_option
@click.option("--all", "every", is_flag=True, help="The other ways to conclude it too.")
@common_options
@more_formats("mermaid")
def why(target: str, source: str, every: bool, common: Common) -> None:
    """Explain a finding, fix, build or fact of a report (by number, id or torch==VERSION), down to what was read."""
    from .report.proof_text import render_mermaid, render_proofs

    report = _saved_report(source)
    with _pipeline() as pipeline:
        proofs = pipeline.why(
            report, target, common.lang, every=every, knowledge=common.knowledge, engine=common.engine
        )
    if common.format == "json":
        _emit_json({"schema": "gpurules.why/1", "target": target, "proofs": [proof.to_dict() for proof in proofs]})
    elif common.format == "mermaid":
        _emit(render_mermaid(proofs))
    else:
        pages = pipeline.pages(common.knowledge)
        _emit(render_proofs(proofs, lang=common.lang, look=_look(), detail=common.detail, pages=pages))


@cli.command("why-not", short_help="Explain why a cause, fix or build does not hold.")
@click.argument("target")
@_in_option
@common_options
def why_not(target: str, source: str, common: Common) -> None:
    """Explain why a cause, fix, build, rule or derived fact does not hold, and what would change it.

    \b
    gpurules why-not torch==2.15.0            also "torch>=2.15" and torch==2.15+cu130
    gpurules why-not driver_not_installed
    """
    from .report.explain_text import render_why_not

    report = _saved_report(source)
    with _pipeline() as pipeline:
        answer = pipeline.why_not(report, target, common.lang, knowledge=common.knowledge, engine=common.engine)
    _emit_answer(answer, render_why_not, common)


@cli.command("what-if", short_help="Show what changes of the machine would do.")
@click.argument("changes", nargs=-1, required=True, metavar="CHANGE...")
@_in_option
@common_options
def what_if(changes: tuple[str, ...], source: str, common: Common) -> None:
    """Show what changes of the machine would do to the findings and the recommended build.

    \b
    gpurules what-if driver=580.95 torch=2.15.0+cu130 python=3.12 gpu="RTX 4090" os=windows
    gpurules what-if env:NAME=VALUE unset:NAME
    """
    from .report.explain_text import render_what_if

    report = _saved_report(source)
    with _pipeline() as pipeline:
        answer = pipeline.what_if(report, changes, common.lang, knowledge=common.knowledge, engine=common.engine)
    _emit_answer(answer, render_what_if, common)


@cli.command("how-to", short_help="Find the smallest changes that reach a goal.")
@click.argument("goal")
@_in_option
@common_options
@click.pass_context
def how_to(context: click.Context, goal: str, source: str, common: Common) -> None:
    """Find the smallest sets of changes after which a goal holds. Exit status 1 where there is none.

    \b
    gpurules how-to "torch>=2.15"             a build that runs here; also torch==2.15.0+cu132
    gpurules how-to driver_too_old_for_wheel  to get rid of a cause
    gpurules how-to no-errors                 or: cuda, which is any build for the GPU
    """
    from .report.explain_text import render_how_to

    report = _saved_report(source)
    with _pipeline() as pipeline:
        answer = pipeline.how_to(report, goal, common.lang, knowledge=common.knowledge, engine=common.engine)
    _emit_answer(answer, render_how_to, common)
    context.exit(int(not answer.holds and not answer.ways))


@cli.command(short_help="Print the fixes in order, as text or script; or carry them out.")
@click.option("--in", "source", default="last", metavar="REPORT.json|last", help="The report whose problems to fix.")
@click.option("--apply", is_flag=True, help="Run what can be undone and needs no root, in the diagnosed Python.")
@click.option("--yes", is_flag=True, help="With --apply: do not ask before each command.")
@common_options
@more_formats("bash", "powershell")
@click.pass_context
def fix(context: click.Context, *, source: str, apply: bool, yes: bool, common: Common) -> None:
    """Print what to do about all problems of a report, in order: as text, as JSON or as a script to read and run.

    \b
    gpurules fix                              what to do, with reasons, risks and undo
    gpurules fix --format bash > fix.sh       the same as a script (or --format powershell)
    gpurules fix --apply                      run the steps that are safe to run here, one by one
    """
    from .report.fix_text import fix_document, render_fix, render_script

    with _pipeline() as pipeline:
        report = pipeline.planned(_saved_report(source), common.lang, common.engine, common.knowledge)
        report = pipeline.mirrored(report, common.mirror, common.knowledge)
        if apply:
            context.exit(pipeline.apply_plan(report, common.engine, common.knowledge, _confirm(yes), _tell))
    if common.format == "json":
        _emit_json(fix_document(report))
    elif common.format == "text":
        _emit(render_fix(report, look=_look(), verbose=common.detail == "all"))
    else:
        _emit(render_script(report, "bash" if common.format == "bash" else "powershell"))


@cli.command(short_help="Find the cause by answering questions.")
@_input_options
@click.option("--question", metavar="TEXT", help="What goes wrong, in your words.")
@click.option("--probe/--no-probe", default=False, help="Look at this machine first.")
@click.option("--python", metavar="PATH", help="The interpreter that runs torch.")
@click.option("--in", "source", metavar="FILE|last", help="Begin with a report, or with a saved dialogue.")
@click.option("--resume", metavar="FILE", help="Go on with a saved dialogue.")
@click.option("--save", "target", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Keep it.")
@common_options
@click.pass_context
def ask(
    context: click.Context,
    *,
    reports: tuple[str, ...],
    facts: tuple[str, ...],
    question: str | None,
    probe: bool,
    python: str | None,
    source: str | None,
    resume: str | None,
    target: Path | None,
    common: Common,
) -> None:
    """Find the cause by answering questions: each time the one that narrows it down best.

    \b
    gpurules ask                         from nothing but what you tell
    gpurules ask --probe                 from this machine
    gpurules ask --in last               from where the last report was undecided
    """
    if source and resume:
        raise click.UsageError("--in and --resume both say where to begin")
    inputs = _inputs(common, reports, facts, question=question, probe=probe, python=python)
    from .report.messages import Words

    report, saved = _beginning(resume or source)
    words = Words(common.lang)
    if probe:
        _tell(words("ask.probing"))
    with _pipeline() as pipeline:
        dialogue = pipeline.dialogue(inputs, report=report, saved=saved)
    _converse(dialogue, target, common)
    if target is not None:
        _tell(words("ask.saved", path=_shown(str(target))))
    result = dialogue.report()
    _save(result, common)
    if common.format == "text":
        from .report.text import render_text

        _emit("\n" + render_text(result, lang=common.lang, look=_look(), detail=common.detail))
    context.exit(result.exit_status("error"))


def _beginning(source: str | None) -> tuple[Report | None, object]:
    """The report, or the saved dialogue, that a dialogue begins with."""
    import json

    if source is None:
        return None, None
    if source != "last":
        try:
            data = json.loads(_read(source))
        except (ValueError, RecursionError):
            data = None
        if isinstance(data, dict) and str(data.get("schema", "")).startswith("gpurules.dialogue/"):
            return None, data
    return _saved_report(source), None


def _converse(dialogue: Dialogue, target: Path | None, common: Common) -> None:
    """The dialogue with whoever is at the other end; what is kept is written at once."""
    import json

    from .asking import Conversation, Exchange, Lines, Pipe, Stopped, Terminal
    from .report.ask_text import AskDrawing
    from .report.state import write_private

    def keep() -> None:
        if target is not None:
            try:
                write_private(target, json.dumps(dialogue.to_json(), ensure_ascii=False, indent=1) + "\n")
            except OSError as error:
                raise Failure(f"{_shown(str(target))}: {_reason(error)}") from error

    def emit(turn: dict[str, Any]) -> None:
        _emit(json.dumps(turn, ensure_ascii=not _utf8()) + "\n")

    keep()
    stream = sys.stdin.buffer if sys.stdin else None
    if common.format == "json":
        Exchange(dialogue, Pipe(stream), emit, keep).run(lambda: dialogue.report().to_dict())
        return
    drawing = AskDrawing(common.lang, _look())
    typed = bool(sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty())
    lines: Lines = Terminal() if typed else Pipe(stream, lambda text: _emit(drawing.fitted(text)))
    try:
        Conversation(dialogue, lines, _emit, drawing, keep).run()
    except Stopped:
        raise KeyboardInterrupt from None


@cli.command(short_help="Print what can be seen of this machine.")
@click.option("--python", metavar="PATH", help="The interpreter that runs torch.")
@click.option(
    "--save",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write facts and raw outputs there, for --facts.",
)
@click.option("--redact/--no-redact", default=True, show_default=True, help="Replace names, addresses and serials.")
@click.option("--show-redactions", is_flag=True, help="List on stderr what was replaced.")
@click.option("--environments", is_flag=True, help="Only list the Python environments and which one is judged.")
@common_options
def probe(
    python: str | None, target: Path | None, redact: bool, show_redactions: bool, environments: bool, common: Common
) -> None:
    """Print what can be seen of this machine, as facts that --facts reads."""
    from .report.facts_text import facts_json, facts_yaml, redactions

    inputs = _inputs(common, probe=True, python=python)
    if environments:
        _list_environments(inputs, common, redact=redact)
        return
    with _pipeline() as pipeline:
        if target is not None:
            _save_snapshot(pipeline.snapshot(inputs, redact=redact), target, common, show_redactions=show_redactions)
            return
        facts = pipeline.probe(inputs, redact=redact)
    if show_redactions:
        for line in redactions(facts):
            click.echo(line, err=True)
    _emit(facts_json(facts, ascii_only=not _utf8()) if common.format == "json" else facts_yaml(facts))


def _list_environments(inputs: pipeline.Inputs, common: Common, *, redact: bool) -> None:
    """For the screen paths stay as they are, because --python takes them; JSON is made to be handed on."""
    with _pipeline() as pipeline:
        if common.format == "json":
            from .report.facts_text import facts_json

            facts = pipeline.environments(inputs, redact=redact)
            _emit(facts_json(facts, ascii_only=not _utf8()))
        else:
            from .report.environments_text import render_environments

            facts = pipeline.environments(inputs, redact=False)
            _emit(render_environments(facts, lang=common.lang, look=_look()))


def _save_snapshot(snapshot: dict[str, Any], target: Path, common: Common, *, show_redactions: bool) -> None:
    from .facts import Fact
    from .report.facts_text import redactions
    from .report.snapshot_text import snapshot_json, snapshot_yaml

    if show_redactions:
        facts = [Fact(kind, fields) for entry in snapshot["facts"] for kind, fields in entry.items()]
        for line in redactions(facts):
            click.echo(line, err=True)
    text = snapshot_json(snapshot) if common.format == "json" else snapshot_yaml(snapshot)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Failure(f"{_shown(str(target))}: {_reason(error)}") from error


@cli.command(short_help="Check the files of a project against a machine.")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@_input_options
@click.option("--probe/--no-probe", default=None, help="Look at this machine; default: unless it is described.")
@common_options
@click.pass_context
def check(
    context: click.Context,
    path: Path,
    *,
    reports: tuple[str, ...],
    facts: tuple[str, ...],
    probe: bool | None,
    common: Common,
) -> None:
    """Say whether what a project asks for works here, or on the machine described.

    Reads requirements*.txt, pyproject.toml, environment.yml, Dockerfile and compose files; PATH is a file or their
    folder. Nothing is installed, built or run.
    """
    from .report.text import render_text

    inputs = _inputs(common, reports, facts, probe=probe)
    with _pipeline() as pipeline:
        report = pipeline.check(inputs, path)
    if common.format == "json":
        _emit(report.to_json(ascii_only=not _utf8()) + "\n")
    else:
        _emit(render_text(report, lang=common.lang, look=_look(), detail=common.detail))
    context.exit(report.exit_status("error"))


# --- the knowledge ------------------------------------------------------------------------------------------------


@cli.group(invoke_without_command=True)
@click.pass_context
def rules(context: click.Context) -> None:
    """List, show, check and test the rules."""
    _help_without_command(context)


@rules.command("list")
@common_options
def rules_list(common: Common) -> None:
    """List every rule: id, severity, status, title."""
    with _pipeline() as pipeline:
        rows = pipeline.rules_list(common.knowledge, common.lang)
    if common.format == "json":
        _emit_json([row.to_dict() for row in rows])
        return
    widest = max((len(row.id) for row in rows), default=0)
    _emit_lines(f"{row.id:{widest}}  {row.severity:7}  {row.status:10}  {row.title}" for row in rows)


@rules.command("show")
@click.argument("rule_id", metavar="ID")
@common_options
def rules_show(rule_id: str, common: Common) -> None:
    """Show one rule, as its file says it."""
    with _pipeline() as pipeline:
        rule = pipeline.rules_show(rule_id, common.knowledge, common.lang)
    if common.format == "json":
        _emit_json(rule.to_dict())
    else:
        _emit_lines([f"# {rule.path}", *rule.text.splitlines()])


@rules.command("check", short_help="Check a knowledge folder.")
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path))
@common_options
@click.pass_context
def rules_check(context: click.Context, folder: Path | None, common: Common) -> None:
    """Check a knowledge folder: names, sources, languages, examples, contradictions. All errors at once."""
    with _pipeline() as pipeline:
        problems = pipeline.rules_check(folder or common.knowledge, common.lang)
    if common.format == "json":
        _emit_json({"ok": not problems, "problems": problems})
    else:
        _emit_lines(problems)
    context.exit(int(bool(problems)))


@rules.command("test")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@common_options
@click.pass_context
def rules_test(context: click.Context, ids: tuple[str, ...], common: Common) -> None:
    """Run the examples of the rules: of all, or of those named."""
    with _pipeline() as pipeline:
        results = pipeline.rules_test(common.knowledge, ids)
    failed = [result for result in results if not result.ok]
    if common.format == "json":
        _emit_json({"ok": not failed, "results": [result.to_dict() for result in results]})
    else:
        shown = results if common.detail == "all" else failed
        lines = [f"{'ok' if r.ok else 'FAILED':6}  {r.rule} {r.example}  {r.message}".rstrip() for r in shown]
        _emit_lines([*lines, f"{len(results) - len(failed)} of {len(results)} examples as expected"])
    context.exit(int(bool(failed)))


@rules.command("coverage", short_help="Show where each claim of the guides is carried.")
@click.option("--claims", metavar="FILE", help="A file of claims whose ids must all be in the ledger; - is stdin.")
@common_options
@click.pass_context
def rules_coverage(context: click.Context, claims: str | None, common: Common) -> None:
    """Show the ledger of the guides' claims: verdict and carrier of each. Exit status 1 on a gap."""
    from .report.ledger_text import coverage_document, coverage_lines

    with _pipeline() as pipeline:
        given = (_shown(claims), _read(claims)) if claims else None
        lines, faults = pipeline.rules_coverage(common.knowledge, given, common.lang)
    if common.format == "json":
        _emit_json(coverage_document(lines, faults, common.lang))
    else:
        _emit_lines(coverage_lines(lines, faults, common.lang, gaps_only=common.detail == "verdict"))
    context.exit(int(bool(faults) or any(line.is_gap for line in lines)))


@rules.command("new", short_help="Write a rule with its three examples.")
@click.argument("rule_id", metavar="ID")
@click.option("--area", required=True, metavar="AREA", help="The folder that it belongs to.")
@click.option("--when", "condition", required=True, metavar="TYPE.FIELD=VALUE", help="The fact that it looks for.")
@click.option("--cause", required=True, metavar="CAUSE", help="The cause that it speaks for.")
@click.option(
    "--evidence",
    type=click.Choice(["decisive", "strong", "weak", "against", "excludes"]),
    default="strong",
    show_default=True,
    help="How strongly.",
)
@click.option("--source", default="https://", metavar="URL", help="The page that says so.")
@click.option(
    "--into", type=click.Path(file_okay=False, path_type=Path), default=Path("knowledge"), show_default=True,
    metavar="DIR", help="The knowledge folder to write to; use it with --knowledge DIR.",
)  # fmt: skip
@common_options
def rules_new(
    rule_id: str, area: str, condition: str, cause: str, evidence: str, source: str, into: Path, common: Common
) -> None:
    """Write a rule with its three examples: one that fires, a near miss, and one where the fact is not known.

    \b
    gpurules rules new old-glibc --area torch --when os.family=linux --cause cpu_only_wheel --into mine
    gpurules rules check mine
    """
    with _pipeline() as pipeline:
        path = pipeline.rules_new(
            into,
            common.today,
            id=rule_id,
            area=area,
            condition=condition,
            cause=cause,
            evidence=evidence,
            source=source,
        )
    if common.format == "json":
        _emit_json({"path": path.as_posix()})
    else:
        _emit_lines([path.as_posix()])


@rules.command("update", short_help="Check a newer catalog before use.")
@click.option("--check", "file", required=True, metavar="FILE", help="The catalog file; - is stdin.")
@common_options
@click.pass_context
def rules_update(context: click.Context, file: str, common: Common) -> None:
    """Check a newer catalog before use: what it would change, and every fault. Nothing is fetched or replaced.

    To use it, put it under facts/ in a folder of your own and give that folder as --knowledge.
    """
    from .report.ledger_text import update_document, update_lines

    with _pipeline() as pipeline:
        update = pipeline.rules_update(_shown(file), _read(file))
    if common.format == "json":
        _emit_json(update_document(update))
    else:
        _emit_lines(update_lines(update, common.lang))
    context.exit(int(bool(update.problems) or update.older))


@cli.command(short_help="List what the guides say that does not hold.")
@click.argument("claims", nargs=-1, metavar="[CLAIM]...")
@common_options
def errata(claims: tuple[str, ...], common: Common) -> None:
    """List what the guides say that is wrong or no longer holds, what holds instead, and where that can be read."""
    from .report.ledger_text import errata_document, errata_lines

    with _pipeline() as pipeline:
        found = pipeline.errata(common.knowledge)
        chosen = pipeline.chosen_errata(found, claims)
    if common.format == "json":
        _emit_json(errata_document(chosen, found, common.lang))
    else:
        _emit_lines(errata_lines(chosen, found, common.lang, _look().width))


@cli.command(short_help="Run checks on a device and compare them with what the rules predict.")
@click.option("--device", default="auto", show_default=True, metavar="DEVICE", help="auto, cpu, cuda or cuda:N.")
@click.option("--python", metavar="PATH", help="The interpreter that runs torch.")
@click.option("--only", multiple=True, metavar="CHECK", help="Only this check. Repeatable.")
@click.option(
    "--time", "seconds", type=click.FloatRange(1, 600), default=55, show_default=True, help="Seconds for all checks."
)
@click.option(
    "--share",
    type=click.FloatRange(0.01, 0.9),
    default=0.5,
    show_default=True,
    help="Of the free memory, which the checks stay below.",
)
@click.option("--no-save", is_flag=True, help="Do not keep the report for `gpurules why`.")
@common_options
@click.pass_context
def validate(
    context: click.Context,
    *,
    device: str,
    python: str | None,
    only: tuple[str, ...],
    seconds: float,
    share: float,
    no_save: bool,
    common: Common,
) -> None:
    """Run small computations on a device, each in a process of its own, and compare what comes of them with what the
    rules predict. A disagreement is a finding: the rules are wrong, or the machine is.

    Exit status 0 when every check that ran passed and was to pass, else 1.
    """
    from .report.validation_text import render_validation

    inputs = _inputs(common, probe=True, python=python)
    with _pipeline() as pipeline:
        result, report = pipeline.validate(inputs, device, only, seconds, share, _progress(common))
    if not no_save:
        _save(report, common)
    if common.format == "json":
        _emit(result.to_json(ascii_only=not _utf8()) + "\n")
    else:
        _emit(render_validation(result, lang=common.lang, look=_look(), detail=common.detail))
    context.exit(result.exit_status())


def _progress(common: Common) -> Callable[[Any, Any], None]:
    """Says on stderr which check runs and how it ended, where somebody watches or wants to know all."""
    from .report.messages import Words

    words = Words(common.lang)
    if common.detail == "verdict" or not (common.detail == "all" or sys.stderr.isatty()):
        return lambda _check, _outcome: None

    def tell(check: Any, outcome: Any) -> None:
        if outcome is None:
            _tell(words("validate.running", check=words(f"validate.check.{check.name}")))
        else:
            state = words(f"validate.state.{outcome.state}")
            _tell(words("validate.ran", check=words(f"validate.check.{check.name}"), state=state,
                        seconds=f"{outcome.seconds:.1f}"))  # fmt: skip

    return tell


def _confirm(yes: bool) -> Callable[[str, Sequence[str]], bool]:
    """Asks on stderr before a command runs; no answer means no."""

    def ask(_title: str, argv: Sequence[str]) -> bool:
        from .report.layout import clean
        from .report.quoting import posix

        click.echo(f"$ {clean(posix(argv))}", err=True)
        try:
            return yes or click.confirm("?", err=True)
        except click.Abort:
            return False

    return ask


def _tell(text: str) -> None:
    from .report.layout import clean, fit

    click.echo(fit(clean(text), getattr(sys.stderr, "encoding", None) or "utf-8"), err=True)


# --- input --------------------------------------------------------------------------------------------------------


@contextmanager
def _pipeline() -> Iterator[Any]:
    """The functions that do the work; their errors become ours."""
    from . import pipeline
    from .errors import GpurulesError

    try:
        yield pipeline
    except GpurulesError as error:
        raise Failure(str(error)) from error


def _inputs(
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
    from . import pipeline

    if [*reports, *facts].count("-") > 1:
        raise click.UsageError("stdin (-) can be read only once")
    names = _names([*reports, *facts])
    told = bool(reports or facts or question or any(text.startswith("gpu=") for text in described))
    return pipeline.Inputs(
        reports=[(names[path], _read(path)) for path in reports],
        facts=[(names[path], _read(path)) for path in facts],
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
    return {path: _shown(name) for path, name in names.items()}


def _shown(path: str) -> str:
    return "stdin" if path == "-" else click.format_filename(path)


def _read(path: str) -> bytes:
    try:
        if path == "-":
            data = sys.stdin.buffer.read(MAX_INPUT + 1) if sys.stdin else b""
        else:
            with open(path, "rb") as file:
                if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    _refuse_large(path, os.fstat(file.fileno()).st_size)
                data = file.read(MAX_INPUT + 1)
    except OSError as error:
        raise Failure(f"{_shown(path)}: {_reason(error)}") from error
    except ValueError as error:  # a NUL byte in the path
        raise Failure(f"{_shown(path)}: {error}") from error
    _refuse_large(path, len(data))
    return data


def _refuse_large(path: str, size: int) -> None:
    if size > MAX_INPUT:
        raise Failure(f"{_shown(path)}: too large, the limit is {MAX_INPUT // 1024 // 1024} MiB")


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()


def _saved_report(source: str) -> Report:
    from .report.state import last_report_path, load_report

    name = _shown(source)
    try:
        path = last_report_path() if source == "last" else Path(source)
        _refuse_large(name, path.stat().st_size)
        return load_report(path)
    except (OSError, RuntimeError) as error:  # RuntimeError: no home folder
        if source == "last":
            raise Failure("no report was kept here; run gpurules diagnose first, or name one with --in") from error
        raise Failure(f"{name}: {_reason(error)}") from error
    except ValueError as error:
        raise Failure(f"{name}: this is no report of gpurules (schema gpurules.report/1)") from error


# --- output -------------------------------------------------------------------------------------------------------


def _save(report: Report, common: Common) -> None:
    from .report.state import save_last

    try:
        save_last(report)
    except (OSError, RuntimeError) as error:  # RuntimeError: no home folder
        if common.detail == "all":
            click.echo(f"gpurules: the report was not kept: {error}", err=True)


def _look() -> Look:
    from .report.layout import Look

    low, high = _WIDTHS
    coloured = (
        bool(sys.stdout) and sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )
    width = min(max(shutil.get_terminal_size().columns, low), high)
    return Look(width=width, colour=coloured, encoding=_encoding())


def _encoding() -> str:
    return getattr(sys.stdout, "encoding", None) or "utf-8"


def _utf8() -> bool:
    return _encoding().lower().replace("-", "").startswith("utf8")


def _emit_answer(answer: Any, render: Callable[..., str], common: Common) -> None:
    if common.format == "json":
        _emit_json(answer.to_dict())
    else:
        with _pipeline() as pipeline:
            pages = pipeline.pages(common.knowledge)
        _emit(render(answer, lang=common.lang, look=_look(), detail=common.detail, pages=pages))


def _emit_json(value: Any) -> None:
    import json

    _emit(json.dumps(value, ensure_ascii=not _utf8(), indent=1) + "\n")


def _emit_lines(lines: Any) -> None:
    from .report.layout import clean_lines, fit

    cleaned = ("\n".join(clean_lines(line)) for line in lines)
    _emit(fit("".join(line + "\n" for line in cleaned), _encoding()))


def _emit(text: str) -> None:
    """Write to stdout. A reader that went away (`| head`) is not an error: the rest is dropped in silence."""
    if not sys.stdout:
        return
    try:
        click.echo(text, nl=False, color=True)  # colours are decided in `_look`
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains once more as it ends
        gone = isinstance(error, BrokenPipeError) or (sys.platform == "win32" and error.errno == errno.EINVAL)
        if not gone:
            raise Failure(f"stdout: {_reason(error)}") from error
