"""The batch sizes do not multiply on the ranks there are; see batch_arithmetic_broken.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.equation import number
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.runtime.moments import Attached
from dsguard.runtime.rule import guard_rule
from dsguard.runtime.wording import samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.fact import FactName
    from dsguard.model.rule import Reporter

_NAMES: tuple[FactName, ...] = (
    "train_batch_size",
    "micro_batch_size",
    "gradient_accumulation_steps",
    "data_parallel_size",
)


@guard_rule(
    code="DSG903",
    slug="batch-arithmetic-broken",
    summary="the engine's batch sizes do not multiply over the ranks that really run",
    severity=Severity.ERROR,
    since="0.1.0",
    on=Attached,
)
def batch_arithmetic_broken(moment: Attached, report: Reporter) -> Iterator[Finding]:
    """Multiply the engine's own numbers with the ranks of its process group."""
    facts = moment.run.engine.facts()
    found = [facts[name] for name in _NAMES if name in facts]
    if len(found) != len(_NAMES) or not all(isinstance(f.value, int) for f in found):
        return
    train, micro, steps, ranks = (fact.value for fact in found)
    product = micro * steps * ranks
    if product == train:
        return
    yield report(
        moment.run.attached_at,
        f"the engine counts {samples(train)} in a step, but {micro} x {steps} on "
        f"{ranks} data-parallel ranks are {number(product)}",
        Consequence.DIFFERS,
        because=tuple(Because.of(name, fact) for name, fact in zip(_NAMES, found, strict=True)),
        help="give deepspeed.initialize a config that was read after the process group was "
        "made, with the ranks that really run",
    )
