"""A pipeline of stages at a ZeRO stage that partitions gradients; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Is, Pipelined
from dsguard.rules.script._loop import asks_about_zero, loop_of, once, reasons, stage
from dsguard.script.loop.description import Maker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG825",
    slug="pipeline-with-partitioned-gradients",
    summary="a PipelineModule is refused at ZeRO stage 2 and 3",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage",),
    oracle="raises AssertionError: ZeRO-2 and ZeRO-3 are incompatible with pipeline parallelism",
    when=(Is("zero_stage", 2, 3), Pipelined()),
)
def pipeline_with_partitioned_gradients(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find pipelines that ``deepspeed.initialize`` is given where gradients are partitioned."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    level = stage(case)
    if level not in (2, 3):
        return
    for engine in loop_of(case).engines:
        if engine.maker is Maker.DEEPSPEED and engine.is_pipeline and not asks_about_zero(engine):
            yield report(
                engine.passed.get("model", engine.location),
                "deepspeed.initialize stops with an AssertionError for a PipelineModule at ZeRO "
                f"stage {level}, which partitions gradients",
                Consequence.LATE,
                because=reasons(case, "zero_stage"),
                help="set zero_optimization.stage to 1 or 0",
            )
