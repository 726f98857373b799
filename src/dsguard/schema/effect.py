"""Values that another value, or DeepSpeed itself, leaves without effect."""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.model.finding import Consequence
from dsguard.schema import wording
from dsguard.schema.block import keys_of
from dsguard.schema.problem import Problem
from dsguard.schema.shape import fields_of
from dsguard.schema.whole import Whole, offloads

_NO_BETAS = {"sgd", "rmsprop", "adagrad", "adadelta", "asgd", "rprop", "lbfgs", "musgd"}
"""Optimizers without the two decay rates that OneCycle cycles the first of."""

AUTOTP_PRESETS = ("llama", "bloom", "chatglm", "mixtral", "deepseek_v2", "qwen2", "phi3")
"""The names that DeepSpeed's ``AutoTPPresets`` knows, in any case; another one is no preset."""

_WARMS_UP = ("WarmupLR", "WarmupDecayLR", "WarmupCosineLR")


def without_effect(config: Whole) -> Iterator[Problem]:
    """Values that are written, accepted, and do nothing."""
    yield from _offload_without_device(config)
    yield from _zero(config)
    yield from _precision(config)
    yield from _optimizer(config)
    yield from _schedule(config)
    yield from _clipping(config)
    yield from _never_read(config)
    yield from _other_blocks(config)


def _offload_without_device(config: Whole) -> Iterator[Problem]:
    for name in ("offload_optimizer", "offload_param"):
        dotted = f"zero_optimization.{name}"
        block = config.written(dotted)
        if not isinstance(block, dict) or block.get("device") is not None:
            continue
        zero = config.zero
        known = fields_of(type(zero))[name].shape.block if zero is not None else None
        if known is None:
            return
        if any(key in keys_of(known) and block[key] is not None for key in block):
            yield wording.unused(
                config.place(dotted),
                block,
                None,
                f"{dotted} has no device, which is none then: nothing is offloaded",
            )


def _zero(config: Whole) -> Iterator[Problem]:
    zero = config.zero if isinstance(config.written("zero_optimization"), dict) else None
    if zero is None:
        return
    if (
        config.is_on_or_off("zero_optimization.contiguous_gradients") is False
        and zero.stage in (1, 2)
        and offloads(zero.offload_optimizer)
    ):
        at = config.place("zero_optimization.contiguous_gradients")
        yield wording.unused(
            at,
            False,
            config.other("zero_optimization.offload_optimizer"),
            f"{at.dotted} is false, but optimizer offload turns it on at stage {int(zero.stage)}",
        )
    if zero.stage == 3 and zero.allgather_sequential:
        for name in ("stage3_prefetch_bucket_size", "prefetch_bucket_size"):
            at = config.place(f"zero_optimization.{name}")
            size = config.written(at.dotted)
            if isinstance(size, int | float) and size != 1:
                yield wording.unused(
                    at,
                    size,
                    config.other("zero_optimization.stage3_allgather_sequential")
                    or config.other("zero_optimization.allgather_sequential"),
                    f"{at.dotted} has no effect: stage3_allgather_sequential makes it 1",
                )


def _precision(config: Whole) -> Iterator[Problem]:
    bf16 = "bf16" if "bf16" in config.given else "bfloat16"
    enabled = config.written(f"{bf16}.enabled")
    switch = f"{bf16}.bf16_master_weights_and_grads"
    if config.is_since("0.18.3") and config.is_on(switch) and enabled in (None, False):
        zero = config.zero
        if zero is None or zero.stage == 0:
            return  # refused
        yield wording.unused(
            config.place(switch),
            True,
            config.other(f"{bf16}.enabled"),
            f"{switch} is true, but {bf16} is not enabled: the model is not trained in bf16",
        )


def _optimizer(config: Whole) -> Iterator[Problem]:
    states = "optimizer.params.fp32_optimizer_states"
    if (
        config.is_since("0.18.3")
        and config.is_on(states)
        and config.is_on("bf16.bf16_optimizer_states")
    ):
        yield wording.unused(
            config.place(states),
            True,
            config.place("bf16.bf16_optimizer_states"),
            f"{states} is true, but bf16.bf16_optimizer_states overrides it: the states are bf16",
        )
    fusion = "optimizer.legacy_fusion"
    if config.is_on(fusion) and config.zero is not None and config.zero.stage > 0:
        yield wording.unused(
            config.place(fusion),
            True,
            config.stage_at,
            f"{fusion} has no effect with ZeRO: only 16-bit training at stage 0 uses it",
        )


def _schedule(config: Whole) -> Iterator[Problem]:
    kind = config.written("scheduler.type")
    warmup = config.place("scheduler.params.warmup_num_steps")
    if kind in _WARMS_UP and config.written(warmup.dotted) == 1:
        yield wording.unused(
            warmup,
            1,
            None,
            f"{warmup.dotted} is 1, but {kind} warms up over at least 2 steps",
            Consequence.NOTE,
        )
    optimizer = config.written("optimizer.type")
    if kind != "OneCycle" or not isinstance(optimizer, str) or optimizer.lower() not in _NO_BETAS:
        return
    for name in ("cycle_momentum", "cycle_min_mom", "cycle_max_mom"):
        at = config.place(f"scheduler.params.{name}")
        value = config.written(at.dotted)
        if value is not None and value is not False:
            yield wording.unused(
                at,
                value,
                config.place("optimizer.type"),
                f"{at.dotted} has no effect: {optimizer} has no betas, so its momentum is not "
                "cycled",
            )


def _clipping(config: Whole) -> Iterator[Problem]:
    limit = config.written("gradient_clipping")
    if isinstance(limit, int | float) and limit < 0:
        yield wording.unused(
            config.place("gradient_clipping"),
            limit,
            None,
            f"gradient_clipping {limit:g} clips nothing: only a limit above 0 does",
        )


def _never_read(config: Whole) -> Iterator[Problem]:
    """Keys of the schema that no release reads."""
    for dotted, off in (
        ("zero_optimization.allgather_partitions", False),
        ("disable_allgather", True),
    ):
        if config.is_on_or_off(dotted) is off:
            yield wording.unused(
                config.place(dotted), off, None, f"{dotted} has no effect: DeepSpeed never reads it"
            )
    for name, default in (("stages", "auto"), ("partition", "best"), ("seed_layers", False)):
        value = config.written(f"pipeline.{name}")
        if value is not None and value != default:
            yield wording.unused(
                config.place(f"pipeline.{name}"),
                value,
                None,
                f"pipeline.{name} has no effect: the argument of PipelineModule in the script "
                "decides",
            )


def _other_blocks(config: Whole) -> Iterator[Problem]:
    if config.is_on("flops_profiler.enabled") and (
        config.is_on_or_off("wall_clock_breakdown") is False
    ):
        yield wording.unused(
            config.place("wall_clock_breakdown"),
            False,
            config.place("flops_profiler.enabled"),
            "wall_clock_breakdown is false, but flops_profiler.enabled turns it on",
            Consequence.NOTE,
        )
    preset = config.written("tensor_parallel.preset_model")
    known = not isinstance(preset, str) or preset.lower() in (*AUTOTP_PRESETS, "auto")
    if not known and config.is_since("0.18.6"):
        yield wording.unused(
            config.place("tensor_parallel.preset_model"),
            preset,
            None,
            f'tensor_parallel.preset_model is "{preset}", which is none of '
            f"{', '.join(AUTOTP_PRESETS)}: no preset is used",
        )
    yield from _cuda_graph(config)


def _cuda_graph(config: Whole) -> Iterator[Problem]:
    graph = config.place("hybrid_engine.enable_cuda_graph")
    if not config.is_since("0.19.6") or not config.is_on(graph.dotted):
        return
    size = config.written("hybrid_engine.inference_tp_size")
    reasons = {
        "zero_optimization.stage": config.zero is not None and config.zero.stage == 3,
        "hybrid_engine.release_inference_cache": config.is_on(
            "hybrid_engine.release_inference_cache"
        ),
        "hybrid_engine.inference_tp_size": isinstance(size, int) and size > 1,
    }
    for dotted, clash in reasons.items():
        if clash:
            value = str(config.written(dotted)).lower()
            yield wording.unused(
                graph,
                True,
                config.place(dotted),
                f"{graph.dotted} is true, but {dotted} {value} turns CUDA graphs off",
            )
            return
