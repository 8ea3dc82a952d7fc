"""`fix` and `ask`: what is done step by step, with the user.

May live here: the options of these commands, who is at the other end, exit codes. Must not: the order of fixes, the
choice of questions, words.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..messages import said
from .helping import Command, option
from .inputs import failure, inputs_of, read, saved_report, shown
from .options import NEW_FILE, Common, common_options, input_options, more_formats, python_option, question_option
from .output import confirm, emit, emit_json, look, save, tell

if TYPE_CHECKING:
    from ..reasoning.dialogue import Dialogue
    from ..report.model import Report


@click.command(cls=Command)
@option("--in", "source", default="last", metavar="REPORT.json|last")
@option("--apply", is_flag=True)
@option("--yes", is_flag=True)
@common_options
@more_formats("bash", "powershell")
@click.pass_context
def fix(context: click.Context, *, source: str, apply: bool, yes: bool, common: Common) -> None:
    """`gpurules fix`."""
    from .. import pipeline
    from ..report.fix_text import fix_document, render_fix, render_script

    report = pipeline.planned(saved_report(source), common.lang, common.engine, common.knowledge)
    report = pipeline.mirrored(report, common.mirror, common.knowledge)
    if apply:
        context.exit(pipeline.apply_plan(report, common.engine, common.knowledge, confirm(yes), tell))
    if common.format == "json":
        emit_json(fix_document(report))
    elif common.format == "text":
        emit(render_fix(report, look=look(), verbose=common.detail == "all"))
    else:
        emit(render_script(report, "bash" if common.format == "bash" else "powershell"))


@click.command(cls=Command)
@input_options
@question_option
@option("--probe/--no-probe", default=False)
@python_option
@option("--in", "source", metavar="FILE|last")
@option("--resume", metavar="FILE")
@option("--save", "target", type=NEW_FILE, metavar="FILE")
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
    """`gpurules ask`."""
    from .. import pipeline

    if source and resume:
        raise click.UsageError(said("usage.two_beginnings", common.lang))
    inputs = inputs_of(common, reports, facts, question=question, probe=probe, python=python)
    report, saved = _beginning(resume or source)
    if probe:
        tell(said("ask.probing", common.lang))
    dialogue = pipeline.dialogue(inputs, report=report, saved=saved)
    _converse(dialogue, target, common)
    if target is not None:
        tell(said("ask.saved", common.lang, {"path": shown(str(target))}))
    result = dialogue.report()
    save(result, common)
    if common.format == "text":
        from ..report.text import render_text

        emit("\n" + render_text(result, lang=common.lang, look=look(), detail=common.detail))
    context.exit(result.exit_status("error"))


def _beginning(source: str | None) -> tuple[Report | None, object]:
    """The report, or the saved dialogue, that a dialogue begins with."""
    if source is None:
        return None, None
    if source != "last":
        try:
            data = json.loads(read(source))
        except (ValueError, RecursionError):
            data = None
        if isinstance(data, dict) and str(data.get("schema", "")).startswith("gpurules.dialogue/"):
            return None, data
    return saved_report(source), None


def _converse(dialogue: Dialogue, target: Path | None, common: Common) -> None:
    """The dialogue with whoever is at the other end; what is kept is written at once."""
    from ..asking import Conversation, Exchange, Lines, Pipe, Stopped, Terminal
    from ..report.ask_text import AskDrawing
    from ..report.state import write_private

    def keep() -> None:
        if target is not None:
            try:
                write_private(target, json.dumps(dialogue.to_json(), ensure_ascii=False, indent=1) + "\n")
            except OSError as error:
                raise failure(str(target), error) from error

    def emit_turn(turn: dict[str, Any]) -> None:
        emit_json(turn, indent=None)

    keep()
    stream = sys.stdin.buffer if sys.stdin else None
    if common.format == "json":
        Exchange(dialogue, Pipe(stream), emit_turn, keep).run(lambda: dialogue.report().to_dict())
        return
    drawing = AskDrawing(common.lang, look())
    typed = bool(sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty())
    lines: Lines = Terminal() if typed else Pipe(stream, lambda text: emit(drawing.fitted(text)))
    try:
        Conversation(dialogue, lines, emit, drawing, keep).run()
    except Stopped:
        raise KeyboardInterrupt from None
