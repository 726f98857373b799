"""``loss.backward()`` where the engine's is needed; see backward_around_engine.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import Backward
from dsguard.runtime.rule import guard_rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.rule import Reporter


@guard_rule(
    code="DSG919",
    slug="backward-around-engine",
    summary="loss.backward() instead of engine.backward(loss), in a release that needs the latter",
    severity=Severity.ERROR,
    since="0.1.0",
    on=Backward,
)
def backward_around_engine(moment: Backward, report: Reporter) -> Iterator[Finding]:
    """A backward pass that the engine has not started, where its release does not support it."""
    run = moment.run
    harm = "" if moment.through_engine else run.engine.needs_engine_backward()
    if not harm:
        return
    yield report(
        run.here(),
        f"loss.backward() was called instead of engine.backward(loss): {harm}",
        Consequence.DIFFERS,
        help="call engine.backward(loss)",
    )
