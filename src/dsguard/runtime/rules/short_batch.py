"""A last batch with fewer samples; see short_batch.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import Forward
from dsguard.runtime.rule import guard_rule
from dsguard.runtime.wording import samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter


@guard_rule(
    code="DSG917",
    slug="short-batch",
    summary="a batch with fewer samples than the micro batch, as the last one of an epoch",
    severity=Severity.INFO,
    since="0.1.0",
    on=Forward,
)
def short_batch(moment: Forward, report: Reporter) -> Iterator[Finding]:
    """Note a smaller batch after full ones."""
    run, size = moment.run, moment.size
    expected = run.engine.micro_batch()
    if size is None or expected is None or size >= expected:
        return
    if expected not in run.windows.batches:
        return
    yield report(
        run.here(),
        f"a micro-batch of {samples(size)} counts as much in the step as one of {expected}",
        Consequence.NOTE,
        help="drop_last=True in the loader leaves it out",
    )
