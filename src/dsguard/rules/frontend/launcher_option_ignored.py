"""An option of ``accelerate launch`` that a config overrides; see launcher_option_ignored.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from dsguard.facts.values import unread, written
from dsguard.frontends.base import AUTO, THROUGH_ACCELERATE
from dsguard.model.fact import OriginKind
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import ReadBy
from dsguard.rules.frontend._trainer import handed_on, launcher_option, read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.launch.context import Argument


class _Filled(NamedTuple):
    """A config key that an option fills where it says ``"auto"``, and what absent means."""

    key: str
    absent: Any


_OPTIONS = {
    "gradient_accumulation_steps": _Filled("gradient_accumulation_steps", 1),
    "gradient_clipping": _Filled("gradient_clipping", None),
    "zero_stage": _Filled("zero_optimization.stage", 0),
    "offload_optimizer_device": _Filled("zero_optimization.offload_optimizer.device", "none"),
    "offload_param_device": _Filled("zero_optimization.offload_param.device", "none"),
}


@rule(
    code="DSG714",
    slug="launcher-option-ignored",
    summary="a DeepSpeed option of accelerate launch that the config overrides",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("front_end",),
    oracle="the config that reaches deepspeed.initialize keeps its own value",
    when=(ReadBy(*THROUGH_ACCELERATE),),
)
def launcher_option_ignored(case: Case, report: Reporter) -> Iterator[Finding]:
    """With a config file the options of the launcher fill ``"auto"`` and nothing else."""
    document = read_by(case, *THROUGH_ACCELERATE)
    if document is None or not handed_on(case):
        return
    for name, (key, absent) in _OPTIONS.items():
        option = launcher_option(case, name)
        if option is None or option.kind is OriginKind.JOBFILE:
            # Beside a config Accelerate refuses such values in its own file.
            continue
        value = written(document, key)
        if (value is not None and value.value == AUTO) or unread(document, key) is not None:
            continue
        counts = value.value if value is not None else absent
        if counts == _read(option):
            continue
        if value is not None and value.origin.location is not None:
            at, said = value.origin.location, f"{key} is {value.value} in the config"
        else:
            at, said = document.start, f"{key} is not in the config"
        yield report(
            at,
            f'{said}, and accelerate launch fills only "auto": {option.flag} {option.value} has '
            "no effect",
            Consequence.IGNORED,
            because=(Because(name, _read(option), option.origin()),),
            help=f'write "auto" for {key} in the config, or the value itself',
        )


def _read(option: Argument) -> float | str | None:
    """A number where the option's value is one."""
    for kind in (int, float):
        try:
            return kind(option.value or "")
        except ValueError:
            continue
    return option.value
