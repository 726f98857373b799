"""A config that nothing in the launch names; see config_not_in_launch.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dsguard.facts.script_config import config_of_script, named_by_script
from dsguard.frontends.base import FrontEndName
from dsguard.launch.context import LaunchContext, LauncherName
from dsguard.model.fact import Known
from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.model.source import Location
from dsguard.rules.conditions import Given, Without

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_SETTINGS = (".yaml", ".yml", ".toml", ".py", ".cfg", ".ini")
"""Files of settings that a framework is started with, which may name the config in turn."""


@rule(
    code="DSG603",
    slug="config-not-in-launch",
    summary="nothing in the launch command names the config",
    severity=Severity.WARNING,
    since="0.1.0",
    when=(Given("launch", "document"), Without("named")),
)
def config_not_in_launch(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report a launch without a config argument, unless something else may name the file."""
    launch, document = case.launch, case.document
    if launch is None or document is None or case.named is not None:
        return
    if isinstance(case.facts["config_file"], Known) or launch.script is None:
        return
    if _is_read_by_script(case):
        return
    if launch.refusal is not None:
        # Nothing is started, and the word taken for the script may be another.
        return
    if case.front_end is not None and case.front_end.name is FrontEndName.LIGHTNING:
        return
    if launch.launcher is LauncherName.ACCELERATE:
        # The config may be named in Accelerate's own YAML.
        return
    if not launch.arguments.complete or _has_settings_file(launch):
        return
    name = document.source.name
    yield report(
        Location(launch.command.source, launch.script.span),
        f"nothing in this command names {name}, so it counts only if {launch.script.text} reads "
        "it by itself",
        Consequence.IGNORED,
        confidence=Confidence.MEDIUM,
        help=f"add --deepspeed_config {name} (for HF Trainer: --deepspeed {name})",
    )


def _is_read_by_script(case: Case) -> bool:
    """Whether the script plainly reads this file."""
    config = config_of_script(case.script) if case.script is not None else None
    if case.script is None or case.document is None or config is None:
        return False
    name = named_by_script(config, case.script, case.requests)
    return name is not None and Path(case.document.source.name).name == Path(name).name


def _has_settings_file(launch: LaunchContext) -> bool:
    """Whether the script is given settings; a JSON file behind a flag may as well be data."""
    for argument in launch.arguments:
        suffixes = (*_SETTINGS, ".json") if "config" in argument.name else _SETTINGS
        if (argument.value or "").lower().endswith(suffixes):
            return True
    return any(
        word.text.lower().endswith((*_SETTINGS, ".json")) for word in launch.arguments.positionals
    )
