"""A config without a batch size; see no_batch_size.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.equation import BatchFailure
from dsguard.facts.values import written
from dsguard.frontends.base import FrontEndName
from dsguard.model.fact import Known, OriginKind
from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.model.tree import Document, Object
from dsguard.rules.conditions import Either, Fails, Given, Is

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.model.source import Location

_SIZES = ("train_batch_size", "train_micro_batch_size_per_gpu")
_STEPS = "gradient_accumulation_steps"


@rule(
    code="DSG206",
    slug="no-batch-size",
    summary="neither train_batch_size nor train_micro_batch_size_per_gpu is given",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="raises AssertionError: Either train_batch_size or train_micro_batch_size_per_gpu",
    when=(
        Given("document"),
        Either(Fails(BatchFailure.NOTHING_GIVEN), Is("front_end", FrontEndName.TRANSFORMERS)),
    ),
)
def no_batch_size(case: Case, report: Reporter) -> Iterator[Finding]:
    """DeepSpeed needs one of the two; the accumulation count alone is not enough."""
    document = case.document
    if document is None or not isinstance(document.root, Object):
        return
    if case.batch.failure is not BatchFailure.NOTHING_GIVEN and not _trainer_fills_none(case):
        return
    if case.launch is not None and case.launch.launcher_arguments.get("autotuning"):
        # The autotuner writes the batch sizes into a config of its own.
        return
    assumed = _front_end_is_assumed(case)
    at, detail = _place(document)
    yield report(
        at,
        f"neither {_SIZES[0]} nor {_SIZES[1]} is given{detail}",
        Consequence.REFUSED,
        severity=Severity.WARNING if assumed else Severity.ERROR,
        confidence=Confidence.MEDIUM if assumed else Confidence.HIGH,
        help=f'give {_SIZES[1]} (HF Trainer and Accelerate fill it when it is "auto")'
        + ("; Lightning takes it from the DataLoader: --front-end lightning" if assumed else ""),
    )


def _trainer_fills_none(case: Case) -> bool:
    """Whether HF Trainer knows both sizes and puts neither in: it fills only keys that exist."""
    if case.front_end is None or case.front_end.name is not FrontEndName.TRANSFORMERS:
        return False
    return all(written(case.document, key) is None for key in _SIZES)


def _front_end_is_assumed(case: Case) -> bool:
    """Whether nothing says who reads the config: Lightning would fill in the micro batch."""
    front_end = case.facts["front_end"]
    known = isinstance(front_end, Known) and front_end.origin.kind is not OriginKind.DEFAULT
    return case.launch is None and not known


def _place(document: Document) -> tuple[Location, str]:
    """Where to point, and what to add to the message."""
    for key in _SIZES:
        if document.get(f"/{key}") is not None:
            return document.locate(f"/{key}"), ": null counts as absent"
    if document.get(f"/{_STEPS}") is not None:
        return document.locate(f"/{_STEPS}", "key"), f", and {_STEPS} alone is not enough"
    root = document.root
    empty = isinstance(root, Object) and not root.members
    return document.start, ": the config is empty" if empty else ""
