"""A model loaded before transformers knows of ZeRO-3; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.frontends.base import FrontEndName
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Given, Is
from dsguard.rules.script._loop import in_script, loop_of, once, reasons, stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG818",
    slug="model-loaded-before-training-arguments",
    summary="from_pretrained before TrainingArguments loads the whole model on every rank",
    severity=Severity.WARNING,
    since="0.1.0",
    needs=("zero_stage", "front_end"),
    oracle="the parameters of the loaded model are not partitioned",
    when=(Given("script"), Is("zero_stage", 3), Given("script.loop.set_up")),
)
def model_loaded_before_training_arguments(case: Case, report: Reporter) -> Iterator[Finding]:
    """Compare the order of ``from_pretrained`` and what tells transformers about ZeRO-3."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    loop = loop_of(case)
    names = (FrontEndName.TRANSFORMERS, FrontEndName.PLAIN)
    if stage(case) != 3 or loop.set_up is None or case.facts.value("front_end") not in names:
        return
    order, told = loop.set_up
    if any(load.order > order for load in loop.loads):
        return  # A model that is loaded later may be the one that trains.
    for load in loop.loads:
        what = told.source.slice(told.span).partition("(")[0]
        yield report(
            load.location,
            f"{load.name}.from_pretrained loads the whole model on every rank: transformers only "
            f"knows of ZeRO-3 from {what} on, which comes later",
            Consequence.LATE,
            because=(*reasons(case, "zero_stage"), in_script("ZeRO-3 known by", what, told)),
            help=f"call {what} before from_pretrained, and keep what it returns",
        )
