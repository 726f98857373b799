"""Asking the real DeepSpeed what it says to a config, in this process and without ranks.

``DeepSpeedConfig`` asks its process group for the world size and rank; both are answered here.
Anything it logs is silenced. Import this module only in tests marked ``deepspeed``.
"""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
from unittest import mock

os.environ.setdefault("DS_ACCELERATOR", "cpu")
os.environ.setdefault("DS_BUILD_OPS", "0")


class Resolved(NamedTuple):
    """The three batch numbers that an accepted config ends up with."""

    train_batch_size: Any
    micro_batch_size: Any
    gradient_accumulation_steps: Any


def refuses(config: dict[str, Any], world_size: int = 1) -> str | None:
    """Why ``DeepSpeedConfig`` refuses a config (``TypeName: message``), None where it does not."""
    try:
        _read(config, world_size)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def resolved(config: dict[str, Any], world_size: int = 1) -> Resolved:
    """The batch numbers of an accepted config; raises what ``DeepSpeedConfig`` raises."""
    made = _read(config, world_size)
    return Resolved(
        made.train_batch_size,
        made.train_micro_batch_size_per_gpu,
        made.gradient_accumulation_steps,
    )


def _read(config: dict[str, Any], world_size: int) -> Any:
    from deepspeed.runtime.config import DeepSpeedConfig

    with ranks(world_size):
        return DeepSpeedConfig(copy.deepcopy(config))


@contextmanager
def ranks(world_size: int) -> Iterator[None]:
    import deepspeed.comm as dist

    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            mock.patch.object(dist, "get_world_size", return_value=world_size),
            mock.patch.object(dist, "get_rank", return_value=0),
        ):
            yield
    finally:
        logging.disable(before)
