"""Values of different blocks that DeepSpeed reads and then fails over when it builds the engine.

Source: ``_do_optimizer_sanity_check``, ``_configure_zero_optimizer`` and
``_apply_autotp_partitioning`` in deepspeed/runtime/engine.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.schema import wording
from dsguard.schema.problem import Problem
from dsguard.schema.whole import Whole

_INITIALIZE = "deepspeed.initialize"
PARTITION_TYPES = ("row", "column", "skip")


def fails_together(config: Whole) -> Iterator[Problem]:
    """Combinations across blocks that stop ``deepspeed.initialize``."""
    yield from _two_master_weights(config)
    yield from _amp(config)
    yield from _tensor_parallel(config)


def _two_master_weights(config: Whole) -> Iterator[Problem]:
    fp16, bf16 = config.fp16, config.bf16
    if fp16 is None or bf16 is None:
        return
    if not (fp16.fp16_master_weights_and_grads and bf16.bf16_master_weights_and_grads):
        return
    zero = config.zero
    if zero is None or zero.stage == 0:
        return  # refused before
    at = config.place("fp16.fp16_master_weights_and_grads")
    yield wording.failing(
        at,
        True,
        config.place("bf16.bf16_master_weights_and_grads"),
        f"{at.dotted} and bf16.bf16_master_weights_and_grads are both true, but master weights "
        "can have one type only",
        _INITIALIZE,
    )


def _amp(config: Whole) -> Iterator[Problem]:
    """Apex AMP, which releases before 0.19.8 had, goes with neither ZeRO nor fp16 nor bf16."""
    if config.is_since("0.19.8") or not config.is_on("amp.enabled"):
        return
    at, zero = config.place("amp.enabled"), config.zero
    if zero is not None and zero.stage > 0:
        yield wording.failing(
            at,
            True,
            config.stage_at,
            f"amp is enabled with zero_optimization.stage {int(zero.stage)}, and AMP does not work "
            "with ZeRO",
            _INITIALIZE,
        )
        return
    for name in ("fp16", "bf16"):
        if config.is_on(f"{name}.enabled"):
            yield wording.failing(
                at,
                True,
                config.place(f"{name}.enabled"),
                f"amp and {name} are both enabled, but only one precision can be on",
                _INITIALIZE,
            )


def _tensor_parallel(config: Whole) -> Iterator[Problem]:
    block, size = config.tensor_parallel, config.tensor_parallel_size
    if block is None or size <= 1 or not config.is_since("0.18.6"):
        return
    if block.tensor_parallel.tp_size not in (1, size):
        name = "tp" if config.written("tensor_parallel.tp") is not None else "tensor_parallel"
        at = config.place(f"tensor_parallel.{name}.tp_size")
        yield wording.failing(
            at,
            config.written(at.dotted),
            config.place("tensor_parallel.autotp_size"),
            f"{at.dotted} is {block.tensor_parallel.tp_size} and tensor_parallel.autotp_size "
            f"{size}, but they must agree",
            _INITIALIZE,
        )
    specs = config.written("tensor_parallel.partition_config.layer_specs")
    for index, spec in enumerate(specs if isinstance(specs, list) else ()):
        kind = spec.get("partition_type") if isinstance(spec, dict) else None
        if isinstance(kind, str) and kind.lower() not in PARTITION_TYPES:
            at = config.place("tensor_parallel.partition_config.layer_specs").child(index)
            yield wording.failing(
                at.child("partition_type"),
                kind,
                None,
                f'{at.dotted}.partition_type is "{kind}" but must be row, column or skip',
                _INITIALIZE,
            )
