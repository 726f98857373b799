"""What one optimizer step really consumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.equation import BatchFailure, number
from dsguard.frontends.base import FrontEnd, FrontEndName
from dsguard.model.fact import Fact, FactName, Known, Origin, OriginKind, Unknown
from dsguard.model.finding import Confidence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dsguard.frontends.requests import Requests

_MICRO = "train_micro_batch_size_per_gpu"


def samples_per_step(
    requests: Requests,
    front_end: FrontEnd | None,
    facts: Mapping[FactName, Fact],
    failure: BatchFailure | None,
) -> Fact:
    """Samples per optimizer step: loader batch x accumulation x data-parallel size.

    In a plain script the DataLoader is the script's own and DeepSpeed never looks at it, so
    the flag that sizes the loader counts where there is one; without such a flag the loader
    is taken to yield the micro batch.
    """
    if failure is not None:
        return Unknown("DeepSpeed stops over the batch sizes")
    ranks_from = facts["data_parallel_size"]
    if isinstance(ranks_from, Known) and "sequence_parallel_size" in ranks_from.origin.facts:
        # The key alone divides DeepSpeed's batch equation and nothing else.
        return Unknown("the script decides which ranks share a sequence")
    loader: Fact = facts["micro_batch_size"]
    causes: tuple[FactName, ...] = ("micro_batch_size",)
    flag = ""
    own_loader = front_end is None or front_end.name is not FrontEndName.TRANSFORMERS
    request = requests.get(_MICRO) if own_loader else None
    undecided = requests.undecided_key(_MICRO) if own_loader else None
    if undecided is not None:
        return Unknown(undecided)
    if request is not None:
        if request.value < 1:
            return Unknown(f"{request.flag} {request.value} is no batch size")
        if request.confidence is not Confidence.HIGH and _could_be_global(request.value, facts):
            return Unknown(f"{request.flag} {request.value} may count one rank's samples or all")
        loader = Known(request.value, request.origin)
        causes, flag = (), f"{request.flag} "
    factors: tuple[Fact, ...] = (
        loader,
        facts["gradient_accumulation_steps"],
        facts["data_parallel_size"],
    )
    for fact in factors:
        if isinstance(fact, Unknown):
            return Unknown(fact.reason)
        if not isinstance(fact, Known):
            return Unknown("it depends on a value that is in conflict")
    size, steps, ranks = (fact.value for fact in factors if isinstance(fact, Known))
    return Known(
        size * steps * ranks,
        Origin(
            OriginKind.DERIVED,
            location=loader.origin.location if isinstance(loader, Known) and flag else None,
            facts=(*causes, "gradient_accumulation_steps", "data_parallel_size"),
            formula=f"{flag}{number(size)} x {number(steps)} x {number(ranks)}",
        ),
    )


def _could_be_global(value: int, facts: Mapping[FactName, Fact]) -> bool:
    """Whether ``--batch_size`` can only be told apart from a total by reading the script.

    A number that the ranks do not divide is a per-rank batch; so is one that equals the
    micro batch.
    """
    ranks, micro = facts["data_parallel_size"], facts["micro_batch_size"]
    if not isinstance(ranks, Known) or ranks.value == 1:
        return False
    if isinstance(micro, Known) and micro.value == value:
        return False
    return bool(value % ranks.value == 0)
