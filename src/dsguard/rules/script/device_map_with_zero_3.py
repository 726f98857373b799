"""``device_map`` where ZeRO-3 places the parameters; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.frontends.base import FrontEndName
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Given, Is
from dsguard.rules.script._loop import in_script, loop_of, once, reasons, stage
from dsguard.script.declaration import Constant

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


@rule(
    code="DSG819",
    slug="device-map-with-zero-3",
    summary="transformers refuses device_map under ZeRO stage 3",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("zero_stage", "front_end"),
    oracle="raises ValueError: DeepSpeed Zero-3 is not compatible with passing a `device_map`",
    when=(Given("script"), Is("zero_stage", 3), Given("script.loop.set_up")),
)
def device_map_with_zero_3(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find ``from_pretrained(…, device_map=…)`` behind what tells transformers about ZeRO-3."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    loop = loop_of(case)
    names = (FrontEndName.TRANSFORMERS, FrontEndName.PLAIN)
    if stage(case) != 3 or loop.set_up is None or case.facts.value("front_end") not in names:
        return
    order, told = loop.set_up
    for load in loop.loads:
        given = load.passed.get("device_map")
        if given is None or load.order < order:
            continue
        if not isinstance(given.value, Constant) or given.value.value is None:
            continue
        yield report(
            given.location,
            f"device_map={given.text} places the parameters, and so does ZeRO stage 3: "
            "transformers stops with ValueError",
            Consequence.REFUSED,
            because=(
                *reasons(case, "zero_stage"),
                in_script("ZeRO-3 known by", told.source.slice(told.span).partition("(")[0], told),
            ),
            help="leave device_map out",
        )
