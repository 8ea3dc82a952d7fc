"""The command line: what it is called with goes to a command, what goes wrong becomes one complaint and a status.

May live here: the root command, the console script. Must not: commands (commands/), logic, words.

Exit status: 0 nothing at or above --fail-on, 1 something, 2 usage, input or tool error, 130 interrupted.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import NoReturn

import click

from .commands import acting, explaining, judging, knowing, looking
from .commands.helping import Group, complaint, help_without_command, language, option, wanted_lang
from .commands.output import complain
from .messages import said


def main() -> NoReturn:
    """The console script: runs the command and leaves with its status."""
    # Loading the knowledge makes many objects and no garbage; looking for it after every 700 costs a tenth of the run.
    gc.set_threshold(50_000, 20, 100)
    try:
        code = cli.main(prog_name="gpurules", standalone_mode=False)
    except click.ClickException as error:
        complain(complaint(error, language(wanted_lang(sys.argv[1:]))))
        code = error.exit_code if isinstance(error, click.UsageError) else 2
    except (click.Abort, KeyboardInterrupt):
        code = 130
    except Exception as error:
        if os.environ.get("GPURULES_DEBUG"):
            raise
        values = {"type": type(error).__name__, "text": error}
        complain(said("error.internal", language(wanted_lang(sys.argv[1:])), values))
        code = 2
    sys.exit(code if isinstance(code, int) else 0)


def _show_version(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        number = version("gpurules")
    except PackageNotFoundError:  # run from a source tree that was never installed
        number = said("version.not_installed", language(wanted_lang(sys.argv[1:])))
    click.echo(f"gpurules {number}")
    context.exit()


@click.group(
    cls=Group,
    about="gpurules",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version)
@option("--lang", type=click.Choice(["en", "zh"]), expose_value=False)
@click.pass_context
def cli(context: click.Context) -> None:
    """`gpurules`."""
    help_without_command(context)


for command in (
    judging.diagnose,
    judging.recommend,
    judging.plan,
    judging.check,
    explaining.why,
    explaining.why_not,
    explaining.what_if,
    explaining.how_to,
    acting.fix,
    acting.ask,
    looking.probe,
    looking.validate,
    knowing.rules,
    knowing.errata,
):
    cli.add_command(command)
