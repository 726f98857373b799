"""The batch equation, solved as DeepSpeed solves it.

``train_batch_size = micro batch x accumulation x data-parallel size``, where two of the
three may be left out. DeepSpeed (runtime/config.py, ``_set_batch_related_parameters`` and
``_batch_assertion``) floors twice when it derives a value and only then compares the product.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dsguard.model.fact import Conflict, Fact, FactName, Known, Origin, OriginKind, Unknown


class BatchFailure(str, Enum):
    """Why DeepSpeed stops over the batch sizes."""

    NOTHING_GIVEN = "nothing given"
    NOT_POSITIVE = "not positive"
    ZERO_MICRO_BATCH = "micro batch becomes 0"
    ZERO_ACCUMULATION = "accumulation becomes 0"
    PRODUCT = "product differs"
    INDIVISIBLE = "derived by floor division, product differs"


class BatchEquation(Struct, frozen=True):
    """The three batch sizes after DeepSpeed's own derivation.

    ``given`` says which of them DeepSpeed was handed; the others are derived. ``failure`` is
    None where the equation holds or cannot be judged.
    """

    train: Fact
    micro: Fact
    accumulation: Fact
    data_parallel: Fact
    given: frozenset[FactName]
    failure: BatchFailure | None = None

    @property
    def product(self) -> Any:
        """Micro batch x accumulation x data-parallel size, None where one is unknown."""
        factors = (self.micro, self.accumulation, self.data_parallel)
        if not all(isinstance(fact, Known) for fact in factors):
            return None
        micro, accumulation, data_parallel = (f.value for f in factors if isinstance(f, Known))
        return micro * accumulation * data_parallel


def solve(
    train: Fact | None, micro: Fact | None, accumulation: Fact | None, data_parallel: Fact
) -> BatchEquation:
    """Derive what is absent (None) and compare the product.

    A value that is not known makes those derived from it unknown; nothing is guessed.
    """
    given_facts: dict[FactName, Fact | None] = {
        "train_batch_size": train,
        "micro_batch_size": micro,
        "gradient_accumulation_steps": accumulation,
    }
    given = frozenset(name for name, fact in given_facts.items() if fact is not None)
    if train is None and micro is None:
        nothing = Unknown("the config gives neither train_batch_size nor a micro batch")
        settled = accumulation if accumulation is not None else nothing
        return BatchEquation(
            nothing, nothing, settled, data_parallel, given, BatchFailure.NOTHING_GIVEN
        )
    if any(isinstance(fact, Known) and not fact.value > 0 for fact in given_facts.values()):
        broken = Unknown("DeepSpeed stops over a batch size that is not positive")
        return BatchEquation(
            train or broken,
            micro or broken,
            accumulation or broken,
            data_parallel,
            given,
            BatchFailure.NOT_POSITIVE,
        )
    if accumulation is None:
        accumulation = _derive_accumulation(train, micro, data_parallel)
    if micro is None:
        micro = _derive_micro(train, accumulation, data_parallel, given)
    if train is None:
        train = _derive_train(micro, accumulation, data_parallel)
    equation = BatchEquation(train, micro, accumulation, data_parallel, given)
    return replace(equation, failure=_judge(equation))


def _derive_accumulation(train: Fact | None, micro: Fact | None, data_parallel: Fact) -> Fact:
    if train is None or micro is None:
        return Known(1, Origin(OriginKind.DEFAULT, whose="DeepSpeed"))
    unknown = _first_unknown(train, micro, data_parallel)
    if unknown is not None:
        return unknown
    total, size, ranks = _values(train, micro, data_parallel)
    return Known(
        total // size // ranks,
        Origin(
            OriginKind.DERIVED,
            facts=("train_batch_size", "micro_batch_size", "data_parallel_size"),
            formula=f"{number(total)} // {number(size)} // {number(ranks)}",
        ),
    )


def _derive_micro(
    train: Fact | None, accumulation: Fact, data_parallel: Fact, given: frozenset[FactName]
) -> Fact:
    if train is None:
        return Unknown("the config gives neither train_batch_size nor a micro batch")
    unknown = _first_unknown(train, accumulation, data_parallel)
    if unknown is not None:
        return unknown
    total, steps, ranks = _values(train, accumulation, data_parallel)
    formula = f"{number(total)} // {number(ranks)}"
    micro = total // ranks
    facts: tuple[FactName, ...] = ("train_batch_size", "data_parallel_size")
    if "gradient_accumulation_steps" in given:
        micro //= steps
        formula += f" // {number(steps)}"
        facts += ("gradient_accumulation_steps",)
    return Known(micro, Origin(OriginKind.DERIVED, facts=facts, formula=formula))


def _derive_train(micro: Fact, accumulation: Fact, data_parallel: Fact) -> Fact:
    unknown = _first_unknown(micro, accumulation, data_parallel)
    if unknown is not None:
        return unknown
    size, steps, ranks = _values(micro, accumulation, data_parallel)
    return Known(
        size * steps * ranks,
        Origin(
            OriginKind.DERIVED,
            facts=("micro_batch_size", "gradient_accumulation_steps", "data_parallel_size"),
            formula=f"{number(size)} x {number(steps)} x {number(ranks)}",
        ),
    )


def _judge(equation: BatchEquation) -> BatchFailure | None:
    micro, accumulation, train = equation.micro, equation.accumulation, equation.train
    if isinstance(micro, Known) and not micro.value > 0:
        return BatchFailure.ZERO_MICRO_BATCH
    if isinstance(accumulation, Known) and not accumulation.value > 0:
        return BatchFailure.ZERO_ACCUMULATION
    product = equation.product
    if product is None or not isinstance(train, Known) or train.value == product:
        return None
    return BatchFailure.PRODUCT if len(equation.given) == 3 else BatchFailure.INDIVISIBLE


def _first_unknown(*facts: Fact) -> Unknown | None:
    for fact in facts:
        if isinstance(fact, Unknown):
            return Unknown(fact.reason)
        if isinstance(fact, Conflict):
            values = " and ".join(str(candidate.value) for candidate in fact.candidates)
            return Unknown(f"it depends on a value that is in conflict ({values})")
    return None


def _values(*facts: Fact) -> tuple[Any, ...]:
    return tuple(fact.value for fact in facts if isinstance(fact, Known))


def number(value: Any) -> str:
    """A number as people write it: ``4`` for ``4.0`` too."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)
