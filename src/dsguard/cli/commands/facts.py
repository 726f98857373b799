"""``dsguard facts``."""

from __future__ import annotations

import difflib
from enum import Enum
from typing import Annotated

import typer
from msgspec.structs import replace

from dsguard.checking import Settings
from dsguard.cli import options
from dsguard.cli.jobs import gather
from dsguard.cli.launch_words import LaunchWords
from dsguard.cli.output import INCOMPLETE, emit, emit_utf8, stdout_look, wrong_usage
from dsguard.cli.project import load_project, mistakes_told
from dsguard.model.fact import FACT_NAMES, FactName
from dsguard.model.report import Check, Report
from dsguard.render.chain import render_chain
from dsguard.render.concise import render_concise
from dsguard.render.facts_table import render_facts
from dsguard.render.json_report import render_json
from dsguard.render.stream import ColorChoice, Look
from dsguard.render.text import render_text
from dsguard.settings.project import Project

_NOTHING = "name a config, or give a launch command after --"


class FactsFormat(str, Enum):
    """What ``--output-format`` may say here."""

    TEXT = "text"
    JSON = "json"


def complete_fact(incomplete: str) -> list[str]:
    """The names of facts that a shell offers."""
    return [name for name in FACT_NAMES if name.startswith(incomplete)]


def facts(
    context: typer.Context,
    config: Annotated[
        str | None,
        typer.Argument(metavar="CONFIG", help="A config, script or job file, or - for stdin."),
    ] = None,
    target: options.Target = None,
    world_size: options.WorldSize = None,
    hostfile: options.Hostfile = None,
    gpus_per_node: options.GpusPerNode = None,
    front_end: options.FrontEnd = None,
    jobs: options.Jobs = None,
    no_env: options.NoEnv = False,
    isolated: options.Isolated = False,
    settings_file: options.SettingsFile = None,
    output_format: Annotated[
        FactsFormat, typer.Option("--output-format", "-o", help="How to report.")
    ] = FactsFormat.TEXT,
    explain: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Show one fact with everything it was derived from.",
            autocompletion=complete_fact,
        ),
    ] = None,
    color: options.Color = ColorChoice.AUTO,
) -> None:
    """Show what will run, and who said so.

    Example: dsguard facts ds_config.json -- deepspeed --num_gpus 4 train.py
    """
    launch: LaunchWords = context.obj
    explained = _fact_name(explain) if explain is not None else None

    def judged_by(project: Project) -> Settings:
        settings = options.settings_of(
            project, target, world_size, hostfile, gpus_per_node, front_end, no_env=no_env
        )
        # Facts need no rules: their findings are `dsguard check`'s.
        return replace(settings, rules=())

    names = [config] if config is not None else []
    with mistakes_told():
        project = load_project(settings_file, isolated=isolated)
        inputs, failures = gather(names, launch, project, judged_by, jobs, nothing=_NOTHING)
    report = Report(tuple(item.check() for item in inputs), tuple(failures))
    look = stdout_look(color)
    if output_format is FactsFormat.JSON:
        emit_utf8(render_json(report))
    elif not report.checks:
        emit(render_text(report, color=look.color, unicode=look.unicode, columns=look.columns))
    else:
        several = len(report.checks) > 1
        for index, check in enumerate(report.checks):
            emit("\n" if index else "")
            if explained is not None:
                emit(render_chain(check, explained, color=look.color, unicode=look.unicode))
            else:
                emit(_table(check, look, named=several))
        if failures:
            emit("\n" + render_concise(Report((), tuple(failures)), unicode=look.unicode))
    raise typer.Exit(0 if report.complete else INCOMPLETE)


def _table(check: Check, look: Look, *, named: bool) -> str:
    return render_facts(
        check, color=look.color, unicode=look.unicode, columns=look.columns, named=named
    )


def _fact_name(text: str) -> FactName:
    for name in FACT_NAMES:
        if name == text:
            return name
    close = difflib.get_close_matches(text, FACT_NAMES, n=1)
    hint = f"did you mean {close[0]}?" if close else "they are: " + ", ".join(FACT_NAMES)
    raise wrong_usage(f"no fact is called {text}; {hint}", option="--explain")
