"""The ``dsguard`` program."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dsguard import __version__
from dsguard.cli.commands import (
    balance,
    baseline,
    check,
    diff,
    explain,
    facts,
    report,
    rules,
    run,
    schema,
    server,
    upgrade_check,
)
from dsguard.cli.launch_words import split_off_launch

app = typer.Typer(
    name="dsguard",
    help="Know what DeepSpeed will really run before you launch it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode=None,
)
app.command("check")(check.check)
app.command("facts")(facts.facts)
app.command("run")(run.run)
app.command("diff")(diff.diff)
app.command("report")(report.report)
app.command("balance")(balance.balance)
app.command("schema")(schema.schema)
app.command("upgrade-check")(upgrade_check.upgrade_check)
app.command("server")(server.server)
app.add_typer(baseline.app)
app.command("explain")(explain.explain)
app.command("rules")(rules.rules)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dsguard {__version__}")
        raise typer.Exit


@app.callback()
def dsguard(
    version: Annotated[
        bool,
        typer.Option(
            "--version", "-V", help="Show the version.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Know what DeepSpeed will really run before you launch it."""


def main() -> None:
    """Run the program on ``sys.argv`` and exit with its code."""
    arguments, launch = split_off_launch(sys.argv[1:])
    app(args=arguments, obj=launch, prog_name="dsguard")
