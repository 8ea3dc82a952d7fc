"""`diagnose`, `recommend`, `plan` and `check`: questions to the rules about a machine that is seen or described.

May live here: the options of these commands, choosing a renderer, exit codes. Must not: logic, words.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .helping import Command, option
from .inputs import inputs_of
from .options import (
    Common,
    common_options,
    goal_option,
    input_options,
    more_formats,
    no_save_option,
    probe_option,
    python_option,
    question_option,
)
from .output import emit_document, emit_fitted, progress, save

if TYPE_CHECKING:
    from ..report.model import FailOn


@click.command(cls=Command)
@input_options
@question_option
@goal_option
@probe_option
@python_option
@option("--fail-on", type=click.Choice(["error", "warning", "never"]), default="error", show_default=True)
@no_save_option
@option("--validate", "validated", is_flag=True)
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
    """`gpurules diagnose`."""
    from .. import pipeline
    from ..report.text import render_text

    inputs = inputs_of(common, reports, facts, question=question, goals=goals, probe=probe, python=python)
    if validated:
        inputs = replace(inputs, validate=True, progress=progress(common))
    report = pipeline.diagnose(inputs)
    if not no_save:
        save(report, common)
    if common.format == "markdown":
        from ..report.markdown import render_markdown

        emit_fitted(render_markdown(pipeline.redacted(report), lang=common.lang))
    else:
        emit_document(report, render_text, common)
    context.exit(report.exit_status(fail_on))


@click.command(cls=Command)
@input_options
@option("--gpu", multiple=True, metavar="NAME")
@option("--driver", metavar="VERSION")
@option("--python", metavar="VERSION")
@option("--os", type=click.Choice(["linux", "windows", "wsl", "aarch64", "macos"]))
@goal_option
@probe_option
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
    """`gpurules recommend`."""
    from .. import pipeline
    from ..report.recommend_text import render_recommend

    said = [f"{name}={value}" for name, value in machine.items() if value is not None]
    said += [f"gpu={name}" for name in gpu]
    result = pipeline.recommend(inputs_of(common, reports, facts, goals=goals, probe=probe, described=said))
    emit_document(result, render_recommend, common)
    context.exit(result.exit_status())


@click.command(cls=Command)
@input_options
@question_option
@option("--model", metavar="NAME")
@option("--params-b", "model_params_b", metavar="N", type=click.FloatRange(0.001, 99_999))
@option("--method", type=click.Choice(["full", "lora", "qlora", "pretrain", "inference"]))
@option("--precision", "dtype", type=click.Choice(["mixed", "fp32", "pure-bf16", "int8", "int4"]))
@option("--batch", "batch_size", metavar="N", type=click.IntRange(1, 100_000))
@option("--seq", "context_length", metavar="N", type=click.IntRange(1, 10_000_000))
@option("--optimizer", type=click.Choice(["adamw", "adamw8bit", "sgd", "adafactor", "lion"]))
@option("--shard", type=click.Choice(["full", "none"]))
@option("--offload", type=click.Choice(["cpu"]))
@option("--checkpointing", type=click.Choice(["yes", "no"]))
@option("--gpu", "gpus", multiple=True, metavar="CARDS")
@option("--option", "options", multiple=True, metavar="CARD")
@option("--budget", metavar="N", type=click.IntRange(1, 99_999_999))
@option("--currency", type=click.Choice(["USD", "CNY"]), default="USD", show_default=True)
@option("--use", "task", metavar="TEXT")
@option("--psu-w", metavar="N", type=click.IntRange(1, 100_000))
@option("--cores", "cpu_cores", metavar="N", type=click.IntRange(1, 4096))
@option("--probe/--no-probe", default=False)
@no_save_option
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
    """`gpurules plan`."""
    from .. import pipeline
    from ..report.text import render_text

    inputs = inputs_of(common, reports, facts, question=question, probe=probe)
    report = pipeline.plan(inputs, {**wishes, "options": ", ".join(options) or None}, gpus)
    if not no_save:
        save(report, common)
    emit_document(report, render_text, common)
    context.exit(int(report.plan is None or report.plan.verdict != "yes"))


@click.command(cls=Command)
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@input_options
@probe_option
@python_option
@common_options
@click.pass_context
def check(
    context: click.Context,
    path: Path,
    *,
    reports: tuple[str, ...],
    facts: tuple[str, ...],
    probe: bool | None,
    python: str | None,
    common: Common,
) -> None:
    """`gpurules check`."""
    from .. import pipeline
    from ..report.text import render_text

    report = pipeline.check(inputs_of(common, reports, facts, probe=probe, python=python), path)
    emit_document(report, render_text, common)
    context.exit(report.exit_status("error"))
