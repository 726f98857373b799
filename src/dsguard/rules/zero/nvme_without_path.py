"""Offload to NVMe that is not told where; see nvme_without_path.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from dsguard.facts.values import written
from dsguard.model.fact import Known
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Either, Is
from dsguard.rules.zero._settings import stage_of, stage_reason, zero

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_BLOCKS: tuple[Literal["offload_optimizer", "offload_param"], ...] = (
    "offload_optimizer",
    "offload_param",
)


@rule(
    code="DSG304",
    slug="nvme-without-path",
    summary="NVMe offload without nvme_path",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage",),
    oracle="deepspeed.initialize raises TypeError or AssertionError over the missing path",
    when=(Is("zero_stage", 3), Either(*(Is(name, "nvme") for name in _BLOCKS))),
)
def nvme_without_path(case: Case, report: Reporter) -> Iterator[Finding]:
    """Each of the two blocks has a path of its own; `"auto"` is another rule's matter."""
    if stage_of(case) != 3:
        return
    for block in _BLOCKS:
        device = case.facts[block]
        if not isinstance(device, Known) or device.value != "nvme":
            continue
        if written(case.document, zero(f"{block}.nvme_path")) is not None:
            continue
        if device.origin.location is not None:
            yield report(
                device.origin.location,
                f"{block}.device is nvme, but no {block}.nvme_path says where",
                Consequence.LATE,
                because=stage_reason(case),
                help=f'add "nvme_path" to {block}: a folder on the NVMe drive of every node',
            )
