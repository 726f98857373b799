"""What the batch rules share: naming the factors of the equation and where they came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dsguard.facts.equation import BatchEquation, number
from dsguard.facts.what_if import batch_with
from dsguard.model.fact import FactName, Known, OriginKind
from dsguard.model.finding import Because

if TYPE_CHECKING:
    from dsguard.facts.case import Case
    from dsguard.frontends.requests import Request
    from dsguard.model.source import Location

KEYS: dict[FactName, str] = {
    "train_batch_size": "train_batch_size",
    "micro_batch_size": "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
}
"""The config key of each batch fact."""


def counted(value: Any, noun: str) -> str:
    """A number and what it counts: ``1 accumulation step``, ``8 accumulation steps``."""
    return f"{number(value)} {noun if value == 1 else noun + 's'}"


def reasons(case: Case, *names: FactName) -> tuple[Because, ...]:
    """The known facts among these, each with its origin.

    Nobody writes ``data_parallel_size``, so what it follows from stands in its place: the
    world size, which the launch gives, and the sequence parallel size.
    """
    traced: list[FactName] = []
    for name in names:
        fact = case.facts[name]
        if (
            name == "data_parallel_size"
            and isinstance(fact, Known)
            and fact.origin.kind is OriginKind.DERIVED
        ):
            traced.extend(fact.origin.facts)
        else:
            traced.append(name)
    facts = ((name, case.facts[name]) for name in traced)
    return tuple(Because.of(name, fact) for name, fact in facts if isinstance(fact, Known))


def place(case: Case, *names: FactName) -> Location:
    """Where the first of these facts is written in the config, else the start of the config."""
    assert case.document is not None
    for name in names:
        pointer = f"/{KEYS[name]}"
        if case.document.get(pointer) is not None:
            return case.document.locate(pointer)
    return case.document.locate("")


def with_accumulation(case: Case, request: Request) -> BatchEquation:
    """The equation as it would be if the config gave the accumulation that is asked for."""
    return batch_with(case, "gradient_accumulation_steps", Known(request.value, request.origin))
