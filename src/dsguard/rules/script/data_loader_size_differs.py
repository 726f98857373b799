"""A DataLoader of another batch size than the engine counts; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Acts
from dsguard.rules.script._loaders import training_loaders
from dsguard.rules.script._loop import loop_of, number_of, once, reasons
from dsguard.script.declaration import FromArgument
from dsguard.script.loop.description import Does, Maker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG817",
    slug="data-loader-size-differs",
    summary="the DataLoader that feeds the engine has another batch size than its micro batch",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("micro_batch_size",),
    oracle="engine.train_micro_batch_size_per_gpu() is not the loader's batch",
    when=(Acts(Does.FORWARD),),
)
def data_loader_size_differs(case: Case, report: Reporter) -> Iterator[Finding]:
    """Compare the ``batch_size`` of the training loader with the micro batch."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    micro = case.facts.known("micro_batch_size")
    for engine in loop_of(case).engines:
        if engine.maker is not Maker.DEEPSPEED or case.batch.failure is not None:
            continue
        for loader in training_loaders(case, engine):
            given = loader.batch_size
            if given is None or _is_asked_by_flag(case, given.value):
                continue
            size = number_of(case, given, engine)
            if size is None or size.value == micro.value or size.value < 1:
                continue
            yield report(
                given.location,
                f"this loader yields {size.value} samples, but the engine counts "
                f"{micro.value} per GPU and micro-batch",
                Consequence.DIFFERS,
                because=(
                    *reasons(case, "micro_batch_size"),
                    Because("loader batch", size.value, size.origin),
                ),
                help=f"batch_size={engine.name}.train_micro_batch_size_per_gpu() is always right",
            )


def _is_asked_by_flag(case: Case, value: object) -> bool:
    """Whether the size comes from a flag that the batch rules judge."""
    request = case.requests.get("train_micro_batch_size_per_gpu")
    return isinstance(value, FromArgument) and request is not None and request.name == value.name
