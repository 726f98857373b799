"""Every rank reads all of the data; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Acts, Weighs
from dsguard.rules.script._loaders import training_loaders
from dsguard.rules.script._loop import loop_of, once, reasons
from dsguard.script.loop.description import Does, Maker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG816",
    slug="data-not-split",
    summary="a DataLoader without a DistributedSampler gives every rank the same data",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("world_size",),
    oracle="both ranks train on the same samples",
    when=(Weighs("data_parallel_size"), Acts(Does.FORWARD)),
)
def data_not_split(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find loaders over a whole dataset that feed an engine on several ranks."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    ranks = case.facts.value("data_parallel_size")
    for engine in loop_of(case).engines:
        if not isinstance(ranks, int) or ranks < 2:
            continue
        # Ranks that share a model (mpu, a pipeline) share its data as well.
        known = engine.complete and not engine.is_pipeline and "mpu" not in engine.passed
        if engine.maker is not Maker.DEEPSPEED or "training_data" in engine.passed or not known:
            continue
        for loader in training_loaders(case, engine):
            if loader.sampler is not False or loader.shards:
                continue
            yield report(
                loader.location,
                f"this loader gives each of {ranks} ranks the whole dataset: an epoch goes over "
                f"every sample {ranks} times",
                Consequence.DIFFERS,
                because=reasons(case, "world_size"),
                help="pass sampler=DistributedSampler(dataset), or training_data=dataset to "
                "deepspeed.initialize",
                confidence=Confidence.MEDIUM,
            )
