"""The real samplers, loaders and trainers: what is said of them, and that the sampler fits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dsguard.data import BalancedBatchSampler, audit
from dsguard.data.batches import read_batches

torch = pytest.importorskip("torch")
from torch.utils.data import (  # noqa: E402
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
)

RANKS, SIZE, ACCUMULATION = 4, 3, 2
LENGTHS = np.random.default_rng(3).lognormal(5, 1, 205).astype(int) + 1
DATA = list(range(len(LENGTHS)))


def sampler(rank: Any = 0, **arguments: Any) -> BalancedBatchSampler:
    return BalancedBatchSampler(
        LENGTHS, SIZE, ACCUMULATION, rank=rank, world_size=RANKS, **arguments
    )


def batches_of(source: Any) -> list[list[list[int]]]:
    """What the audit takes for the batches of each rank."""
    ranks = read_batches(source, RANKS, SIZE).first
    return [
        [part.tolist() for part in np.split(of.samples, np.cumsum(of.sizes)[:-1])] for of in ranks
    ]


def loaded(loader: Any) -> list[list[int]]:
    return [batch.tolist() for batch in loader]


def sharded(batch_sampler: Callable[[], Any]) -> list[list[list[int]]]:
    """What Accelerate gives each rank of a loader over a sampler that each rank makes."""
    data_loader = pytest.importorskip("accelerate.data_loader")
    return [
        loaded(
            data_loader.prepare_data_loader(
                DataLoader(DATA, batch_sampler=batch_sampler()),
                num_processes=RANKS,
                process_index=rank,
                put_on_device=False,
            )
        )
        for rank in range(RANKS)
    ]


# What the audit says of the samplers of others


@pytest.mark.parametrize("drop_last", [True, False])
def test_distributed_sampler(drop_last: bool) -> None:
    def of(rank: int) -> DistributedSampler[int]:
        return DistributedSampler(DATA, RANKS, rank, seed=5, drop_last=drop_last)

    real = [loaded(DataLoader(DATA, SIZE, sampler=of(rank))) for rank in range(RANKS)]
    assert batches_of(of(2)) == real
    assert batches_of(DataLoader(DATA, SIZE, sampler=of(1))) == real


def test_a_sampler_that_knows_no_ranks_is_dealt_as_accelerate_deals() -> None:
    trainer = pytest.importorskip("transformers.trainer_pt_utils")

    def grouped() -> Any:
        generator = torch.Generator().manual_seed(1)
        return trainer.LengthGroupedSampler(
            SIZE * ACCUMULATION, lengths=LENGTHS.tolist(), generator=generator
        )

    real = sharded(lambda: BatchSampler(grouped(), SIZE, drop_last=False))
    assert batches_of(grouped()) == real
    assert batches_of(list(grouped())) == real


def test_the_length_grouping_of_dsguard_balance_costs_what_the_real_one_costs() -> None:
    from dsguard.data.auditing import measure
    from dsguard.data.orders import length_grouped, shuffled
    from dsguard.data.shape import Shape

    trainer = pytest.importorskip("transformers.trainer_pt_utils")
    lengths = np.random.default_rng(0).lognormal(6, 0.8, 40_000).astype(int) + 1
    asked = {"world_size": 8, "micro_batch_size": 4, "gradient_accumulation_steps": 4}
    shape = Shape(8, 4, 4)
    generator = torch.Generator().manual_seed(0)
    grouped = trainer.LengthGroupedSampler(16, lengths=lengths.tolist(), generator=generator)
    real = audit(grouped, lengths, **asked)
    ours = measure(length_grouped(lengths, 8, 4, 4), lengths, shape)
    assert ours.padding == pytest.approx(real.padding, rel=0.1)
    assert ours.waiting_micro_batch == pytest.approx(real.waiting_micro_batch, rel=0.05)
    assert ours.shuffling.clustering == pytest.approx(real.shuffling.clustering, rel=0.1)
    real = audit(DistributedSampler(lengths, 8, 0), lengths, **asked)
    ours = measure(shuffled(len(lengths), 8, 4), lengths, shape)
    assert ours.padding == pytest.approx(real.padding, rel=0.02)
    assert ours.waiting_micro_batch == pytest.approx(real.waiting_micro_batch, rel=0.02)


def test_samplers_are_left_as_they_were() -> None:
    torch.manual_seed(0)
    plain, own = RandomSampler(DATA), RandomSampler(DATA, generator=torch.Generator())
    distributed = DistributedSampler(DATA, RANKS, 1)
    distributed.set_epoch(7)
    expected = [list(plain), list(own), torch.rand(1).item()]
    torch.manual_seed(0)
    own.generator.set_state(torch.Generator().get_state())
    for one in (plain, own, distributed):
        audit(one, LENGTHS, world_size=RANKS, micro_batch_size=SIZE)
    assert [list(plain), list(own), torch.rand(1).item()] == expected
    assert (distributed.epoch, distributed.rank) == (7, 1)


def test_the_audit_of_a_sampler_for_other_ranks_is_refused() -> None:
    with pytest.raises(ValueError, match="the DistributedSampler is made for 2 ranks, not 4"):
        audit(DistributedSampler(DATA, 2, 0), LENGTHS, world_size=4, micro_batch_size=1)


def test_lengths_and_labels_may_be_tensors() -> None:
    labels = torch.arange(len(DATA)) % 2
    of_tensors = BalancedBatchSampler(
        torch.tensor(LENGTHS), SIZE, rank=0, world_size=RANKS, modality=labels
    )
    of_lists = BalancedBatchSampler(
        LENGTHS.tolist(), SIZE, rank=0, world_size=RANKS, modality=labels.tolist()
    )
    assert list(of_tensors) == list(of_lists)


# How the sampler fits into the loaders of others


def test_a_loader_with_workers_yields_the_plan() -> None:
    loader = DataLoader(DATA, batch_sampler=sampler(2), num_workers=2)
    assert len(loader) == len(sampler(2))
    assert loaded(loader) == list(sampler(2))
    assert batches_of(loader)[1] == list(sampler(1))


def test_a_loader_with_workers_is_resumed_by_the_batches_that_were_trained_on() -> None:
    mine = sampler()
    whole = list(mine)
    stream = iter(DataLoader(DATA, batch_sampler=mine, num_workers=2, prefetch_factor=2))
    trained = [next(stream).tolist() for _ in range(3)]
    # The workers have drawn ahead: the sampler's own count is not what was trained on.
    assert mine.state_dict()["batches"] > 3
    after = sampler()
    after.load_state_dict(mine.state_dict(batches=3))
    assert trained + loaded(DataLoader(DATA, batch_sampler=after, num_workers=2)) == whole


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_loader_keeps_count_itself(workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def loader() -> Any:
        return stateful.StatefulDataLoader(DATA, batch_sampler=sampler(), num_workers=workers)

    whole = list(sampler())
    first = loader()
    stream = iter(first)
    trained = [next(stream).tolist() for _ in range(5)]
    state = first.state_dict()
    after = loader()
    after.load_state_dict(state)
    assert trained + loaded(after) == whole
    assert loaded(after) == whole  # the epoch after it starts at its beginning


def test_accelerate_deals_each_rank_its_own_batches() -> None:
    """With ``rank="all"``; a sampler of one rank would be split a second time."""
    assert sharded(lambda: sampler("all")) == [list(sampler(rank)) for rank in range(RANKS)]
    assert sharded(lambda: sampler("all", max_tokens=9000)) == [
        list(sampler(rank, max_tokens=9000)) for rank in range(RANKS)
    ]
    split_twice = sharded(lambda: sampler(0))[0]
    assert len(split_twice) < len(sampler(0))


def test_accelerate_sets_the_epoch() -> None:
    data_loader = pytest.importorskip("accelerate.data_loader")
    mine = sampler("all")
    loader = data_loader.prepare_data_loader(
        DataLoader(DATA, batch_sampler=mine),
        num_processes=RANKS,
        process_index=1,
        put_on_device=False,
    )
    passes = [loaded(loader), loaded(loader)]
    for epoch, seen in enumerate(passes):
        expected = sampler(1)
        expected.set_epoch(epoch)
        assert seen == list(expected)


def test_accelerate_skips_what_was_trained_on() -> None:
    accelerate = pytest.importorskip("accelerate")
    data_loader = pytest.importorskip("accelerate.data_loader")
    loader = data_loader.prepare_data_loader(
        DataLoader(DATA, batch_sampler=sampler("all")),
        num_processes=RANKS,
        process_index=3,
        put_on_device=False,
    )
    assert loaded(accelerate.skip_first_batches(loader, 4)) == list(sampler(3))[4:]


def test_lightning_sets_the_epoch() -> None:
    data = pytest.importorskip("lightning.fabric.utilities.data")
    mine = sampler(1)
    data._set_sampler_epoch(DataLoader(DATA, batch_sampler=mine), 5)
    assert mine.epoch == 5


def test_the_trainer_trains_on_the_plan(tmp_path: Any) -> None:
    transformers = pytest.importorskip("transformers")

    class Data(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return len(DATA)

        def __getitem__(self, index: int) -> Any:
            return {"x": torch.tensor([float(index)]), "labels": torch.tensor([0.0])}

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))
            self.seen: list[list[int]] = []

        def forward(self, x: Any, labels: Any) -> Any:
            self.seen.append(x.flatten().int().tolist())
            return {"loss": (self.weight * x - labels).pow(2).mean()}

    def of_one_rank() -> BalancedBatchSampler:
        return BalancedBatchSampler(LENGTHS, SIZE, ACCUMULATION, rank="all", world_size=1)

    class BalancedTrainer(transformers.Trainer):  # type: ignore[misc, name-defined]
        def get_train_dataloader(self) -> Any:
            loader = DataLoader(
                self.train_dataset, batch_sampler=of_one_rank(), collate_fn=self.data_collator
            )
            return self.accelerator.prepare(loader)

    model = Model()
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        num_train_epochs=2,
        per_device_train_batch_size=SIZE,
        gradient_accumulation_steps=ACCUMULATION,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        logging_strategy="no",
        use_cpu=True,
        seed=1,
    )
    trainer = BalancedTrainer(model=model, args=arguments, train_dataset=Data())
    trainer.train()
    expected = []
    for epoch in range(2):
        one = of_one_rank()
        one.set_epoch(epoch)
        expected += list(one)
    assert model.seen == expected
    assert trainer.state.global_step == len(expected) // ACCUMULATION
