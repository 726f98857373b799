"""How many ranks, micro-batches and samples: what every part of a plan agrees on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """The shape of the training.

    ``world_size``: data-parallel ranks, each of which has data of its own (all ranks, divided by
    the sizes of tensor, sequence and pipeline parallelism). ``micro_batch_size``: samples that a
    rank takes at once; None where only a token budget limits them. ``accumulation``: micro-batches
    of a rank in one optimizer step.
    """

    world_size: int
    micro_batch_size: int | None
    accumulation: int

    def __post_init__(self) -> None:
        for name, value in (
            ("world_size", self.world_size),
            ("micro_batch_size", self.micro_batch_size),
            ("gradient_accumulation_steps", self.accumulation),
        ):
            if value is not None and (isinstance(value, bool) or int(value) != value or value < 1):
                raise ValueError(f"{name} is a whole number above 0, not {value!r}")
