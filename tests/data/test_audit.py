"""The audit against numbers worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dsguard.data import BalancedBatchSampler, audit
from dsguard.data.auditing import measure
from dsguard.data.batches import Epochs
from dsguard.data.orders import length_grouped, shuffled
from dsguard.data.report import Parting, Shares
from dsguard.data.shape import Shape

LENGTHS = [10, 6, 4, 4, 8, 2, 5, 5]
RANKS = [[[0, 1], [2, 3]], [[4, 5], [6, 7]]]
"""Longest 10 and 8, then 4 and 5; tokens 16 and 10, then 8 and 10."""


def of(batches: Any, lengths: Any = LENGTHS, **arguments: Any) -> Any:
    arguments = {"world_size": 2, "micro_batch_size": 2, "gradient_accumulation_steps": 2} | (
        arguments
    )
    return audit(batches, lengths, **arguments)


def test_padding_and_balance() -> None:
    told = of(RANKS)
    assert told.batches_per_rank == (2, 2)
    assert (told.optimizer_steps, told.incomplete_window) == (1, 0)
    assert told.tokens_per_rank == (24, 20)
    computed = 20 + 16 + 8 + 10
    assert told.padding == pytest.approx(1 - 44 / computed)
    # The loads of the step are 20 + 8 and 16 + 10.
    assert told.step_imbalance.maximum == pytest.approx(28 / 27 - 1)
    assert told.waiting_step == pytest.approx(1 - 27 / 28)
    # In each micro-batch the slower one counts: 20, then 10.
    assert told.waiting_micro_batch == pytest.approx(1 - 27 / 30)
    assert told.epoch_cost == 30
    assert told.shares == Shares(44 / 60, pytest.approx(10 / 60), pytest.approx(6 / 60))
    assert (told.picture.tokens, told.picture.padding) == ((24, 20), (4, 6))
    assert (told.repeated, told.dropped, told.problems) == (0, 0, ())


def test_attention_weighs_long_sequences_more() -> None:
    told = of(RANKS, attention_length=10)
    # 10 costs 20, 8 costs 14.4, 4 costs 5.6, 5 costs 7.5; two samples each.
    assert told.epoch_cost == pytest.approx(2 * 20 + 2 * 7.5)
    assert told.step_imbalance.maximum == pytest.approx(51.2 / 47.5 - 1)


def test_the_first_place_where_ranks_part() -> None:
    batches = [[[n] for n in range(8)], [[n] for n in range(5)], [[n] for n in range(5)]]
    told = of(batches, world_size=3)
    assert told.parting == Parting(batch=5, step=2, micro_batch=1, ended=(1, 2), missing=3)
    assert told.problems[0] == (
        "the run hangs: ranks 1, 2 have 5 batches, 3 fewer than others, which wait from batch 6 "
        "on (optimizer step 3, micro-batch 2)"
    )
    assert told.incomplete_window == 1
    assert told.problems[1].startswith("the last 1 of 5 batches fill no window of 2")


def test_data_that_is_not_split() -> None:
    told = of([RANKS[0] + RANKS[1]] * 2)
    assert (told.repeated, told.dropped) == (8, 0)
    assert told.problems == ("the data is not split: every rank takes all 8 samples",)


def test_repeated_and_dropped_samples() -> None:
    told = of([[[0, 1], [2, 2]], [[4, 5], [6, 0]]])
    assert (told.repeated, told.dropped) == (2, 2)


def test_ranks_with_other_samples_or_modalities_at_once() -> None:
    uneven = of([[[0], [1, 2]], [[3, 4], [5, 6]]])
    assert uneven.uneven_samples == 1
    assert uneven.problems[0].startswith("in 1 micro-steps ranks hold different numbers")
    kinds = ["image", "image", "text", "text", "text", "text", "image", "text"]
    apart = of(RANKS, modality=kinds)
    assert apart.modalities_apart == 2
    assert any("under ZeRO-3" in problem for problem in apart.problems)
    assert of(RANKS, modality=["text"] * 8).modalities_apart == 0
    assert of(RANKS).modalities_apart is None


@pytest.mark.parametrize(
    "same",
    [
        lambda rank: RANKS[rank],
        [RANKS[0][0], RANKS[1][0], RANKS[0][1], RANKS[1][1]],
        [0, 1, 4, 5, 2, 3, 6, 7],
        np.array([0, 1, 4, 5, 2, 3, 6, 7]),
    ],
    ids=["function", "batches in turn", "samples", "array"],
)
def test_other_ways_to_say_the_same(same: Any) -> None:
    assert of(same) == of(RANKS)


@pytest.mark.parametrize(
    ("batches", "error", "words"),
    [
        (3, TypeError, "not a int"),
        ([], ValueError, "there are no batches"),
        ([[[0]], [[1]], [[2]]], ValueError, "there are batches for 3 ranks, not 2"),
        ([[[0], []], [[1], [2]]], ValueError, "batch 1 is empty"),
        ([[[0]], []], ValueError, "no batches for rank 1"),
        ([[[0]], [[8]]], ValueError, "holds sample 8, and there are lengths for 0 to 7"),
    ],
)
def test_what_is_no_way_of_batching(batches: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        of(batches)


SAMPLES = np.random.default_rng(0).lognormal(6, 0.8, 8192).astype(int) + 1
SHAPE = Shape(4, 4, 4)


def measured(epochs: Epochs) -> Any:
    return measure(epochs, SAMPLES, SHAPE)


def test_whether_shuffling_survives() -> None:
    random = measured(shuffled(len(SAMPLES), 4, 4)).shuffling
    assert random.changes
    assert random.mates_kept < 0.005
    assert random.clustering == pytest.approx(1, abs=0.2)
    assert abs(random.drift) < 0.25
    grouped = measured(length_grouped(SAMPLES, 4, 4, 4)).shuffling
    assert grouped.clustering > 4
    assert grouped.drift > 0.25
    asked = {"world_size": 4, "micro_batch_size": 4, "gradient_accumulation_steps": 4}

    def balanced(tolerance: float) -> Any:
        sampler = BalancedBatchSampler(SAMPLES, rank=0, tolerance=tolerance, **asked)
        return audit(sampler, SAMPLES, **asked).shuffling

    told = [balanced(tolerance) for tolerance in (0.0, 0.01, 0.2, float("inf"))]
    kept = [shuffling.mates_kept for shuffling in told]
    assert kept == sorted(kept, reverse=True)
    assert kept[0] > 0.5
    assert kept[-1] < 0.02
    assert told[1].clustering < grouped.clustering
    assert abs(told[1].drift) < 0.25


def test_an_order_that_never_changes_is_told() -> None:
    told = audit(
        BalancedBatchSampler(SAMPLES, 4, rank=0, world_size=4, shuffle=False),
        SAMPLES,
        world_size=4,
        micro_batch_size=4,
    )
    assert told.shuffling.changes is False
    assert told.shuffling.mates_kept == 1
    assert told.problems == ("the next epoch has the same order: call set_epoch, or shuffle",)


def test_the_report_as_text() -> None:
    assert str(of(RANKS)).splitlines()[0] == "batches per rank   2, optimizer steps 1"
    assert "problem: the run hangs" in str(of([[[0], [1]], [[2]]]))
