"""`why`, `why-not`, `what-if` and `how-to`: explanations of a report that was made before.

May live here: the options of these commands, choosing a renderer, exit codes. Must not: logic, words.
"""

from __future__ import annotations

import click

from .helping import Command, option
from .inputs import saved_report
from .options import Common, common_options, in_option, more_formats
from .output import emit, emit_answer, emit_json, look


@click.command(cls=Command)
@click.argument("target", default="1")
@in_option
@option("--all", "every", is_flag=True)
@common_options
@more_formats("mermaid")
def why(target: str, source: str, every: bool, common: Common) -> None:
    """`gpurules why`."""
    from .. import pipeline
    from ..report.proof_text import render_mermaid, render_proofs

    proofs = pipeline.why(
        saved_report(source), target, common.lang, every=every, knowledge=common.knowledge, engine=common.engine
    )
    if common.format == "json":
        emit_json({"schema": "gpurules.why/1", "target": target, "proofs": [proof.to_dict() for proof in proofs]})
    elif common.format == "mermaid":
        emit(render_mermaid(proofs))
    else:
        pages = pipeline.pages(common.knowledge)
        emit(render_proofs(proofs, lang=common.lang, look=look(), detail=common.detail, pages=pages))


@click.command("why-not", cls=Command)
@click.argument("target")
@in_option
@common_options
def why_not(target: str, source: str, common: Common) -> None:
    """`gpurules why-not`."""
    from .. import pipeline
    from ..report.explain_text import render_why_not

    report = saved_report(source)
    answer = pipeline.why_not(report, target, common.lang, knowledge=common.knowledge, engine=common.engine)
    emit_answer(answer, render_why_not, common)


@click.command("what-if", cls=Command)
@click.argument("changes", nargs=-1, required=True, metavar="CHANGE...")
@in_option
@common_options
def what_if(changes: tuple[str, ...], source: str, common: Common) -> None:
    """`gpurules what-if`."""
    from .. import pipeline
    from ..report.explain_text import render_what_if

    report = saved_report(source)
    answer = pipeline.what_if(report, changes, common.lang, knowledge=common.knowledge, engine=common.engine)
    emit_answer(answer, render_what_if, common)


@click.command("how-to", cls=Command)
@click.argument("goal")
@in_option
@common_options
@click.pass_context
def how_to(context: click.Context, goal: str, source: str, common: Common) -> None:
    """`gpurules how-to`."""
    from .. import pipeline
    from ..report.explain_text import render_how_to

    report = saved_report(source)
    answer = pipeline.how_to(report, goal, common.lang, knowledge=common.knowledge, engine=common.engine)
    emit_answer(answer, render_how_to, common)
    context.exit(int(not answer.holds and not answer.ways))
