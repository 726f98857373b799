"""A loader with a short last batch in front of a pipeline; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.values import written
from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Pipelined
from dsguard.rules.script._loop import actions, in_script, loop_of, number_of, once
from dsguard.script.loop.description import Does, Engine, Loader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEY = "dataloader_drop_last"


@rule(
    code="DSG821",
    slug="short-batch-in-pipeline",
    summary="a loader that keeps its short last batch feeds a pipeline of stages",
    severity=Severity.WARNING,
    since="0.1.0",
    oracle="RuntimeError: The size of tensor a (4) must match the size of tensor b (2)",
    when=(Pipelined(),),
)
def short_batch_in_pipeline(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find loaders without ``drop_last=True`` whose batches a pipeline passes on."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    for engine in loop_of(case).engines:
        if not engine.is_pipeline or _has_one_stage(case, engine):
            continue
        for action in actions(case, Does.TRAIN_BATCH, engine=engine):
            loader = action.loader
            if loader is not None and _may_be_short(loader):
                yield report(
                    loader.location,
                    f"the last batch of this loader may be shorter: {action.said} passes batches "
                    "of one size from stage to stage and stops at another",
                    Consequence.LATE,
                    because=(in_script("batches go to", action.said, action.location),),
                    help="pass drop_last=True",
                    confidence=Confidence.MEDIUM,
                )
            own = "training_data" in engine.passed and "data_iter" not in action.arguments
            if loader is None and own and _keeps_the_last(case):
                yield report(
                    engine.passed["training_data"],
                    "DeepSpeed's loader keeps a last batch that may be shorter: "
                    f"{action.said} passes batches of one size from stage to stage and stops at "
                    "another",
                    Consequence.LATE,
                    because=(in_script("batches go to", action.said, action.location),),
                    help=f'write "{_KEY}": true in the config',
                    confidence=Confidence.MEDIUM,
                )


def _may_be_short(loader: Loader) -> bool:
    """Whether the loader plainly keeps what is left over after batches of several samples."""
    size = loader.batch_size
    return loader.drop_last is False and size is not None and getattr(size.value, "value", 0) != 1


def _keeps_the_last(case: Case) -> bool:
    if case.document is None or case.facts.value("micro_batch_size") == 1:
        return False
    value = written(case.document, _KEY)
    return value is None or value.value is False


def _has_one_stage(case: Case, engine: Engine) -> bool:
    """Whether the pipeline has one stage, or may have: its number comes from elsewhere."""
    if engine.stages is None:
        return True
    known = number_of(case, engine.stages, engine)
    return known is None or known.value == 1
