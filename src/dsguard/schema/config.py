"""The whole config: its top-level keys and its blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, cast

import dsguard.schema
from dsguard.model.finding import Consequence
from dsguard.schema import wording
from dsguard.schema.block import CheckedBlock, Takes, UncheckedBlock, key
from dsguard.schema.history import Was
from dsguard.schema.problem import Place, Problem
from dsguard.schema.shape import fields_of

if TYPE_CHECKING:
    import dsguard.schema.activation_checkpointing
    import dsguard.schema.aio
    import dsguard.schema.autotuning
    import dsguard.schema.checkpoint
    import dsguard.schema.comms_logger
    import dsguard.schema.compile
    import dsguard.schema.compression
    import dsguard.schema.data_efficiency
    import dsguard.schema.elasticity
    import dsguard.schema.expert_parallel
    import dsguard.schema.flops_profiler
    import dsguard.schema.hybrid_engine
    import dsguard.schema.monitor
    import dsguard.schema.optimizer
    import dsguard.schema.pipeline
    import dsguard.schema.precision
    import dsguard.schema.retired
    import dsguard.schema.scheduler
    import dsguard.schema.sparse_attention
    import dsguard.schema.tensor_parallel
    import dsguard.schema.timers
    import dsguard.schema.weight_quantization
    import dsguard.schema.zero


def _is_positive_or_null(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and value > 0)


def _is_positive_and_finite(value: Any) -> bool:
    return isinstance(value, int | float) and 0 < value < float("inf")


def _is_communication_type(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.lower() in ("fp16", "bf16", "fp32"))


def _is_old_communication_type(value: Any) -> bool:
    """Up to 0.14.0 the name of bfloat16 was misspelt."""
    return value is None or (isinstance(value, str) and value.lower() in ("fp16", "bfp16", "fp32"))


def _counts_as_world(value: Any) -> bool:
    """What the world can be divided by, or what falls back to one rank in silence."""
    return not (isinstance(value, int | float) and (value < 0 or value == float("inf")))


def _is_allreduce_op(value: Any) -> bool:
    return isinstance(value, str) and value.lower() in ("mean", "sum")


def _is_divisible(value: Any) -> bool:
    """Whether ``value % 8`` can be computed where it is asked for."""
    return not value or isinstance(value, int | float)


BATCH_KEYS = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
BATCH_NUMBER = Takes(_is_positive_or_null, "a number above 0")
SEQUENCE_PARALLEL = Takes(_is_positive_and_finite, "a number above 0")
OLD_SEQUENCE_PARALLEL = Takes(_counts_as_world, "a number above 0")
COMMUNICATION_TYPE = Takes(_is_communication_type, 'one of "fp16", "bf16", "fp32"')
OLD_COMMUNICATION_TYPE = Takes(_is_old_communication_type, 'one of "fp16", "bfp16", "fp32"')
ALLREDUCE_OP = Takes(_is_allreduce_op, 'one of "mean", "sum"')
VOCABULARY = Takes(_is_divisible, "a whole number")
SWITCH = Takes(lambda value: isinstance(value, int), "true or false")
"""Switches that are or-ed with another one, which only booleans and whole numbers can be."""
DROPS_AUTO = Takes(lambda value: value == "auto", "an object")
"""Blocks that are read as fields of one model, which drops ``"auto"`` like any other value."""
DROPS_AUTO_OR_NOTHING = Takes(lambda value: value in ("auto", "", []), "an object")
"""... and which took nothing at all for an empty object."""
TIMERS = Takes(lambda v: isinstance(v, str | list) and "throughput" not in v, "an object")
"""Only the name throughput is looked for, and a string or list can be asked for that too."""
NOT_EMPTY_OBJECT = Takes(lambda value: not value, "an object")
"""A block whose reader stops at anything that counts as false."""


class Config(UncheckedBlock):
    """The config, as ``DeepSpeedConfig`` in deepspeed/runtime/config.py reads it."""

    train_batch_size: Annotated[int | None, BATCH_NUMBER] = key(
        None,
        "Samples that make one optimizer step, over all data-parallel ranks: micro batch size x "
        "accumulation steps x data-parallel size.",
    )
    train_micro_batch_size_per_gpu: Annotated[int | None, BATCH_NUMBER] = key(
        None,
        "Samples that one rank puts through one forward and backward pass.",
    )
    gradient_accumulation_steps: Annotated[int | None, BATCH_NUMBER] = key(
        None,
        "Micro batches whose gradients are summed before one optimizer step.",
    )
    activation_checkpointing: dsguard.schema.activation_checkpointing.ActivationCheckpointing = key(
        {},
        "Settings for deepspeed.checkpointing; without effect unless the script calls its "
        "configure().",
    )
    aio: dsguard.schema.aio.Aio | None = key({}, "Asynchronous I/O for NVMe offload.")
    allgather_size: int = key(
        500_000_000,
        "Only read with the old form zero_optimization: true/false, as the all-gather bucket size.",
        deprecated="0.9.0",
        replaced_by="zero_optimization.allgather_bucket_size",
        wrong=Consequence.IGNORED,
    )
    amp: dsguard.schema.retired.Amp = key(
        {},
        "Mixed precision by NVIDIA Apex.",
        removed="0.19.8",
        refused_when_gone=True,
        replaced_by="fp16 / bf16 / torch_autocast",
    )
    autotuning: dsguard.schema.autotuning.Autotuning = key(
        {}, "The autotuner; only the launcher's --autotuning starts it."
    )
    bf16: dsguard.schema.precision.Bf16 | None = key(
        {}, "Training in bfloat16.", was=(Was("0.17.1", type="dsguard.schema.precision.Bf16"),)
    )
    bfloat16: dsguard.schema.precision.Bf16 = key(
        {},
        "Old name of bf16; ignored when bf16 is present.",
        deprecated="0.9.0",
        outdated=Consequence.NOTE,
        replaced_by="bf16",
    )
    checkpoint: dsguard.schema.checkpoint.Checkpoint = key(
        {}, "How checkpoints are written and loaded."
    )
    comet: Annotated[dsguard.schema.monitor.Comet, DROPS_AUTO] = key(
        {},
        "Metrics to Comet; needs the package comet_ml.",
        since="0.14.3",
        was=(Was("0.15.0", type="Annotated[dsguard.schema.monitor.Comet, DROPS_AUTO_OR_NOTHING]"),),
    )
    comms_logger: dsguard.schema.comms_logger.CommsLogger = key({}, "Communication logging.")
    communication_data_type: Annotated[str | None, COMMUNICATION_TYPE] = key(
        None,
        "Data type for gradient reduction: fp16, bf16 or fp32 (any case); unset follows the "
        "training precision.",
        was=(Was("0.14.1", type=Annotated[str | None, OLD_COMMUNICATION_TYPE]),),
    )
    compile: dsguard.schema.compile.Compile = key(
        {},
        "DeepCompile; without effect unless the script calls engine.compile().",
        since="0.13.2",
        was=(Was("0.14.4"), Was("0.16.6", absent=True)),
    )
    compression_training: dsguard.schema.compression.CompressionTraining = key(
        {},
        "Quantization and pruning while training.",
        removed="0.19.7",
        refused_when_gone=True,
    )
    csv_monitor: Annotated[dsguard.schema.monitor.CsvMonitor, DROPS_AUTO] = key(
        {},
        "Metrics to CSV files.",
        was=(
            Was(
                "0.15.0", type="Annotated[dsguard.schema.monitor.CsvMonitor, DROPS_AUTO_OR_NOTHING]"
            ),
        ),
    )
    curriculum_learning: dsguard.schema.retired.LegacyCurriculum = key(
        {},
        "Curriculum learning on the sequence length.",
        removed="0.19.8",
        refused_when_gone=True,
        replaced_by="data_efficiency.data_sampling.curriculum_learning",
    )
    data_efficiency: dsguard.schema.data_efficiency.DataEfficiency = key(
        {},
        "The data efficiency library: curriculum sampling and random layer-token drop.",
    )
    data_parallel_size: int = key(
        None,
        "With sequence_parallel_size, makes the (dp, sp) device mesh in deepspeed.initialize.",
        since="0.15.0",
    )
    data_types: dsguard.schema.precision.DataTypes = key(
        {}, "Data types for gradients, parameters and buffers."
    )
    dataloader_drop_last: bool = key(
        False,
        "Drop the last short batch of the loader DeepSpeed builds from training_data.",
    )
    datastates_ckpt: Any = key(
        False,
        "Any value but false selects the DataStates checkpoint engine (external package); content"
        " is passed through.",
        since="0.18.1",
    )
    disable_allgather: bool = key(
        False, "Has no effect: no release since 0.9.0 uses it.", wrong=Consequence.IGNORED
    )
    disable_python_gc: bool = key(
        False,
        "Turn Python's cyclic garbage collector off while training.",
        since="0.19.8",
    )
    dump_state: bool = key(False, "Log all attributes of the engine once it is built.")
    eigenvalue: Any = key(
        None,
        "Read at another place, inside quantize_training.",
        was=(Was("0.19.8", absent=True),),
        removed="0.19.8",
        refused_when_gone=True,
    )
    elasticity: dsguard.schema.elasticity.Elasticity = key(
        {},
        "Batch sizes that fit many numbers of GPUs.",
        removed="0.19.8",
        refused_when_gone=True,
        replaced_by="train_batch_size / train_micro_batch_size_per_gpu / "
        "gradient_accumulation_steps",
    )
    expert_parallel: Annotated[
        dsguard.schema.expert_parallel.ExpertParallel | None, NOT_EMPTY_OBJECT
    ] = key(
        {},
        "AutoEP: expert parallelism for Hugging Face MoE models.",
        since="0.19.2",
    )
    flops_profiler: dsguard.schema.flops_profiler.FlopsProfiler = key(
        {},
        "Counts floating-point operations of one training step.",
    )
    fp16: dsguard.schema.precision.Fp16 = key({}, "Training in float16 with loss scaling.")
    gradient_allreduce_op: Annotated[str, ALLREDUCE_OP] = key(
        "mean",
        "Whether gradients are averaged (mean) or added (sum) over the data-parallel ranks.",
        since="0.19.6",
    )
    gradient_clipping: float = key(
        1.0,
        "Limit on the global gradient norm; 0 turns clipping off. Unset means 1.0 from 0.19.3 on "
        "and 0 before.",
        was=(Was("0.19.3", default=0.0),),
    )
    gradient_predivide_factor: float = key(
        1.0,
        "Gradients are divided by this before the all-reduce and by the rest of the world size "
        "after it.",
    )
    graph_harvesting: bool = key(
        False,
        "Capture CUDA graphs of parts of the optimizer step.",
        since="0.12.6",
        removed="0.19.8",
        refused_when_gone=True,
    )
    hybrid_engine: dsguard.schema.hybrid_engine.HybridEngine = key(
        {},
        "One engine that trains and generates, for reinforcement learning.",
    )
    log_level: str | None = key(None, "Level of DeepSpeed's logger, in any case.", since="0.19.3")
    managed_gradient_accumulation: bool = key(
        True,
        "false hands the accumulation boundary to the caller: each step() applies an update.",
        since="0.19.4",
    )
    memory_breakdown: bool = key(False, "Log memory use at stages of the engine's start.")
    nebula: dsguard.schema.retired.Nebula = key(
        {},
        "The Nebula checkpoint service.",
        removed="0.19.7",
        refused_when_gone=True,
    )
    optimizer: dsguard.schema.optimizer.Optimizer = key(
        {},
        "Optimizer to build when no client optimizer is passed to initialize().",
    )
    pipeline: dsguard.schema.pipeline.Pipeline = key(
        {}, "Pipeline engine options; any key is accepted."
    )
    prescale_gradients: bool = key(
        False,
        "Divide gradients before the all-reduce instead of after.",
    )
    progressive_layer_drop: dsguard.schema.retired.ProgressiveLayerDrop = key(
        {},
        "Dropping of layers, more of them as training goes on.",
        removed="0.19.8",
        refused_when_gone=True,
    )
    quantize_training: Annotated[
        dsguard.schema.retired.QuantizeTraining, dsguard.schema.retired.ANYTHING
    ] = key(
        {},
        "Mixture of quantization.",
        removed="0.19.7",
        refused_when_gone=True,
    )
    scheduler: dsguard.schema.scheduler.Scheduler = key(
        {},
        "LR scheduler to build when no client scheduler is passed and there is an optimizer.",
    )
    seq_parallel_comm_data_type: Annotated[str | None, COMMUNICATION_TYPE] = key(
        "fp32",
        "Old name of seq_parallel_communication_data_type.",
        since="0.11.2",
        removed="0.16.5",
        replaced_by="seq_parallel_communication_data_type",
        was=(Was("0.14.1", type=Annotated[str | None, OLD_COMMUNICATION_TYPE]),),
    )
    seq_parallel_communication_data_type: Annotated[str | None, COMMUNICATION_TYPE] = key(
        "fp32",
        "Gradient reduction data type used when sequence parallelism is on; default fp32.",
        since="0.16.5",
    )
    sequence_parallel_size: Annotated[int, SEQUENCE_PARALLEL] = key(
        1,
        "Ulysses sequence-parallel degree; the batch world size is divided by it.",
        since="0.15.0",
        was=(
            Was("0.17.0", type=int),
            Was(
                "0.19.3",
                type=Annotated[int, OLD_SEQUENCE_PARALLEL],
                wrong=Consequence.DIFFERS,
            ),
        ),
    )
    sparse_attention: dsguard.schema.sparse_attention.SparseAttention = key(
        {},
        "The layout of block-sparse attention.",
        removed="0.19.7",
        refused_when_gone=True,
    )
    sparse_gradients: bool = key(
        False,
        "Reduce gradients of nn.Embedding as sparse tensors.",
        removed="0.19.8",
        refused_when_gone=True,
        replaced_by="nn.Embedding(sparse=True), without a key",
    )
    steps_per_print: int | None = key(
        None,
        "A progress line every this many optimizer steps; null prints none.",
        was=(Was("0.15.2", default=10),),
    )
    tensor_parallel: dsguard.schema.tensor_parallel.TensorParallel = key(
        {},
        "Training with automatic tensor parallelism (AutoTP).",
        since="0.16.4",
    )
    tensorboard: Annotated[dsguard.schema.monitor.TensorBoard, DROPS_AUTO] = key(
        {},
        "Metrics to TensorBoard; needs the package tensorboard.",
        was=(
            Was(
                "0.15.0",
                type="Annotated[dsguard.schema.monitor.TensorBoard, DROPS_AUTO_OR_NOTHING]",
            ),
        ),
    )
    timers: Annotated[dsguard.schema.timers.Timers, TIMERS] = key(
        {}, "Timers of the engine.", since="0.14.3"
    )
    torch_autocast: dsguard.schema.precision.TorchAutocast = key(
        {},
        "Mixed precision by torch.autocast around the forward pass.",
        since="0.17.2",
    )
    use_data_before_expert_parallelism: bool = key(
        False,
        "Order of data and expert parallel dimensions when expert groups are made.",
        since="0.12.4",
    )
    vocabulary_size: Annotated[int | None, VOCABULARY] = key(
        None,
        "Only used for a warning when it is not a multiple of 8.",
    )
    wall_clock_breakdown: Annotated[bool, SWITCH] = key(
        False,
        "Time forward, backward and step; also on when flops_profiler.enabled is.",
    )
    wandb: Annotated[dsguard.schema.monitor.WandB, DROPS_AUTO] = key(
        {},
        "Metrics to Weights & Biases; needs the package wandb.",
        was=(Was("0.15.0", type="Annotated[dsguard.schema.monitor.WandB, DROPS_AUTO_OR_NOTHING]"),),
    )
    weight_quantization: dsguard.schema.weight_quantization.WeightQuantization = key(
        {},
        "Quantization of weights while a model is built under zero.Init.",
        since="0.10.3",
    )
    zero_allow_untested_optimizer: bool = key(
        False,
        "Allow an optimizer that ZeRO does not list as tested.",
    )
    zero_force_ds_cpu_optimizer: bool = key(
        True,
        "Refuse a client optimizer other than DeepSpeed's CPU ones with optimizer offload.",
    )
    zero_optimization: dsguard.schema.zero.ZeroOptimization | bool = key(
        {},
        "ZeRO; true and false are an old form that means stage 1 and 0.",
    )

    @classmethod
    def unread(cls, given: dict[str, Any]) -> frozenset[str]:
        """Old keys whose successor is in force, and a size that is read beside another only."""
        unread = {"allgather_size"}  # judged together with zero_optimization
        if given.get("bf16") is not None or ("bf16" in given and not cls.is_since("0.17.1")):
            unread.add("bfloat16")
        if "sequence_parallel_size" not in given:
            unread.add("data_parallel_size")
        if "data_parallel_size" not in given and not cls.is_since("0.17.0"):
            unread.add("sequence_parallel_size")
        return frozenset(unread)

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """Old keys and forms at the top level."""
        if "bfloat16" in cls.unread(given) & given.keys():
            yield wording.conflict(
                at.child("bfloat16"),
                given["bfloat16"],
                at.child("bf16"),
                Consequence.IGNORED,
                "DeepSpeed reads bf16 and ignores bfloat16",
                "bf16",
            )
        zero = given.get("zero_optimization")
        if isinstance(zero, bool):
            yield wording.deprecated_key(
                at.child("zero_optimization"),
                zero,
                Consequence.NOTE,
                f'{{"stage": {int(zero)}}}',
                f"{str(zero).lower()} in place of an object means stage {int(zero)}",
            )
        if "allgather_size" in given:
            yield from _allgather_size(
                given["allgather_size"],
                zero_of(cls) if zero is True else None,
                at.child("allgather_size"),
            )
        if "gradient_clipping" in given and given["gradient_clipping"] is None:
            clipping = at.child("gradient_clipping")
            yield wording.wrong_value(clipping, None, "a number", Consequence.LATE)
        if not cls.is_since("0.19.8"):
            yield from _elastic_batch(given, at)


def zero_of(config: type[Config]) -> type[dsguard.schema.zero.ZeroOptimization]:
    """The block of ZeRO in the release that a class describes."""
    block = fields_of(config)["zero_optimization"].shape.block
    return cast("type[dsguard.schema.zero.ZeroOptimization]", block)


def _allgather_size(value: Any, reader: type[CheckedBlock] | None, at: Place) -> Iterator[Problem]:
    """The old form ``zero_optimization: true`` takes its bucket size from the top level.

    ``reader`` is the block that reads it then, None where nobody does.
    """
    replacement = "zero_optimization.allgather_bucket_size"
    if reader is not None:
        from dsguard.schema.checked import RefusedError, read  # imports pydantic-core

        try:
            read(reader, {"allgather_bucket_size": value})
        except RefusedError:
            if value != "auto":
                yield wording.wrong_value(at, value, "a whole number of at least 0")
                return
        yield wording.deprecated_key(
            at, value, Consequence.NOTE, replacement, f"DeepSpeed reads it as {replacement}"
        )
    else:
        yield wording.deprecated_key(
            at,
            value,
            Consequence.IGNORED,
            replacement,
            "DeepSpeed ignores it unless zero_optimization is true",
        )


def _elastic_batch(given: dict[str, Any], at: Place) -> Iterator[Problem]:
    """Elasticity takes the batch keys over, or refuses to find any."""
    elastic = given.get("elasticity")
    if not isinstance(elastic, dict) or not elastic.get("enabled"):
        return
    batch = [name for name in BATCH_KEYS if name in given]
    if batch and not elastic.get("ignore_non_elastic_batch_info"):
        enabled = at.child("elasticity").child("enabled")
        yield wording.combination(
            enabled,
            elastic["enabled"],
            at.child(batch[0]),
            f"{enabled.dotted} is true, but {batch[0]} is given as well and "
            "elasticity.ignore_non_elastic_batch_info is not true",
        )
