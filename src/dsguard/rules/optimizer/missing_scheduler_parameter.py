"""A scheduler without a parameter that it needs; see missing_scheduler_parameter.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.blocks import block, trust_in_blocks
from dsguard.facts.values import lacks
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.schema.schedulers import scheduler_class

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG506",
    slug="missing-scheduler-parameter",
    summary="a scheduler without params, or without one that it needs",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="deepspeed.initialize raises TypeError: missing required positional argument",
    when=(Written("scheduler"),),
)
def missing_scheduler_parameter(case: Case, report: Reporter) -> Iterator[Finding]:
    """``params`` is unpacked as it is; without it even a scheduler with defaults fails."""
    scheduler = block(case, "scheduler")
    if scheduler is None:
        return
    own = scheduler_class(scheduler.type, Version(case.target.version))
    if own is None:
        return
    params = scheduler.document.get("/scheduler/params")
    if params is None and not lacks(scheduler.document, "scheduler.params"):
        return
    if params is None or params.value is None:
        needed = ", ".join(own.required)
        yield report(
            scheduler.type_at,
            f"{scheduler.type} has no params block, which DeepSpeed unpacks without looking; "
            "deepspeed.initialize stops with TypeError",
            Consequence.LATE,
            confidence=trust_in_blocks(case),
            help=f"add params with {needed}" if needed else 'add "params": {}',
        )
        return
    if not isinstance(params.value, dict):
        return
    missing = [
        name for name in own.required if lacks(scheduler.document, f"scheduler.params.{name}")
    ]
    if missing:
        named = " and ".join(missing)
        yield report(
            scheduler.type_at,
            f"{scheduler.type} needs {named}, and params does not give "
            f"{'it' if len(missing) == 1 else 'them'}; deepspeed.initialize stops with TypeError",
            Consequence.LATE,
            confidence=trust_in_blocks(case),
            help=f"add {named} to params",
        )
