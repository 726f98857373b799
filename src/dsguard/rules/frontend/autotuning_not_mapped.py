"""An autotuner whose candidates the Trainer refuses; see autotuning_not_mapped.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.values import is_number, written
from dsguard.frontends.base import FrontEndName
from dsguard.launch.context import LauncherName
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Given, ReadBy, Written
from dsguard.rules.frontend._trainer import read_by

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEY = "train_micro_batch_size_per_gpu"
_ARGUMENT = "--per_device_train_batch_size"


@rule(
    code="DSG715",
    slug="autotuning-not-mapped",
    summary="DeepSpeed's autotuner changes the micro batch, and the Trainer's argument stays",
    severity=Severity.WARNING,
    since="0.1.0",
    when=(ReadBy(FrontEndName.TRANSFORMERS), Given("launch"), Written("autotuning")),
)
def autotuning_not_mapped(case: Case, report: Reporter) -> Iterator[Finding]:
    """Each candidate is written to a config, and arguments are changed only where mapped."""
    document = read_by(case, FrontEndName.TRANSFORMERS)
    if document is None or case.launch is None:
        return
    if case.launch.launcher is not LauncherName.DEEPSPEED:
        return
    if case.launch.launcher_arguments.get("autotuning") is None:
        return
    block = written(document, "autotuning")
    micro = written(document, _KEY)
    if block is None or not isinstance(block.value, dict) or block.origin.location is None:
        return
    if micro is not None and is_number(micro.value):
        return
    mappings = block.value.get("arg_mappings")
    if isinstance(mappings, dict) and _KEY in (str(name).strip() for name in mappings):
        return
    request = case.requests.get(_KEY)
    stays = f"stays {request.value}" if request is not None else "stays as it is"
    yield report(
        document.locate("/autotuning/arg_mappings", "key"),
        f"the autotuner tries other values of {_KEY}, and {_ARGUMENT} {stays}: arg_mappings does "
        "not name it, so the Trainer stops over every other candidate",
        Consequence.DIFFERS,
        because=(Because(request.name, request.value, request.origin),) if request else (),
        help=f'add "{_KEY}": "{_ARGUMENT}" to autotuning.arg_mappings',
    )
