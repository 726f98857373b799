"""Values of different blocks that DeepSpeed refuses together.

Source: ``_initialize_params`` and ``_do_error_check`` in deepspeed/runtime/config.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from dsguard.schema import wording
from dsguard.schema.problem import ROOT, Place, Problem
from dsguard.schema.whole import Whole

if TYPE_CHECKING:
    from dsguard.schema.compile import Compile
    from dsguard.schema.precision import Bf16, Fp16
    from dsguard.schema.zero import ZeroOptimization

_STAGE = ROOT.child("zero_optimization").child("stage")


def refused_together(config: Whole) -> Iterator[Problem]:
    """Combinations across blocks that stop DeepSpeed when it reads the config."""
    given, blocks, fp16 = config.given, config.blocks, config.fp16
    fp16_at = ROOT.child("fp16")
    bf16 = config.bf16 or cast("Bf16 | None", blocks.get("bfloat16"))
    bf16_at = ROOT.child("bf16" if "bf16" in blocks else "bfloat16")
    if fp16 is not None and bf16 is not None and fp16.enabled and bf16.enabled:
        yield wording.combination(
            bf16_at.child("enabled"),
            given[bf16_at.dotted]["enabled"],
            fp16_at.child("enabled"),
            f"{bf16_at.dotted}.enabled and fp16.enabled are both true, but only one precision can "
            "be on",
        )
    if bf16 is not None and bf16.bf16_optimizer_states and not bf16.bf16_master_weights_and_grads:
        yield wording.combination(
            bf16_at.child("bf16_optimizer_states"),
            given[bf16_at.dotted]["bf16_optimizer_states"],
            None,
            f"{bf16_at.dotted}.bf16_optimizer_states is true but needs "
            f"{bf16_at.dotted}.bf16_master_weights_and_grads, which is false",
        )
    yield from _eigenvalues(config)
    if fp16 is not None and fp16.fp16_master_weights_and_grads:
        yield from _fp16_master_weights(config, fp16, fp16_at)
    if bf16 is not None:
        for name in ("bf16_master_weights_and_grads", "bf16_optimizer_states"):
            if getattr(bf16, name) and config.zero is not None and config.zero.stage == 0:
                yield _needs_zero(given, bf16_at.child(name), config.zero, (1, 2, 3))
    op = given.get("gradient_allreduce_op")
    if config.is_since("0.19.6") and str(op).lower() == "sum" and config.zero is not None:
        yield from _no_sum(op, config.zero, config.compile)


def _fp16_master_weights(config: Whole, fp16: Fp16, at: Place) -> Iterator[Problem]:
    zero, in_force = config.zero, fp16.enabled or fp16.is_checked()
    stages = (1, 2, 3) if fp16.is_since("0.18.3") else (2,)
    if zero is not None and in_force and zero.stage not in stages:
        yield _needs_zero(config.given, at.child("fp16_master_weights_and_grads"), zero, stages)


def _eigenvalues(config: Whole) -> Iterator[Problem]:
    """From 0.19.3 on, quantize_training is read beside shared compression settings again."""
    if not config.is_since("0.19.3") or config.is_since("0.19.7"):
        return
    switch = "quantize_training.eigenvalue.enabled"
    shared = "compression_training.shared_parameters.enabled"
    if config.written(switch) and config.written(shared):
        yield wording.combination(
            config.place(switch),
            config.written(switch),
            config.place(shared),
            f"{switch} is true beside {shared}, and eigenvalues are switched off in DeepSpeed",
        )


def _needs_zero(
    given: dict[str, Any], at: Place, zero: ZeroOptimization, stages: tuple[int, ...]
) -> Problem:
    needed = "stage 2" if stages == (2,) else "stage 1, 2 or 3"
    block, name = at.dotted.split(".")
    return wording.combination(
        at,
        given[block][name],
        _STAGE if isinstance(given.get("zero_optimization"), dict) else None,
        f"{at.dotted} is true with zero_optimization.stage {int(zero.stage)}, but needs {needed}",
    )


def _no_sum(op: Any, zero: ZeroOptimization, compiles: Compile | None) -> Iterator[Problem]:
    at, zero_at = ROOT.child("gradient_allreduce_op"), ROOT.child("zero_optimization")
    if zero.stage == 3:
        yield wording.combination(
            at, op, _STAGE, 'gradient_allreduce_op "sum" does not work with ZeRO stage 3'
        )
    if zero.zenflow is not None:
        yield wording.combination(
            at,
            op,
            zero_at.child("zenflow"),
            'gradient_allreduce_op "sum" does not work with zero_optimization.zenflow',
        )
    if compiles is not None and compiles.deepcompile:
        yield wording.combination(
            at,
            op,
            ROOT.child("compile").child("deepcompile"),
            'gradient_allreduce_op "sum" does not work with compile.deepcompile',
        )
