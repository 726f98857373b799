"""What a config and its launch can tell the table of known bugs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import TypeAdapter, ValidationError

from dsguard.facts.dtypes import canonical
from dsguard.facts.target import release_beside
from dsguard.facts.values import written
from dsguard.model.fact import Candidate, Known, Origin, OriginKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.facts.known_bugs import BugFact

_SWITCH = TypeAdapter(bool)
_PACKAGES: dict[BugFact, str] = {
    "transformers_version": "transformers",
    "accelerate_version": "accelerate",
}


def bug_facts(case: Case) -> dict[BugFact, Candidate]:
    """Every fact a condition may ask about that is known, with its origin."""
    known: dict[BugFact, Candidate] = {
        name: Candidate(fact.value, fact.origin)
        for name, fact in case.facts.items()
        if isinstance(fact, Known)
    }
    known.update(_settings(case))
    known.update(_packages(case))
    return known


def _packages(case: Case) -> Iterator[tuple[BugFact, Candidate]]:
    for name, package in _PACKAGES.items():
        release = release_beside(package, case.target, case.folder)
        if release is not None:
            argument = f"{package} {release}"
            yield name, Candidate(str(release), Origin(OriginKind.ENVIRONMENT, argument=argument))


def _settings(case: Case) -> Iterator[tuple[BugFact, Candidate]]:
    document = case.document
    default = Origin(OriginKind.DEFAULT, whose=f"DeepSpeed {case.target.version}")
    yield (
        "zero_hpz_partition_size",
        written(document, "zero_optimization.zero_hpz_partition_size") or Candidate(1, default),
    )
    dtype = written(document, "data_types.grad_accum_dtype")
    if dtype is None:
        yield "grad_accum_dtype", Candidate(None, default)
    elif canonical(dtype.value) is not None:
        yield "grad_accum_dtype", Candidate(canonical(dtype.value), dtype.origin)
    at_once = written(document, "bf16.immediate_grad_update") or Candidate(False, default)
    try:
        value = _SWITCH.validate_python(at_once.value)
    except ValidationError:
        pass  # refused or filled by a trainer: not known here
    else:
        yield "immediate_grad_update", Candidate(value, at_once.origin)
    total = written(document, "train_batch_size")
    micro = written(document, "train_micro_batch_size_per_gpu")
    given = [size for size in (total, micro) if size is not None and isinstance(size.value, int)]
    origin = given[0].origin if given else default
    yield "total_and_micro_batch_given", Candidate(len(given) == 2, origin)
