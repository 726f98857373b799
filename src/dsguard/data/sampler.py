"""A batch sampler that gives every rank as much work as the others."""

from __future__ import annotations

import copy
import os
import sys
import zlib
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dsguard.data.cost import checked_attention_length
from dsguard.data.counts import Budget, micro_step_counts
from dsguard.data.epoch import EpochPlan, Recipe, plan_epoch
from dsguard.data.lengths import kinds_of, lengths_array
from dsguard.data.shape import Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_TOLERANCE = 0.01


class BalancedBatchSampler:
    """Micro-batches of similar lengths, dealt so that no rank waits for another.

    ::

        sampler = BalancedBatchSampler(lengths, micro_batch_size=4, gradient_accumulation_steps=8)
        loader = DataLoader(dataset, batch_sampler=sampler, collate_fn=collate)
        for epoch in range(epochs):
            sampler.set_epoch(epoch)
            for batch in loader: ...

    Every rank yields the same number of batches, a multiple of the accumulation. All ranks
    take equally many samples, of one modality and of similar length, in each micro-step: what
    ZeRO-2, ZeRO-3 and FSDP wait for in every micro-batch. Within an optimizer step, micro-batches
    are dealt so that the sums are even: what ZeRO-0, ZeRO-1 and DDP wait for. Each rank computes
    the same plan from the same arguments; nothing is communicated.

    Args:
        lengths: tokens of each sample; shape (samples,). Any sequence or array.
        micro_batch_size: samples of one rank in one micro-batch. With ``max_tokens`` the most
            there may be, None for no limit.
        gradient_accumulation_steps: micro-batches of one rank in one optimizer step.
        rank: this data-parallel rank; None asks the running process group. ``"all"`` yields the
            batches of all ranks in turn, for what deals batches itself (Accelerate, HF Trainer).
        world_size: data-parallel ranks. Under tensor, sequence or pipeline parallelism several
            processes share the data of one: say ``rank`` and ``world_size`` then, as the process
            group counts every process.
        modality: a label for each sample, such as ``"text"`` and ``"image"``. Micro-steps never
            mix them, so that under ZeRO-3 no rank waits for parameters that another does not use.
        max_tokens: tokens (samples times the longest) of one micro-batch at most. Samples of a
            micro-batch then vary, equally on all ranks.
        attention_length: the length in tokens at which attention costs as much as all else,
            about 6 × hidden size (12 × with a causal kernel); None counts tokens only.
        tolerance: how freely neighbours in length are mixed. Lengths within this share of each
            other count as equal: what is computed and the time of an epoch grow by at most that
            over the least there can be. 0 sorts strictly and gives nearly the same batches each
            epoch, infinity mixes all lengths.
        seed: of the order; the same on every rank.
        shuffle: False gives the same batches every epoch, longer ones first.
        drop_last: drop samples that fill no micro-step or optimizer step (others each epoch) in
            place of repeating some; see ``dropped`` and ``repeated``.
        longest_first: begin each epoch with the heaviest micro-step, so that memory runs out at
            once or not at all.

    Raises:
        ValueError: an argument that makes no sense, or no process group to ask for the rank.
    """

    def __init__(
        self,
        lengths: Any,
        micro_batch_size: int | None = None,
        gradient_accumulation_steps: int = 1,
        *,
        rank: int | Literal["all"] | None = None,
        world_size: int | None = None,
        modality: Sequence[Any] | None = None,
        max_tokens: int | None = None,
        attention_length: float | None = None,
        tolerance: float = _TOLERANCE,
        seed: int = 0,
        shuffle: bool = True,
        drop_last: bool = False,
        longest_first: bool = False,
    ) -> None:
        if micro_batch_size is None and max_tokens is None:
            raise ValueError("say micro_batch_size (samples) or max_tokens, or both")
        if max_tokens is not None and (isinstance(max_tokens, bool) or max_tokens < 1):
            raise ValueError(f"max_tokens is a number of tokens above 0, not {max_tokens!r}")
        if seed < 0:
            raise ValueError(f"seed is a whole number, 0 or more, not {seed}")
        if not tolerance >= 0:
            raise ValueError(f"tolerance is a share of the length, 0 or more, not {tolerance}")
        if max_tokens is not None and tolerance == float("inf"):
            raise ValueError("max_tokens needs batches of similar length: a finite tolerance")
        self.rank, self.world_size = _rank_and_world_size(rank, world_size)
        shape = Shape(self.world_size, micro_batch_size, gradient_accumulation_steps)
        self._lengths = lengths_array(lengths)
        kinds = kinds_of(modality, len(self._lengths))
        self._members = kinds.members()
        self._recipe = Recipe(
            shape,
            tolerance if shuffle else 0.0,
            checked_attention_length(attention_length),
            seed,
            shuffle,
            longest_first,
        )
        budget = None
        if max_tokens is not None:
            budget = Budget(max_tokens, 1 + self._recipe.tolerance)
        self._counts = micro_step_counts(
            [self._lengths[of_kind] for of_kind in self._members],
            kinds.names,
            shape,
            budget,
            drop_last,
        )
        taken = [self.world_size * int(counts.sum()) for counts in self._counts]
        left = [len(of_kind) - n for of_kind, n in zip(self._members, taken, strict=True)]
        self.dropped = sum(n for n in left if n > 0)
        """Samples that an epoch leaves out, on all ranks together."""
        self.repeated = -sum(n for n in left if n < 0)
        """Samples that an epoch uses once more, on all ranks together."""
        self._epoch = 0
        self._resume_at = 0
        self._drawn = 0
        self._plan: tuple[int, EpochPlan] | None = None

    @property
    def epoch(self) -> int:
        """The epoch that the next pass yields."""
        return self._epoch

    @property
    def sampler(self) -> BalancedBatchSampler:
        """Itself: where Accelerate and Lightning look for ``set_epoch``."""
        return self

    def set_epoch(self, epoch: int) -> None:
        """Choose the order; call it before each epoch, on every rank.

        After :meth:`load_state_dict` the epoch it stopped in goes on where it was; any other
        starts at its beginning.
        """
        if epoch != self._epoch:
            self._epoch, self._resume_at, self._drawn = epoch, 0, 0

    def for_rank(self, rank: int | Literal["all"]) -> BalancedBatchSampler:
        """The same sampler as another rank has it."""
        other = copy.copy(self)
        other.rank, _ = _rank_and_world_size(rank, self.world_size)
        other._resume_at = other._drawn = 0
        return other

    def plan(self) -> EpochPlan:
        """The batches of all ranks in this epoch."""
        if self._plan is None or self._plan[0] != self._epoch:
            self._plan = None  # one epoch in memory at a time
            made = plan_epoch(self._lengths, self._members, self._counts, self._recipe, self._epoch)
            self._plan = (self._epoch, made)
        return self._plan[1]

    def __len__(self) -> int:
        """Batches of a whole epoch: of this rank, or of all where ``rank`` is ``"all"``."""
        batches = sum(map(len, self._counts))
        return batches * self.world_size if self.rank == "all" else batches

    def __iter__(self) -> Iterator[list[int]]:
        plan = self.plan()
        # Only the first pass after load_state_dict: a pass that was left half-way starts anew.
        begin, self._resume_at = self._resume_at % len(self), 0
        for number in range(begin, len(self)):
            if self.rank == "all":
                batch = plan.batch(*divmod(number, self.world_size))
            else:
                batch = plan.batch(number, self.rank)
            self._drawn = number + 1
            yield batch

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """Where the epoch is, to be kept with a checkpoint.

        Args:
            batches: batches of this epoch that were trained on. None takes what was drawn from
                the sampler; a ``DataLoader`` with workers draws ahead, so say the number there,
                or use torchdata's ``StatefulDataLoader``, which keeps count itself.
        """
        return {
            "epoch": self._epoch,
            "batches": self._drawn if batches is None else batches,
            **self._identity(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where :meth:`state_dict` was taken, with the next pass.

        Raises:
            KeyError: it is no state of this sampler.
            ValueError: lengths or arguments were others; the order would be another.
        """
        mine = self._identity()
        apart = [
            f"{name} was {state[name]}, is {value}"
            for name, value in mine.items()
            if state[name] != value
        ]
        if apart:
            raise ValueError(f"the state is of another order of samples: {'; '.join(apart)}")
        epoch, batches = int(state["epoch"]), int(state["batches"])
        if not 0 <= batches <= len(self):
            raise ValueError(f"the state is at batch {batches} of {len(self)}")
        self._epoch, self._resume_at, self._drawn = epoch, batches, batches

    def _identity(self) -> dict[str, Any]:
        """What the order depends on; the same on every rank."""
        recipe = self._recipe
        labels = b"".join(of_kind.tobytes() for of_kind in self._members[1:])
        return {
            "samples": len(self._lengths),
            "lengths": zlib.crc32(labels, zlib.crc32(self._lengths.tobytes())),
            "micro_steps": zlib.crc32(np.concatenate(self._counts).tobytes()),
            "world_size": self.world_size,
            "gradient_accumulation_steps": recipe.shape.accumulation,
            "attention_length": recipe.attention_length,
            "tolerance": recipe.tolerance,
            "seed": recipe.seed,
            "shuffle": recipe.shuffle,
            "longest_first": recipe.longest_first,
        }


def _rank_and_world_size(
    rank: int | Literal["all"] | None, world_size: int | None
) -> tuple[int | Literal["all"], int]:
    if rank is None or world_size is None:
        found_rank, found_size = _of_process_group()
        if rank is None and world_size not in (None, found_size):
            raise ValueError(f"say which of the {world_size} ranks this is: {found_size} run")
        rank = found_rank if rank is None else rank
        world_size = found_size if world_size is None else world_size
    if rank != "all" and not 0 <= rank < world_size:
        raise ValueError(f"rank {rank} is none of 0 to {world_size - 1}")
    return rank, world_size


def _of_process_group() -> tuple[int, int]:
    """This process and their number; (0, 1) where only one runs."""
    torch = sys.modules.get("torch")
    dist = getattr(torch, "distributed", None)
    if dist is not None and dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    if os.environ.get("WORLD_SIZE", "1") not in ("", "1"):
        raise ValueError(
            f"WORLD_SIZE is {os.environ['WORLD_SIZE']} and no process group runs: make the sampler "
            "after deepspeed.initialize or init_process_group, or say rank and world_size"
        )
    return 0, 1
