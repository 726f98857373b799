"""What a config and its launch can tell the table of known bugs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.dtypes import canonical
from dsguard.facts.target import release_beside
from dsguard.facts.values import as_switch, written
from dsguard.model.fact import Candidate, Known, Origin, OriginKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from dsguard.facts.case import Case
    from dsguard.facts.known_bugs import BugFact, KnownBug

_PACKAGES: dict[BugFact, str] = {
    "transformers_version": "transformers",
    "accelerate_version": "accelerate",
}


def bug_facts(case: Case, bugs: Iterable[KnownBug]) -> dict[BugFact, Candidate]:
    """What these bugs ask about, as far as it is known, with its origin."""
    known: dict[BugFact, Candidate] = {
        name: Candidate(fact.value, fact.origin)
        for name, fact in case.facts.items()
        if isinstance(fact, Known)
    }
    known.update(_settings(case))
    asked = {name for bug in bugs if _may_show(bug, known) for name in bug.when}
    known.update(_packages(case, asked))
    return known


def _may_show(bug: KnownBug, known: Mapping[BugFact, Candidate]) -> bool:
    """Whether only the releases of packages, which stand in files, can keep a bug from showing."""
    return all(
        name in _PACKAGES or (name in known and holds(known[name].value))
        for name, holds in bug.when.items()
    )


def _packages(case: Case, asked: set[BugFact]) -> Iterator[tuple[BugFact, Candidate]]:
    for name, package in _PACKAGES.items():
        release = release_beside(package, case.target, case.folder) if name in asked else None
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
    value = as_switch(at_once.value)
    if value is not None:  # else it is refused, or filled by a trainer
        yield "immediate_grad_update", Candidate(value, at_once.origin)
    total = written(document, "train_batch_size")
    micro = written(document, "train_micro_batch_size_per_gpu")
    given = [size for size in (total, micro) if size is not None and isinstance(size.value, int)]
    origin = given[0].origin if given else default
    yield "total_and_micro_batch_given", Candidate(len(given) == 2, origin)
