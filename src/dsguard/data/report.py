"""What an audit has measured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """Values over the optimizer steps of an epoch."""

    mean: float
    p95: float
    maximum: float


@dataclass(frozen=True)
class Parting:
    """Where ranks part: some have no batch left, the others wait for them for ever.

    ``batch``, ``step`` and ``micro_batch`` (within the step) count from 0 and say where the first
    rank has nothing to do. ``ended`` are the ranks that stop there, ``missing`` the batches that
    they have less than the rank with the most.
    """

    batch: int
    step: int
    micro_batch: int
    ended: tuple[int, ...]
    missing: int


@dataclass(frozen=True)
class Shares:
    """What the time of all ranks goes into, in shares of 1, where they wait in each micro-batch.

    Under a model of time that counts tokens: ``useful`` work on samples, ``padding`` to the longest
    sample of a micro-batch, ``waiting`` for the slowest rank.
    """

    useful: float
    padding: float
    waiting: float


@dataclass(frozen=True)
class Shuffling:
    """Whether the order is still random.

    ``changes``: whether the next epoch has another order; None where there was no next one to
    look at. ``mates_kept``: share of the pairs of samples in one micro-batch that are in one again
    in the next epoch; None likewise, or where no micro-batch has two samples.
    ``clustering``: how many times more the mean length of an optimizer step varies than that of
    samples taken at random; 1 where lengths are mixed. ``drift``: the correlation of the mean
    length of an optimizer step with that of the next; near 1 where steps run from long to short.
    None where there are too few steps to tell.
    """

    changes: bool | None
    mates_kept: float | None
    clustering: float | None
    drift: float | None


@dataclass(frozen=True)
class StepPicture:
    """One optimizer step, by rank: tokens of samples and of padding."""

    step: int
    tokens: tuple[int, ...]
    padding: tuple[int, ...]


@dataclass(frozen=True)
class Audit:
    """What a way of batching costs.

    Tokens and samples are counts. A *load* is the work of a micro-batch on its rank: its samples
    times the cost of the longest. Imbalances are load of the rank with the most / mean - 1.

    ``waiting_micro_batch`` is the share of time that ranks wait on average where they meet in
    every micro-batch (ZeRO-2, ZeRO-3, FSDP), ``waiting_step`` where they meet once in an optimizer
    step (ZeRO-0 and 1, DDP under ``no_sync``). ``uneven_samples``: micro-steps in which ranks
    hold different numbers of samples. ``modalities_apart``: micro-steps in which a rank holds a
    modality that another does not. ``epoch_cost``: load of the slowest rank, summed over
    micro-steps: how long an epoch takes, in the unit of loads. ``picture``: a typical optimizer
    step; ``imbalance``: of stretches of optimizer steps, in order.
    """

    samples: int
    world_size: int
    micro_batch_size: int
    gradient_accumulation_steps: int
    batches_per_rank: tuple[int, ...]
    optimizer_steps: int
    incomplete_window: int
    parting: Parting | None
    tokens_per_rank: tuple[int, ...]
    padding: float
    step_imbalance: Spread
    micro_batch_imbalance: Spread
    waiting_micro_batch: float
    waiting_step: float
    shares: Shares
    epoch_cost: float
    uneven_samples: int
    modalities_apart: int | None
    repeated: int
    dropped: int
    shuffling: Shuffling
    picture: StepPicture
    imbalance: tuple[float, ...]

    @property
    def problems(self) -> tuple[str, ...]:
        """What hangs or trains on other data than its author thinks, in sentences."""
        return tuple(_problems(self))

    def __str__(self) -> str:
        counts = " or ".join(map(str, sorted(set(self.batches_per_rank))))
        lines = [
            f"batches per rank   {counts}, optimizer steps {self.optimizer_steps}",
            f"padding            {self.padding:.1%} of all tokens computed",
            f"step imbalance     {self.step_imbalance.mean:.1%} mean, "
            f"{self.step_imbalance.p95:.1%} p95, {self.step_imbalance.maximum:.1%} worst",
            f"waiting            {self.waiting_micro_batch:.1%} of the time (ZeRO-2, ZeRO-3, FSDP),"
            f" {self.waiting_step:.1%} (DDP, ZeRO-0 and 1)",
            f"samples            {self.repeated} repeated, {self.dropped} dropped",
        ]
        return "\n".join([*lines, *(f"problem: {problem}" for problem in self.problems)])


def _problems(audit: Audit) -> list[str]:
    problems: list[str] = []
    if (parting := audit.parting) is not None:
        ranks = ", ".join(map(str, parting.ended[:8])) + (", …" if len(parting.ended) > 8 else "")
        several = len(parting.ended) > 1
        problems.append(
            f"the run hangs: rank{'s' if several else ''} {ranks} "
            f"{'have' if several else 'has'} {parting.batch} batches, {parting.missing} fewer than "
            f"others, which wait from batch {parting.batch + 1} on (optimizer step "
            f"{parting.step + 1}, micro-batch {parting.micro_batch + 1})"
        )
    if audit.incomplete_window:
        problems.append(
            f"the last {audit.incomplete_window} of {min(audit.batches_per_rank)} batches fill no "
            f"window of {audit.gradient_accumulation_steps}: they are left over, or mix with the "
            "next epoch"
        )
    if audit.world_size > 1 and audit.repeated >= (audit.world_size - 1) * audit.samples:
        problems.append(f"the data is not split: every rank takes all {audit.samples:,} samples")
    if audit.uneven_samples:
        problems.append(
            f"in {audit.uneven_samples:,} micro-steps ranks hold different numbers of samples: "
            "averaged over ranks, a sample weighs more where there are fewer"
        )
    if audit.modalities_apart:
        problems.append(
            f"in {audit.modalities_apart:,} micro-steps a rank holds a modality that another does "
            "not: under ZeRO-3 parameters that only some ranks use make the others wait"
        )
    if audit.shuffling.changes is False:
        problems.append("the next epoch has the same order: call set_epoch, or shuffle")
    return problems
