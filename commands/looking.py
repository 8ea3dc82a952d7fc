"""`probe` and `validate`: what this machine is, and whether it does what the rules say.

May live here: the options of these commands, choosing a renderer, exit codes. Must not: probes, checks, words.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .helping import Command, option
from .inputs import failure, inputs_of
from .options import NEW_FILE, Common, common_options, no_save_option, python_option
from .output import emit, emit_document, look, progress, save, utf8

if TYPE_CHECKING:
    from .. import pipeline


@click.command(cls=Command)
@python_option
@option("--save", "target", type=NEW_FILE, metavar="FILE")
@option("--redact/--no-redact", default=True, show_default=True)
@option("--show-redactions", is_flag=True)
@option("--environments", is_flag=True)
@common_options
def probe(
    python: str | None, target: Path | None, redact: bool, show_redactions: bool, environments: bool, common: Common
) -> None:
    """`gpurules probe`."""
    from .. import pipeline
    from ..report.facts_text import facts_json, facts_yaml, redactions

    inputs = inputs_of(common, probe=True, python=python)
    if environments:
        _list_environments(inputs, common, redact=redact)
        return
    if target is not None:
        _save_snapshot(pipeline.snapshot(inputs, redact=redact), target, common, show_redactions=show_redactions)
        return
    facts = pipeline.probe(inputs, redact=redact)
    if show_redactions:
        for line in redactions(facts):
            click.echo(line, err=True)
    emit(facts_json(facts, ascii_only=not utf8()) if common.format == "json" else facts_yaml(facts))


def _list_environments(inputs: pipeline.Inputs, common: Common, *, redact: bool) -> None:
    """For the screen paths stay as they are, because --python takes them; JSON is made to be handed on."""
    from .. import pipeline

    if common.format == "json":
        from ..report.facts_text import facts_json

        emit(facts_json(pipeline.environments(inputs, redact=redact), ascii_only=not utf8()))
    else:
        from ..report.environments_text import render_environments

        emit(render_environments(pipeline.environments(inputs, redact=False), lang=common.lang, look=look()))


def _save_snapshot(snapshot: dict[str, Any], target: Path, common: Common, *, show_redactions: bool) -> None:
    from ..facts import Fact
    from ..report.facts_text import redactions
    from ..report.snapshot_text import snapshot_json, snapshot_yaml

    if show_redactions:
        facts = [Fact(kind, fields) for entry in snapshot["facts"] for kind, fields in entry.items()]
        for line in redactions(facts):
            click.echo(line, err=True)
    text = snapshot_json(snapshot) if common.format == "json" else snapshot_yaml(snapshot)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise failure(str(target), error) from error


@click.command(cls=Command)
@option("--device", default="auto", show_default=True, metavar="DEVICE")
@python_option
@option("--only", multiple=True, metavar="CHECK")
@option("--time", "seconds", type=click.FloatRange(1, 600), default=55, show_default=True)
@option("--share", type=click.FloatRange(0.01, 0.9), default=0.5, show_default=True)
@no_save_option
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
    """`gpurules validate`."""
    from .. import pipeline
    from ..report.validation_text import render_validation

    inputs = inputs_of(common, probe=True, python=python)
    result, report = pipeline.validate(inputs, device, only, seconds, share, progress(common))
    if not no_save:
        save(report, common)
    emit_document(result, render_validation, common)
    context.exit(result.exit_status())
