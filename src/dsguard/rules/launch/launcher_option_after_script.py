"""An option of the launcher that the script gets; see launcher_option_after_script.md."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from dsguard.launch.context import LauncherName
from dsguard.model.fact import OriginKind
from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Passed
from dsguard.script.lookup import argument_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_OPTIONS = {
    LauncherName.DEEPSPEED: ("num_gpus", "num_nodes", "hostfile", "include", "exclude"),
    LauncherName.TORCHRUN: ("nproc_per_node", "nnodes", "node_rank", "rdzv_endpoint"),
    LauncherName.ACCELERATE: ("num_processes", "num_machines", "machine_rank", "use_deepspeed"),
}
"""Options that decide how many processes start, and that scripts seldom have of their own."""


@rule(
    code="DSG622",
    slug="launcher-option-after-script",
    summary="an option of the launcher stands after the script and goes to the script",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="the launcher's parser hands everything after the script to the script",
    when=(Passed(*chain(*_OPTIONS.values())),),
)
def launcher_option_after_script(case: Case, report: Reporter) -> Iterator[Finding]:
    """Report such an option, unless the launcher or the script has it on purpose."""
    launch = case.launch
    if launch is None or launch.script is None or launch.refusal is not None:
        return
    for name in _OPTIONS.get(launch.launcher, ()):
        argument = launch.arguments.get(name)
        if argument is None or argument.kind is not OriginKind.LAUNCH:
            continue
        if launch.launcher_arguments.get(name) is not None:
            # Whoever gives it twice knows that the script has one, too.
            continue
        script = case.script
        if script is not None and argument_value(script, name) is not None:
            continue
        certain = script is not None and script.unreadable is None and not script.gaps
        yield report(
            argument.location,
            f"{argument.flag} stands after {launch.script.text}, so the script gets it and "
            f"{launch.launcher.value} does not",
            Consequence.IGNORED,
            help=f"put it before {launch.script.text}",
            confidence=Confidence.HIGH if certain else Confidence.MEDIUM,
        )
