"""zero_optimization.zenflow: important gradients on the device, the rest on the CPU."""

from typing import Annotated, Literal

from dsguard.schema.block import After, CheckedBlock, Limit, OutOfRangeError, key
from dsguard.schema.history import Was


def _number_or_auto(value: str | int) -> str | int:
    if isinstance(value, str) and value != "auto":
        raise ValueError('text other than "auto"')
    return value


def _positive_or_auto(value: str | int) -> str | int:
    if isinstance(value, int) and value < 1:
        raise OutOfRangeError("less than 1")
    return _number_or_auto(value)


class ZenFlow(CheckedBlock):
    """Which gradients are applied on the device, and when the rest follows.

    Source: deepspeed/runtime/zenflow/zenflow_config.py.
    """

    topk_ratio: float = key(
        0.1,
        "Share of gradient columns updated on the device.",
        since="0.17.5",
        gt=0.0,
        lt=1.0,
        was=(Was("0.19.6", type=Annotated[float, Limit("ge", 0.0), Limit("le", 1.0)]),),
    )
    select_strategy: Literal["auto", "step", "epoch"] = key(
        "auto",
        "When important gradients are chosen again: by steps, by epochs, or as DeepSpeed sees fit.",
        since="0.17.5",
    )
    auto_ratio: float = key(
        0.99,
        "Threshold of the auto update interval.",
        since="0.17.5",
        ge=0.0,
        le=1.0,
    )
    full_warm_up_rounds: int = key(
        0,
        "Rounds at the start in which all gradients are updated.",
        since="0.17.5",
    )
    offload: bool = key(
        False,
        "Offload the selective optimizer's states (needs overlap_comm).",
        since="0.17.5",
    )
    overlap_step: bool = key(
        False,
        "Run the CPU's part of the step beside forward and backward.",
        since="0.17.5",
    )
    pt_reserved_cores_perc: float = key(
        0.5,
        "Share of CPU cores left to PyTorch.",
        since="0.17.6",
        ge=0.0,
        le=1.0,
    )
    select_interval: Annotated[str | int, After(_number_or_auto)] = key(
        "auto",
        "auto, or a number of steps/epochs between selections.",
        since="0.17.5",
        expected='a whole number or "auto"',
    )
    steps_per_epoch: int | None = key(
        None,
        "Filled in by DeepSpeed while it runs; not for config files.",
        since="0.17.5",
    )
    update_interval: Annotated[str | int, After(_positive_or_auto)] = key(
        "auto",
        "auto, or steps between CPU updates; also overwrites gradient_accumulation_steps.",
        since="0.17.5",
        expected='a whole number of at least 1, or "auto"',
        was=(Was("0.19.6", type=Annotated[str | int, After(_number_or_auto)]),),
    )
