"""What BalancedBatchSampler promises, for any lengths and settings."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dsguard.data import BalancedBatchSampler
from dsguard.data.cost import cost
from dsguard.data.dealing import deal
from dsguard.data.orders import length_grouped

SETTINGS = settings(max_examples=80)


@dataclass(frozen=True)
class Case:
    """A data set and a sampler of it for every rank."""

    lengths: list[int]
    modality: list[str] | None
    arguments: dict[str, Any]

    @property
    def ranks(self) -> int:
        return int(self.arguments["world_size"])

    def sampler(self, rank: Any = 0) -> BalancedBatchSampler:
        return BalancedBatchSampler(
            self.lengths, rank=rank, modality=self.modality, **self.arguments
        )

    def batches(self, epoch: int = 0) -> list[list[list[int]]]:
        """By rank and micro-step."""
        first = self.sampler()
        first.set_epoch(epoch)
        return [list(first.for_rank(rank)) for rank in range(self.ranks)]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    lengths = draw(st.lists(st.integers(0, 3000), min_size=1, max_size=120))
    budget = draw(st.none() | st.integers(max(1, *lengths, 1), 9000))
    size = draw(st.integers(1, 4) if budget is None else st.none() | st.integers(1, 4))
    labels = st.lists(st.sampled_from("ab"), min_size=len(lengths), max_size=len(lengths))
    tolerances = [0.0, 0.02, 0.5] + ([float("inf")] if budget is None else [])
    case = Case(
        lengths,
        draw(st.none() | labels),
        {
            "world_size": draw(st.integers(1, 6)),
            "micro_batch_size": size,
            "gradient_accumulation_steps": draw(st.integers(1, 4)),
            "max_tokens": budget,
            "tolerance": draw(st.sampled_from(tolerances)),
            "attention_length": draw(st.none() | st.just(500.0)),
            "drop_last": draw(st.booleans()),
            "shuffle": draw(st.booleans()),
            "longest_first": draw(st.booleans()),
            "seed": draw(st.integers(0, 9)),
        },
    )
    if case.arguments["drop_last"]:  # the only way in which these arguments may be refused
        with contextlib.suppress(ValueError):
            case.sampler()
            return case
        assume(False)
    return case


@SETTINGS
@given(cases(), st.integers(0, 3))
def test_every_rank_has_as_many_batches_of_as_many_samples(case: Case, epoch: int) -> None:
    batches = case.batches(epoch)
    assert {len(of_rank) for of_rank in batches} == {len(case.sampler())}
    assert len(batches[0]) % case.arguments["gradient_accumulation_steps"] == 0
    for micro_step in zip(*batches, strict=True):
        assert len({len(batch) for batch in micro_step}) == 1
        assert micro_step[0]


@SETTINGS
@given(cases(), st.integers(0, 3))
def test_all_ranks_together_take_the_data_set(case: Case, epoch: int) -> None:
    sampler = case.sampler()
    taken = Counter(s for of_rank in case.batches(epoch) for batch in of_rank for s in batch)
    assert set(taken) <= set(range(len(case.lengths)))
    assert sum(taken.values()) == len(case.lengths) - sampler.dropped + sampler.repeated
    kinds = case.modality or ["a"] * len(case.lengths)
    for kind in set(kinds):
        members = [sample for sample, label in enumerate(kinds) if label == kind]
        uses = [taken[sample] for sample in members]
        assert max(uses) - min(uses) <= 1, "a sample twice before every other one once more"
        if case.arguments["drop_last"] and case.arguments["max_tokens"] is None:
            assert max(uses) == 1
    if not case.arguments["drop_last"]:
        assert sampler.dropped == 0


@SETTINGS
@given(cases())
def test_no_micro_step_mixes_modalities(case: Case) -> None:
    kinds = case.modality or ["a"] * len(case.lengths)
    for micro_step in zip(*case.batches(), strict=True):
        assert len({kinds[sample] for batch in micro_step for sample in batch}) == 1


@SETTINGS
@given(cases(), st.integers(0, 3))
def test_a_budget_is_kept(case: Case, epoch: int) -> None:
    most, budget = case.arguments["micro_batch_size"], case.arguments["max_tokens"]
    for batch in (batch for of_rank in case.batches(epoch) for batch in of_rank):
        assert most is None or len(batch) <= most
        if budget is not None:
            assert len(batch) * max(case.lengths[sample] for sample in batch) <= budget
        else:
            assert len(batch) == most


@SETTINGS
@given(cases(), st.data())
def test_a_resumed_epoch_is_the_one_that_was_stopped(case: Case, data: st.DataObject) -> None:
    epoch = data.draw(st.integers(0, 2))
    whole = [case.batches(e) for e in (epoch, epoch + 1)]
    rank = data.draw(st.integers(0, case.ranks - 1))
    stop = data.draw(st.integers(0, len(whole[0][rank])))
    before, after = case.sampler(rank), case.sampler(rank)
    before.set_epoch(epoch)
    stream = iter(before)
    assert [next(stream) for _ in range(stop)] == whole[0][rank][:stop]
    after.load_state_dict(before.state_dict())
    after.set_epoch(epoch)  # as a loop over epochs does
    if stop < len(before):
        assert list(after) == whole[0][rank][stop:]
        assert list(after) == whole[0][rank]  # once more from its beginning
    after.set_epoch(epoch + 1)
    assert list(after) == whole[1][rank]


@SETTINGS
@given(cases())
def test_the_batches_of_all_ranks_in_turn(case: Case) -> None:
    in_turn = list(case.sampler("all"))
    assert len(in_turn) == len(case.sampler("all"))
    assert [in_turn[rank :: case.ranks] for rank in range(case.ranks)] == case.batches()


@SETTINGS
@given(cases())
def test_the_heaviest_micro_step_comes_first_where_asked(case: Case) -> None:
    assume(case.arguments["longest_first"])
    lengths = np.asarray(case.lengths)
    loads = [
        max(
            len(batch) * cost(lengths[batch].max(), case.arguments["attention_length"])
            for batch in micro_step
        )
        for micro_step in zip(*case.batches(), strict=True)
    ]
    assert loads[0] == max(loads)


@st.composite
def whole_steps(draw: st.DrawFn) -> tuple[np.ndarray, int, int, int]:
    """Lengths that fill optimizer steps, ranks, micro-batch, accumulation."""
    ranks, size, accumulation = (draw(st.integers(1, 4)) for _ in range(3))
    steps = draw(st.integers(1, 8))
    number = steps * ranks * size * accumulation
    seed = draw(st.integers(0, 10_000))
    lengths = np.random.default_rng(seed).lognormal(5, 1.2, number).astype(int) + 1
    return lengths, ranks, size, accumulation


@SETTINGS
@given(whole_steps(), st.sampled_from([0.0, 0.02, 0.3]), st.integers(0, 5))
def test_never_worse_than_length_grouping_but_for_the_tolerance(
    made: tuple[np.ndarray, int, int, int], tolerance: float, seed: int
) -> None:
    """Padding and waiting are the least there can be, times 1 + tolerance at most."""
    lengths, ranks, size, accumulation = made
    sampler = BalancedBatchSampler(
        lengths, size, accumulation, rank=0, world_size=ranks, tolerance=tolerance, seed=seed
    )
    ours = np.array([list(sampler.for_rank(rank)) for rank in range(ranks)])
    grouped = length_grouped(lengths, ranks, size, accumulation, seed).first
    theirs = np.array([rank.samples.reshape(-1, size) for rank in grouped])
    slack = (1 + tolerance) * (1 + 1e-9)
    longest = [lengths[batches].max(axis=2) for batches in (ours, theirs)]  # (ranks, micro-steps)
    padded = [of.sum() for of in longest]
    assert padded[0] <= padded[1] * slack
    waited = [of.max(axis=0).sum() for of in longest]
    assert waited[0] <= waited[1] * slack


@SETTINGS
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 6), st.integers(0, 1000), st.booleans())
def test_dealing_is_never_worse_than_dealing_by_length(
    steps: int, micro_steps: int, ranks: int, seed: int, shuffled: bool
) -> None:
    generator = np.random.default_rng(seed)
    loads = -np.sort(-generator.pareto(1, (steps, micro_steps, ranks)), axis=2)
    place = deal(loads, generator if shuffled else None)
    assert (np.sort(place, axis=2) == np.arange(ranks)).all()
    sums = np.take_along_axis(loads, place, axis=2).sum(axis=1)
    assert (sums.max(axis=1) <= loads.sum(axis=1).max(axis=1) + 1e-9).all()


def test_light_micro_batches_go_to_ranks_that_had_heavy_ones() -> None:
    loads = np.array([[[5.0, 1.0, 1.0], [3.0, 2.0, 1.0], [9.0, 9.0, 9.0]]])
    place = deal(loads, None)
    # The first micro-step is the most uneven one: rank 0 takes its 5, then the 1 of the second.
    assert place[0, 1, 0] == 2
    sums = np.take_along_axis(loads, place, axis=2).sum(axis=1)
    assert sorted(sums[0]) == [12, 13, 15]


@pytest.mark.parametrize("drop_last", [True, False])
@pytest.mark.parametrize("tolerance", [0.0, 0.5])
def test_a_budget_is_kept_where_order_and_repeats_are_against_it(
    tolerance: float, drop_last: bool
) -> None:
    """Lengths just within the tolerance, and repeated samples that are longer than the rest."""
    for lengths in ([100] * 4 + [10] * 37, [*range(100, 150)] * 8):
        sampler = BalancedBatchSampler(
            lengths,
            rank=0,
            world_size=4,
            max_tokens=1500 if tolerance else 150,
            tolerance=tolerance,
            drop_last=drop_last,
        )
        for epoch in range(30):
            sampler.set_epoch(epoch)
            for batch in sampler.for_rank("all"):
                longest = max(lengths[sample] for sample in batch)
                assert len(batch) * longest <= (1500 if tolerance else 150)


LENGTHS = np.random.default_rng(0).lognormal(6, 0.8, 4000).astype(int) + 1


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    def order(seed: int, epoch: int) -> list[list[int]]:
        sampler = BalancedBatchSampler(LENGTHS, 4, 4, rank=1, world_size=8, seed=seed)
        sampler.set_epoch(epoch)
        return list(sampler)

    orders = [order(seed, epoch) for seed in (0, 1) for epoch in (0, 1)]
    assert order(0, 0) == orders[0]
    for index, one in enumerate(orders):
        for other in orders[:index]:
            # Not only dealt in another order: the batches themselves are others.
            same = {tuple(sorted(b)) for b in one} & {tuple(sorted(b)) for b in other}
            assert len(same) < len(one) / 20


def test_dropped_samples_are_others_in_each_epoch() -> None:
    sampler = BalancedBatchSampler(LENGTHS, 4, 7, rank=0, world_size=9, drop_last=True)
    assert 0 < sampler.dropped < 4 * 7 * 9
    missing = []
    for epoch in range(3):
        sampler.set_epoch(epoch)
        seen = {s for rank in range(9) for b in sampler.for_rank(rank) for s in b}
        missing.append(frozenset(range(len(LENGTHS))) - seen)
    assert [len(m) for m in missing] == [sampler.dropped] * 3
    assert len(frozenset.union(*missing)) > 2 * sampler.dropped


def test_a_pass_that_was_left_half_way_starts_anew() -> None:
    sampler = BalancedBatchSampler(LENGTHS, 4, rank=0, world_size=2)
    first = next(iter(sampler))
    assert next(iter(sampler)) == first


def test_a_state_of_another_order_is_refused() -> None:
    state = BalancedBatchSampler(LENGTHS, 4, 2, rank=0, world_size=2).state_dict()
    with pytest.raises(ValueError, match="world_size was 2, is 4"):
        BalancedBatchSampler(LENGTHS, 4, 2, rank=0, world_size=4).load_state_dict(state)
    other = LENGTHS.copy()
    other[7] += 1
    with pytest.raises(ValueError, match="lengths was"):
        BalancedBatchSampler(other, 4, 2, rank=0, world_size=2).load_state_dict(state)
    mine = BalancedBatchSampler(LENGTHS, 4, 2, rank=1, world_size=2)
    mine.load_state_dict(state)  # of another rank: the same place in the same order


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "say micro_batch_size"),
        ({"micro_batch_size": 0}, "micro_batch_size is a whole number above 0, not 0"),
        ({"micro_batch_size": 2, "gradient_accumulation_steps": 1.5}, "steps is a whole number"),
        ({"max_tokens": 10}, "more than max_tokens=10"),
        ({"max_tokens": 0}, "max_tokens is a number of tokens"),
        ({"max_tokens": 9000, "tolerance": float("inf")}, "a finite tolerance"),
        ({"micro_batch_size": 2, "seed": -1}, "seed is a whole number"),
        ({"micro_batch_size": 2, "tolerance": -1}, "tolerance is a share"),
        ({"micro_batch_size": 2, "attention_length": 0}, "attention_length is"),
        ({"micro_batch_size": 2, "rank": 2}, "rank 2 is none of 0 to 1"),
        ({"micro_batch_size": 2, "modality": ["a"]}, "1 modality labels for 3 lengths"),
        ({"micro_batch_size": 2, "drop_last": True}, "say drop_last=False"),
    ],
)
def test_arguments_that_make_no_sense(arguments: dict[str, Any], words: str) -> None:
    arguments = {"rank": 0, "world_size": 2, **arguments}
    with pytest.raises(ValueError, match=words):
        BalancedBatchSampler([5, 300, 7], **arguments)


@pytest.mark.parametrize("lengths", [[], [[1, 2]], [1.5], [-1, 2], ["a"]])
def test_lengths_that_are_none(lengths: Any) -> None:
    with pytest.raises(ValueError, match="length"):
        BalancedBatchSampler(lengths, 1, rank=0, world_size=1)


def test_a_launch_without_process_group_is_not_taken_for_one_rank(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(ValueError, match="WORLD_SIZE is 4 and no process group runs"):
        BalancedBatchSampler(LENGTHS, 4)
    monkeypatch.delenv("WORLD_SIZE")
    assert BalancedBatchSampler(LENGTHS, 4).world_size == 1
