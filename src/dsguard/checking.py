"""One run: resolve a pair, run the rules, collect the report."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace
from packaging.version import Version

from dsguard.facts.case import Case, Unreadable
from dsguard.facts.config_file import same_place
from dsguard.facts.resolve import Options, resolve
from dsguard.facts.watch import WatchedCase
from dsguard.frontends.detect import config_argument
from dsguard.launch.environ import NO_ENVIRON, Environ
from dsguard.model.allowance import Allowance
from dsguard.model.fact import Facts, Known, Unknown
from dsguard.model.finding import Confidence, Consequence, Finding, Safety, Severity
from dsguard.model.report import Check, SkippedRule, Target
from dsguard.model.source import Location, Source, Span
from dsguard.model.tree import Document
from dsguard.reading.errors import HjsonSyntaxError
from dsguard.reading.hjson import parse
from dsguard.rules import CRASH, all_rules, find_rule
from dsguard.script.load import SCRIPT_SUFFIXES, load_script
from dsguard.suppression.collect import collect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dsguard.launch.call import Surroundings
    from dsguard.launch.context import Command, LaunchContext
    from dsguard.model.directive import Directive
    from dsguard.model.rule import Rule
    from dsguard.script.script import Script

MOST_FINDINGS = 10_000
"""Findings of one rule in one check; what it finds beyond them is not told."""

MOST_CHARACTERS = 8 << 20
"""Characters that the findings of one rule in one check take."""

FAULT = "this is a fault of dsguard"
"""What the help of a crash begins with."""


class Settings(Struct, frozen=True):
    """Everything about a run that is not its input.

    ``rules`` are the rules that run, all of them by default. ``folder`` is where the launch
    is run from; ``hostfile`` replaces the one that the launch names; ``devices_per_node`` is
    how many devices a machine has, where a launcher would count them. ``environ`` is the shell
    that the launch command is typed in; nothing of it is known by default.
    """

    target: Target
    options: Options = field(default_factory=Options)
    rules: Sequence[Rule[Case]] = field(default_factory=all_rules)
    folder: Path = field(default_factory=Path.cwd)
    hostfile: Path | None = None
    devices_per_node: int | None = None
    environ: Environ = NO_ENVIRON


def check_source(
    config: Source | Document | None,
    launch: LaunchContext | None,
    settings: Settings,
    *,
    config_path: Path | None = None,
    script: Script | None = None,
) -> Check:
    """Check one (config, launch) pair; either may be absent.

    ``config`` is the config's text, or the document of one that stands inside another file;
    ``config_path`` where it lies on disk, None where it is no file of its own. ``script`` is the
    training script if it is read already; otherwise the one that the launch starts is read. A
    syntax error becomes a finding, not an exception.
    """
    source = config.source if isinstance(config, Document) else config
    if source is None and launch is None and script is not None:
        source = script.source
    shown = source
    if shown is None:
        shown = launch.command.source if launch is not None else Source("<none>", "", False)
    document, unreadable = _read(config)
    directives: tuple[Directive, ...] = ()
    judged: frozenset[str] = frozenset()
    untold: frozenset[str] = frozenset()
    try:
        script = script if script is not None else read_script_of(launch, settings)
        document = _as_changed(document, config_path, launch, script, settings)
        directives = collect(document, launch, script)
        case = resolve(
            document,
            launch,
            script,
            settings.target,
            settings.options,
            folder=settings.folder,
            config_path=config_path,
            unreadable=unreadable,
        )
        facts = case.facts
        findings, skipped, judged, untold = _run_rules(case, settings.rules, shown)
    except Exception as error:
        facts, skipped = Facts({}), ()
        findings = (_crash(shown, "the resolution of facts", error),)
    return Check(
        config=source.name if source is not None else None,
        launch=_line(launch) if launch is not None else None,
        target=settings.target,
        facts=facts,
        findings=findings,
        skipped=skipped,
        directives=directives,
        judged=judged,
        untold=untold,
    )


def _line(launch: LaunchContext) -> str:
    # Imported where there is a launch: a config alone needs none of it.
    from dsguard.launch.secrets import line_without_secrets

    return line_without_secrets(launch.command)


def _as_changed(
    document: Document | None,
    path: Path | None,
    launch: LaunchContext | None,
    script: Script | None,
    settings: Settings,
) -> Document | None:
    """The config as the script changes it, if the script loads this very file."""
    if document is None or script is None:
        return document
    if launch is not None and document is launch.inline_config:
        from dsguard.facts.plugin import with_plugin

        return with_plugin(document, launch, script)
    if path is None:
        return document
    from dsguard.facts.script_config import config_of_script, named_by_script, with_changes
    from dsguard.frontends.requests import Requests
    from dsguard.script.declaration import FromArgument

    config = config_of_script(script)
    if config is None:
        return document
    requests = Requests(launch, script)
    named = config.path.name if isinstance(config.path, FromArgument) else None
    unknown = config.path is None and config.literal is None
    if named in script.reassigned or unknown:
        # Something else takes the place of the file that was named.
        return with_changes(document, replace(config, changes=None), requests)
    name = named_by_script(config, script, requests)
    if name is None:
        return document
    folders = (settings.folder, settings.folder / Path(script.source.name).parent)
    if not any(same_place(folder / name, path) for folder in folders):
        in_launch = launch is not None and config_argument(launch) is not None
        # The launch names a file, and the script hands another one to DeepSpeed.
        return (
            with_changes(document, replace(config, changes=None), requests)
            if in_launch
            else document
        )
    return with_changes(document, config, requests)


def surroundings(settings: Settings) -> Surroundings:
    """What a launch depends on besides its words."""
    from dsguard.launch.call import Surroundings

    release = Version(settings.target.version)
    return Surroundings(
        settings.folder,
        settings.hostfile,
        settings.devices_per_node,
        settings.environ,
        deepspeed=release,
    )


def read_command(command: Command, settings: Settings) -> LaunchContext:
    """A launch command as its launcher will read it."""
    from dsguard.launch.read import read_launch

    return read_launch(command, surroundings(settings))


def _read(config: Source | Document | None) -> tuple[Document | None, Unreadable | None]:
    if config is None or isinstance(config, Document):
        return config, None
    try:
        return parse(config), None
    except HjsonSyntaxError as error:
        return None, Unreadable(error.message, error.location, error.help)


def read_script_of(launch: LaunchContext | None, settings: Settings) -> Script | None:
    """The training script that a launch starts; None where there is none to read."""
    if launch is None or launch.script is None or launch.module or not launch.script.known:
        return None
    if not launch.script.text.endswith(SCRIPT_SUFFIXES):
        return None
    return load_script(settings.folder / launch.script.text, launch.script.text)


def _run_rules(
    case: Case, rules: Sequence[Rule[Case]], shown: Source
) -> tuple[tuple[Finding, ...], tuple[SkippedRule, ...], frozenset[str], frozenset[str]]:
    findings: list[Finding] = []
    skipped: list[SkippedRule] = []
    judged: set[str] = set()
    untold: set[str] = set()
    watched = WatchedCase.of(case)
    for rule in rules:
        if not case.recognised and rule.meta.family != "document":
            continue
        missing = [n for n in rule.meta.needs if not isinstance(case.facts[n], Known)]
        if missing:
            fact = case.facts[missing[0]]
            reason = fact.reason if isinstance(fact, Unknown) else "its sources disagree"
            skipped.append(SkippedRule(rule.meta.slug, tuple(missing), reason))
            continue
        watched.forget()
        try:
            for condition in rule.meta.when:
                if not condition.met(watched):
                    break
            else:
                watched.forget()
                told, more = Allowance(MOST_FINDINGS, MOST_CHARACTERS).take(rule.findings(watched))
                findings += told
                if more:
                    untold.add(rule.meta.slug)
                    continue
        except Exception as error:
            findings.append(_crash(shown, f"the rule {rule.meta.slug}", error))
        else:
            if not watched.lacked:
                judged.add(rule.meta.slug)
    if case.document is not None:
        findings = [_editable(case.document, finding) for finding in findings]
    findings.sort(key=lambda f: (not f.location.source.is_file, f.location.span, f.code))
    return tuple(findings), tuple(skipped), frozenset(judged), frozenset(untold)


def _editable(document: Document, finding: Finding) -> Finding:
    """The finding, with its fix in words only where it is about what a program writes.

    An edit is written in JSON, and for the text of the document.
    """
    if finding.fix is None:
        return finding
    pointers = (finding.location.pointer or "", *finding.fix.pointers)
    in_script = finding.location.source is not document.source or any(
        f"{pointer}/".startswith(f"{other}/")
        for pointer in pointers
        for other in document.elsewhere
    )
    if not document.in_code and not (document.elsewhere and in_script):
        return finding
    return replace(finding, fix=replace(finding.fix, safety=Safety.DISPLAY, edits=()))


def _crash(shown: Source, what: str, error: Exception) -> Finding:
    """A crash is a finding of its own: the rest goes on, and the answer is incomplete."""
    crash = find_rule(CRASH)
    assert crash is not None
    return Finding(
        code=crash.meta.code,
        rule=crash.meta.slug,
        severity=Severity.ERROR,
        confidence=Confidence.HIGH,
        consequence=Consequence.NOTE,
        message=f"{what} {crashed(error)}",
        location=Location(shown, Span(0, min(1, len(shown.text)))),
        help=f"{FAULT}: please report it with the config that shows it",
    )


def crashed(error: Exception) -> str:
    """What to say of an exception that nobody expected, with its place in dsguard."""
    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(place.filename).name}:{place.lineno}, Python {sys.version.split()[0]}"
    return f"crashed ({type(error).__name__}: {error}, {where})"
