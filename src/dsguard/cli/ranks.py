"""Whether this dsguard is one of many, started by a launcher for every rank of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dsguard.model.digits import whole_number

if TYPE_CHECKING:
    from collections.abc import Mapping

_LAUNCHERS = (
    ("torchrun", "RANK", "WORLD_SIZE", "TORCHELASTIC_RUN_ID"),
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("MPICH", "PMI_RANK", "PMI_SIZE", "PMI_RANK"),
    ("srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"),
    ("a launcher", "RANK", "WORLD_SIZE", "RANK"),
)
"""Variables of rank and size, and the one that shows that this launcher started the process.

A Slurm batch script has ``SLURM_PROCID`` too, but is no step.
"""

_BATCH_STEP = "4294967291"
"""Slurm's number for the batch script itself (``SLURM_BATCH_SCRIPT`` in slurm.h)."""


class Seat(NamedTuple):
    """The place of this process among the ranks of a job."""

    launcher: str
    rank: int
    world_size: int
    variable: str
    """The environment variable that holds the world size."""


def seat_of(environ: Mapping[str, str]) -> Seat | None:
    """The rank that the environment gives this process; None where no launcher started it."""
    for launcher, rank, size, shown_by in _LAUNCHERS:
        if shown_by not in environ or environ.get("SLURM_STEP_ID") == _BATCH_STEP:
            continue
        number, world_size = (whole_number(environ.get(name, "")) for name in (rank, size))
        if number is not None and world_size is not None:
            return Seat(launcher, number, world_size, size)
    return None
