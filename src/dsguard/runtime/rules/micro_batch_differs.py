"""The loader yields other batches than the engine counts; see micro_batch_differs.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.runtime.moments import Forward
from dsguard.runtime.rule import guard_rule
from dsguard.runtime.run import Boundary
from dsguard.runtime.wording import samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.fact import FactName
    from dsguard.model.rule import Reporter

_MICRO: FactName = "micro_batch_size"
_IN_A_ROW = 2
_PAIR = 2


@guard_rule(
    code="DSG916",
    slug="micro-batch-differs",
    summary="the batches that are trained on have another size than the engine's micro batch",
    severity=Severity.WARNING,
    since="0.1.0",
    on=Forward,
)
def micro_batch_differs(moment: Forward, report: Reporter) -> Iterator[Finding]:
    """Compare the first dimension of a batch with the micro batch that was asked for."""
    run, size = moment.run, moment.size
    asked = run.expected.asked.get(_MICRO)
    expected = int(asked.value) if asked is not None else run.engine.micro_batch()
    if size is None or expected is None or size == expected:
        return
    if size == run.engine.micro_batch() and "expectation-differs" in run.said:
        return  # engine and loader agree on another number than was asked for
    windows = run.windows
    whole_multiple = size > expected and size % expected == 0
    if not whole_multiple and windows.alike_batches < _IN_A_ROW:
        return  # a batch of its own kind: the last of an epoch, or sizes that vary
    if expected in windows.batches and windows.alike_batches <= _IN_A_ROW:
        return
    # Preference training puts the chosen and the rejected answer of a sample into one batch.
    maybe_pairs = moment.keywords and size == _PAIR * expected
    steps, words = run.accumulation(), run.engine.words
    outcome = f"one step trains on {samples(size * steps)} per rank instead of {expected * steps}"
    if run.boundary is Boundary.CALLER and not run.asked("gradient_accumulation_steps"):
        outcome = "nobody has said how many make a step"
    yield report(
        run.here(),
        f"{words.engine} is fed {samples(size)} in a micro-batch and {words.counts} {expected}: "
        + outcome,
        Consequence.DIFFERS,
        because=run.asked(_MICRO) or run.engine_says(_MICRO),
        severity=Severity.INFO if maybe_pairs else _severity(asked is not None),
        confidence=Confidence.LOW if maybe_pairs else Confidence.MEDIUM,
        help=f"give the loader batch_size={expected}, or {words.set_micro_batch} {size}",
    )


def _severity(asked: bool) -> Severity:
    return Severity.ERROR if asked else Severity.WARNING
