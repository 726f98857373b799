"""The shell that a launch command is typed in: the variables it hands on, and its user's files.

Only names that a launcher reads to choose hosts, devices and processes are taken over; whatever
else an environment holds, such as keys and tokens, is left alone.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from dsguard.launch.context import Argument
from dsguard.model.fact import OriginKind
from dsguard.model.source import Location, Source, Span

if TYPE_CHECKING:
    from collections.abc import Mapping

_READ = frozenset(
    (
        "CUDA_VISIBLE_DEVICES", "DS_ENV_FILE", "RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR",
        "NNODES", "MIN_NNODES", "MAX_NNODES", "NPROC_PER_NODE", "RDZV_ID", "FORCE_TORCHRUN",
        "USE_RAY", "USE_MCA", "USE_V1", "ALLOW_EXTRA_ARGS", "SLURM_JOB_NUM_NODES", "SLURM_NNODES",
        "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NTASKS_PER_NODE",
    )
)  # fmt: skip
"""Variables of DeepSpeed, torchrun, Slurm, LLaMA-Factory and ms-swift."""
_OF_TORCHRUN = "PET_"
"""What the variable of any option of torchrun begins with."""


class Environ(Struct, frozen=True):
    """What a launch gets from the shell without a word in the command.

    ``home`` is the home folder of whoever launches, None where there is none.
    ``accelerate_config`` is the file that ``accelerate launch`` reads without ``--config_file``,
    None where it does not exist.
    """

    variables: tuple[Argument, ...] = ()
    home: Path | None = None
    accelerate_config: Path | None = None


NO_ENVIRON = Environ()
"""Of a launch that somebody starts somewhere else."""


def read_environ(variables: Mapping[str, str], home: Path | None) -> Environ:
    """The environment of a shell with these variables, of a user with this home folder."""
    return Environ(
        tuple(_argument(name, value) for name, value in sorted(variables.items()) if is_read(name)),
        home,
        _accelerate_config(variables, home),
    )


def is_read(name: str) -> bool:
    """Whether a launcher reads the variable of this name to choose hosts, devices or processes."""
    return name in _READ or name.startswith(_OF_TORCHRUN)


def _argument(name: str, value: str) -> Argument:
    source = Source("<environment>", f"{name}={value}", is_file=False)
    whole, start = Span(0, len(source.text)), len(name) + 1
    return Argument(
        name,
        name,
        value,
        Location(source, whole),
        Location(source, Span(start, whole.end)),
        kind=OriginKind.ENVIRONMENT,
    )


def _accelerate_config(variables: Mapping[str, str], home: Path | None) -> Path | None:
    """``default_config.yaml`` in Accelerate's cache folder.

    Source: accelerate/commands/config/config_args.py (``default_config_file``).
    """
    cache = variables.get("XDG_CACHE_HOME", "~/.cache")
    folder = variables.get("HF_HOME", os.path.join(cache, "huggingface"))  # noqa: PTH118
    if folder.startswith("~"):
        if home is None or not folder.startswith("~/"):
            return None
        folder = str(home / folder[2:])
    path = Path(folder, "accelerate", "default_config.yaml")
    # Unlike Path.is_file, this takes any text.
    return path if os.path.isfile(path) else None  # noqa: PTH113
