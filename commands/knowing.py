"""`rules` and `errata`: the knowledge itself, to read, check and extend.

May live here: the options of these commands, choosing a renderer, exit codes. Must not: checks, words.
"""

from __future__ import annotations

from pathlib import Path

import click

from .helping import Command, Group, help_without_command, option
from .inputs import read, shown
from .options import FOLDER, Common, common_options
from .output import emit_json, emit_lines, look


@click.group(cls=Group, invoke_without_command=True)
@click.pass_context
def rules(context: click.Context) -> None:
    """`gpurules rules`."""
    help_without_command(context)


@rules.command("list", about="rules.list")
@common_options
def rules_list(common: Common) -> None:
    """`gpurules rules list`."""
    from .. import pipeline

    rows = pipeline.rules_list(common.knowledge, common.lang)
    if common.format == "json":
        emit_json([row.to_dict() for row in rows])
        return
    widest = max((len(row.id) for row in rows), default=0)
    emit_lines(f"{row.id:{widest}}  {row.severity:7}  {row.status:10}  {row.title}" for row in rows)


@rules.command("show", about="rules.show")
@click.argument("rule_id", metavar="ID")
@common_options
def rules_show(rule_id: str, common: Common) -> None:
    """`gpurules rules show`."""
    from .. import pipeline

    rule = pipeline.rules_show(rule_id, common.knowledge, common.lang)
    if common.format == "json":
        emit_json(rule.to_dict())
    else:
        emit_lines([f"# {rule.path}", *rule.text.splitlines()])


@rules.command("check", about="rules.check")
@click.argument("folder", required=False, type=FOLDER)
@common_options
@click.pass_context
def rules_check(context: click.Context, folder: Path | None, common: Common) -> None:
    """`gpurules rules check`."""
    from .. import pipeline

    problems = pipeline.rules_check(folder or common.knowledge, common.lang)
    if common.format == "json":
        emit_json({"ok": not problems, "problems": problems})
    else:
        emit_lines(problems)
    context.exit(int(bool(problems)))


@rules.command("test", about="rules.test")
@click.argument("ids", nargs=-1, metavar="[ID]...")
@common_options
@click.pass_context
def rules_test(context: click.Context, ids: tuple[str, ...], common: Common) -> None:
    """`gpurules rules test`."""
    from .. import pipeline
    from ..report.ledger_text import tested_lines

    results = pipeline.rules_test(common.knowledge, ids, common.lang)
    failed = [result for result in results if not result.ok]
    if common.format == "json":
        emit_json({"ok": not failed, "results": [result.to_dict() for result in results]})
    else:
        emit_lines(tested_lines(results, common.lang, passed_too=common.detail == "all"))
    context.exit(int(bool(failed)))


@rules.command("coverage", about="rules.coverage")
@option("--claims", metavar="FILE")
@common_options
@click.pass_context
def rules_coverage(context: click.Context, claims: str | None, common: Common) -> None:
    """`gpurules rules coverage`."""
    from .. import pipeline
    from ..report.ledger_text import coverage_document, coverage_lines

    given = (shown(claims), read(claims)) if claims else None
    lines, faults = pipeline.rules_coverage(common.knowledge, given, common.lang)
    if common.format == "json":
        emit_json(coverage_document(lines, faults, common.lang))
    else:
        emit_lines(coverage_lines(lines, faults, common.lang, gaps_only=common.detail == "verdict"))
    context.exit(int(bool(faults) or any(line.is_gap for line in lines)))


@rules.command("new", about="rules.new")
@click.argument("rule_id", metavar="ID")
@option("--area", required=True, metavar="AREA")
@option("--when", "condition", required=True, metavar="TYPE.FIELD=VALUE")
@option("--cause", required=True, metavar="CAUSE")
@option(
    "--evidence",
    type=click.Choice(["decisive", "strong", "weak", "against", "excludes"]),
    default="strong",
    show_default=True,
)
@option("--source", default="https://", metavar="URL")
@option(
    "--into",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("knowledge"),
    show_default=True,
    metavar="DIR",
)
@common_options
def rules_new(
    rule_id: str, area: str, condition: str, cause: str, evidence: str, source: str, into: Path, common: Common
) -> None:
    """`gpurules rules new`."""
    from .. import pipeline

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
        emit_json({"path": path.as_posix()})
    else:
        emit_lines([path.as_posix()])


@rules.command("update", about="rules.update")
@option("--check", "file", required=True, metavar="FILE")
@common_options
@click.pass_context
def rules_update(context: click.Context, file: str, common: Common) -> None:
    """`gpurules rules update`."""
    from .. import pipeline
    from ..report.ledger_text import update_document, update_lines

    update = pipeline.rules_update(shown(file), read(file))
    if common.format == "json":
        emit_json(update_document(update, common.lang))
    else:
        emit_lines(update_lines(update, common.lang))
    context.exit(int(bool(update.problems) or update.older))


@click.command(cls=Command)
@click.argument("claims", nargs=-1, metavar="[CLAIM]...")
@common_options
def errata(claims: tuple[str, ...], common: Common) -> None:
    """`gpurules errata`."""
    from .. import pipeline
    from ..report.ledger_text import errata_document, errata_lines

    found = pipeline.errata(common.knowledge)
    chosen = pipeline.chosen_errata(found, claims)
    if common.format == "json":
        emit_json(errata_document(chosen, found, common.lang))
    else:
        emit_lines(errata_lines(chosen, found, common.lang, look().width))
