"""How a comparison of ways of batching is put into words, in the terminal and on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.render.run_wording import amount, number, short

if TYPE_CHECKING:
    from dsguard.data.comparison import Comparison
    from dsguard.data.report import Audit

ABOUT = {
    "yours": "the batches of the file",
    "shuffled": "torch's DistributedSampler",
    "length-grouped": "HF Trainer's group_by_length",
    "balanced": "dsguard.data.BalancedBatchSampler",
}
"""What stands behind the name of a way of batching."""

COLUMNS = ("padding", "step imbalance", "worst step", "waiting", "waiting, DDP", "epoch time")
"""The figures of :func:`figures`."""

NOTES = (
    "step imbalance: load of the rank with the most / mean - 1, over optimizer steps. waiting: "
    "share of the time, where ranks meet in every micro-batch (ZeRO-2, ZeRO-3, FSDP) or once a "
    "step (DDP, ZeRO-0 and 1). A model that counts {unit}; nothing was run."
)


def percent(share: float) -> str:
    """``48.7%``; ten times the mean and more as a factor."""
    return f"{share:.1%}" if share < 10 else f"{share + 1:.0f}x"


def figures(told: Comparison, way: str) -> tuple[str, ...]:
    """What one way of batching costs, by :data:`COLUMNS`."""
    audit = told.ways[way]
    return (
        percent(audit.padding),
        percent(audit.step_imbalance.mean),
        percent(audit.step_imbalance.maximum),
        percent(audit.waiting_micro_batch),
        percent(audit.waiting_step),
        f"{told.relative_time(way):.2f}",
    )


def notes(told: Comparison) -> str:
    """What the figures mean."""
    unit = "padded tokens"
    if told.attention_length is not None:
        unit += f" and attention (as much as all else at {number(told.attention_length)} tokens)"
    return NOTES.format(unit=unit)


def about_lengths(told: Comparison) -> str:
    """How many samples and how long they are."""
    lengths = told.lengths
    return (
        f"{amount(lengths.samples, 'sample')}, {short(lengths.tokens)} tokens: "
        f"median {number(lengths.median)}, mean {number(round(lengths.mean))}, "
        f"p95 {number(round(lengths.p95))}, longest {number(lengths.longest)}"
    )


def about_shape(told: Comparison) -> str:
    """Ranks, samples and accumulation."""
    at_once = told.world_size * told.micro_batch_size * told.gradient_accumulation_steps
    return (
        f"{amount(told.world_size, 'rank')} × {amount(told.micro_batch_size, 'sample')} × "
        f"{amount(told.gradient_accumulation_steps, 'micro-batch', 'micro-batches')} = "
        f"{amount(at_once, 'sample')} in one optimizer step"
    )


def about_order(audit: Audit) -> str:
    """Whether the order is still random, and who is left out."""
    shuffling = audit.shuffling
    words = []
    if shuffling.changes is not None:
        words.append("another order each epoch" if shuffling.changes else "the same order always")
    if shuffling.mates_kept is not None:
        words.append(f"{shuffling.mates_kept:.1%} of neighbours meet again")
    if shuffling.clustering is not None:
        words.append(f"steps vary {shuffling.clustering:.1f}x as random ones")
    if shuffling.drift is not None and abs(shuffling.drift) > 0.3:
        words.append(f"drift {shuffling.drift:.2f}")
    if audit.repeated:
        words.append(f"{audit.repeated:,} repeated")
    if audit.dropped:
        words.append(f"{audit.dropped:,} dropped")
    return ", ".join(words)


def shown_ranks(told: Comparison, most: int) -> list[int]:
    """Ranks for a picture of one step: all of them, or evenly chosen ones."""
    ranks = told.world_size
    if ranks <= most:
        return list(range(ranks))
    return [index * (ranks - 1) // (most - 1) for index in range(most)]


def heaviest_step(told: Comparison) -> int:
    """Padded tokens of the busiest rank in any of the pictured steps: the width of the bars."""
    return max(
        tokens + padding
        for audit in told.ways.values()
        for tokens, padding in zip(audit.picture.tokens, audit.picture.padding, strict=True)
    )
