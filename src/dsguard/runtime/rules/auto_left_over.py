"""``auto`` that nobody filled; see auto_left_over.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import Attached
from dsguard.runtime.rule import guard_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter


@guard_rule(
    code="DSG902",
    slug="auto-left-over",
    summary='the running engine still has "auto" where a number belongs',
    severity=Severity.ERROR,
    since="0.1.0",
    on=Attached,
)
def auto_left_over(moment: Attached, report: Reporter) -> Iterator[Finding]:
    """Look for ``auto`` under the keys that a front end fills."""
    left = moment.run.engine.leftover_auto()
    if not left:
        return
    keys = ", ".join(left)
    taken = [key for key in left if "." not in key]
    outcome = "uses the word as a value" if taken else "uses its default instead"
    yield report(
        moment.run.attached_at,
        f'the engine was built with "auto" under {keys}: no Trainer has filled it, and DeepSpeed '
        + outcome,
        Consequence.LATE if taken else Consequence.DIFFERS,
        severity=Severity.ERROR if taken else Severity.WARNING,
        help="write values into the config that deepspeed.initialize is given",
    )
