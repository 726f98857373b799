"""AutoEP beside other parallelism, ZeRO and DeepCompile.

Source: ``validate_folding_global`` in deepspeed/module_inject/auto_ep_folding.py and
``_validate_zero3_moe_compatibility`` in deepspeed/runtime/engine.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.schema import wording
from dsguard.schema.problem import Place, Problem
from dsguard.schema.whole import Whole

_INITIALIZE = "deepspeed.initialize"


def folds_experts(config: Whole) -> Iterator[Problem]:
    """What does not go together with expert parallelism."""
    if not config.is_since("0.19.2") or config.written("expert_parallel.enabled") is not True:
        return
    if config.is_since("0.19.3"):
        if config.tensor_parallel_size > 1:
            yield from _beside_tensor_parallel(config)
        yield from _two_presets(config)
    yield from _at_stage_3(config)


def _beside_tensor_parallel(config: Whole) -> Iterator[Problem]:
    """Both at once is done by folding the ranks, which knows few of the other features."""
    size = config.tensor_parallel_size
    autotp, enabled = config.place("tensor_parallel.autotp_size"), config.place("expert_parallel")
    clashes: list[tuple[bool, Place, str]] = [
        (config.is_on("compile.deepcompile"), config.place("compile.deepcompile"), "is true"),
        (
            config.is_on("use_data_before_expert_parallelism"),
            config.place("use_data_before_expert_parallelism"),
            "is true",
        ),
        (
            _sequence_parallel(config),
            config.place("sequence_parallel_size"),
            "is above 1",
        ),
        (
            config.written("expert_parallel.autoep_size") in (None, 1),
            config.other("expert_parallel.autoep_size") or enabled,
            "has autoep_size 1",
        ),
        (
            config.is_since("0.19.8") and config.is_on("expert_parallel.async_split_plan"),
            config.place("expert_parallel.async_split_plan"),
            "is true",
        ),
        (
            config.is_since("0.19.7")
            and config.written("expert_parallel.combine_impl") == "fused_weighted_sum",
            config.place("expert_parallel.combine_impl"),
            'is "fused_weighted_sum"',
        ),
    ]
    zero = config.zero
    for name in ("offload_optimizer", "offload_param"):
        # The presence of the block is asked for, whatever its device is.
        there = zero is not None and getattr(zero, name) is not None
        clashes.append((there, config.place(f"zero_optimization.{name}"), "is given"))
    for clash, at, what in clashes:
        if clash:
            yield wording.failing(
                at,
                config.written(at.dotted),
                autotp,
                f"{at.dotted} {what}, which does not go together with expert_parallel and "
                f"tensor_parallel.autotp_size {size}",
                _INITIALIZE,
            )


def _sequence_parallel(config: Whole) -> bool:
    """Both sizes make the groups; one alone makes none."""
    sizes = [config.written(f"{kind}_parallel_size") for kind in ("sequence", "data")]
    return all(isinstance(size, int) for size in sizes) and sizes[0] > 1


def _two_presets(config: Whole) -> Iterator[Problem]:
    ours = config.written("expert_parallel.preset_model")
    theirs = config.written("tensor_parallel.preset_model")
    if ours is None or theirs in (None, "auto", ours):
        return
    at = config.place("expert_parallel.preset_model")
    yield wording.failing(
        at,
        ours,
        config.place("tensor_parallel.preset_model"),
        f'{at.dotted} is "{ours}" and tensor_parallel.preset_model "{theirs}", but they must agree',
        _INITIALIZE,
    )


def _at_stage_3(config: Whole) -> Iterator[Problem]:
    zero = config.zero
    if zero is None or zero.stage != 3:
        return
    clashes = {
        "zero_optimization.zero_quantized_gradients": zero.zero_quantized_gradients,
        "zero_optimization.zero_hpz_partition_size": zero.zero_hpz_partition_size > 1,
        "sequence_parallel_size": _sequence_parallel(config),
    }
    for dotted, clash in clashes.items():
        if clash:
            yield wording.failing(
                config.place(dotted),
                config.written(dotted),
                config.place("expert_parallel.enabled"),
                f"{dotted} does not go together with expert_parallel at ZeRO stage 3",
                _INITIALIZE,
            )
