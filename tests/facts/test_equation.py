"""The batch equation, by hand and against DeepSpeed's own arithmetic."""

from __future__ import annotations

import itertools

import pytest

from dsguard.facts.equation import BatchEquation, BatchFailure, solve
from dsguard.model.fact import Fact, Known, Origin, OriginKind, Unknown

CONFIG = Origin(OriginKind.CONFIG)


def known(value: float | None) -> Known | None:
    return None if value is None else Known(value, CONFIG)


def numbers(equation: BatchEquation) -> tuple[object, ...]:
    facts = (equation.train, equation.micro, equation.accumulation)
    return tuple(f.value if isinstance(f, Known) else None for f in facts)


def solved(train: object, micro: object, steps: object, ranks: object) -> BatchEquation:
    return solve(known(train), known(micro), known(steps), Known(ranks, CONFIG))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("train", "micro", "steps", "ranks", "result", "failure"),
    [
        (64, 4, 2, 8, (64, 4, 2), None),
        (64, 4, 2, 4, (64, 4, 2), BatchFailure.PRODUCT),
        (32, 2, None, 4, (32, 2, 4), None),
        (30, 4, None, 4, (30, 4, 1), BatchFailure.INDIVISIBLE),
        (8, 4, None, 4, (8, 4, 0), BatchFailure.ZERO_ACCUMULATION),
        (32, None, 2, 4, (32, 4, 2), None),
        (33, None, 2, 4, (33, 4, 2), BatchFailure.INDIVISIBLE),
        (7, None, 2, 4, (7, 0, 2), BatchFailure.ZERO_MICRO_BATCH),
        (None, 4, 2, 8, (64, 4, 2), None),
        (32, None, None, 4, (32, 8, 1), None),
        (33, None, None, 4, (33, 8, 1), BatchFailure.INDIVISIBLE),
        (2, None, None, 4, (2, 0, 1), BatchFailure.ZERO_MICRO_BATCH),
        (None, 2, None, 4, (8, 2, 1), None),
        (None, None, 4, 4, (None, None, 4), BatchFailure.NOTHING_GIVEN),
        (None, None, None, 4, (None, None, None), BatchFailure.NOTHING_GIVEN),
        (0, 1, None, 4, (0, 1, None), BatchFailure.NOT_POSITIVE),
        (8, 0, None, 4, (8, 0, None), BatchFailure.NOT_POSITIVE),
    ],
)
def test_the_cases_of_what_is_given(
    train: object,
    micro: object,
    steps: object,
    ranks: int,
    result: tuple[object, ...],
    failure: object,
) -> None:
    equation = solved(train, micro, steps, ranks)
    assert numbers(equation) == result
    assert equation.failure is failure


def test_two_floor_divisions_are_not_one() -> None:
    """17 // 3 // 2 is 2 and 17 // (3 * 2) too, but the order shows with floats and in messages."""
    equation = solved(17, 3, None, 2)
    assert isinstance(equation.accumulation, Known)
    assert equation.accumulation.origin.formula == "17 // 3 // 2"
    assert equation.accumulation.value == 17 // 3 // 2


def test_what_an_unknown_world_leaves_open() -> None:
    unknown = Unknown("no launch command was given")
    equation = solve(known(32), None, known(4), unknown)
    assert equation.micro == Unknown("no launch command was given")
    assert numbers(equation) == (32, None, 4)
    assert equation.failure is None


def test_only_one_size_given_means_no_accumulation_whatever_the_world() -> None:
    unknown = Unknown("no launch command was given")
    for train, micro in ((32, None), (None, 4)):
        equation = solve(known(train), known(micro), None, unknown)
        assert isinstance(equation.accumulation, Known)
        assert equation.accumulation.value == 1


def test_auto_never_reaches_arithmetic() -> None:
    auto: Fact = Unknown('train_batch_size is "auto"')
    equation = solve(auto, known(4), None, Known(8, CONFIG))
    assert isinstance(equation.accumulation, Unknown)
    assert equation.failure is None


@pytest.mark.deepspeed
def test_every_small_case_as_deepspeed_solves_it() -> None:
    from tests.oracle import refuses, resolved

    sizes = (None, 1, 2, 3, 4, 6, 8, 12, 2.0)
    disagreements = []
    for train, micro, steps in itertools.product(sizes, sizes, (None, 1, 2, 3)):
        config = {
            "train_batch_size": train,
            "train_micro_batch_size_per_gpu": micro,
            "gradient_accumulation_steps": steps,
        }
        config = {key: value for key, value in config.items() if value is not None}
        for ranks in (1, 2, 4):
            equation = solved(train, micro, steps, ranks)
            refused = refuses(config, ranks) is not None
            if refused != (equation.failure is not None):
                disagreements.append((config, ranks, equation.failure))
            elif not refused and numbers(equation) != tuple(resolved(config, ranks)):
                disagreements.append((config, ranks, numbers(equation)))
    assert disagreements == []
