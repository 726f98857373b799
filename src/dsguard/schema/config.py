"""The whole config: its top-level keys and its blocks."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import ValidationError

from dsguard.model.finding import Consequence
from dsguard.schema import wording
from dsguard.schema.activation_checkpointing import ActivationCheckpointing
from dsguard.schema.aio import Aio
from dsguard.schema.autotuning import Autotuning
from dsguard.schema.block import Takes, UncheckedBlock, key
from dsguard.schema.checkpoint import Checkpoint
from dsguard.schema.comms_logger import CommsLogger
from dsguard.schema.compile import Compile
from dsguard.schema.data_efficiency import DataEfficiency
from dsguard.schema.expert_parallel import ExpertParallel
from dsguard.schema.flops_profiler import FlopsProfiler
from dsguard.schema.hybrid_engine import HybridEngine
from dsguard.schema.monitor import Comet, CsvMonitor, TensorBoard, WandB
from dsguard.schema.optimizer import Optimizer
from dsguard.schema.pipeline import Pipeline
from dsguard.schema.precision import Bf16, DataTypes, Fp16, TorchAutocast
from dsguard.schema.problem import Place, Problem
from dsguard.schema.scheduler import Scheduler
from dsguard.schema.tensor_parallel import TensorParallel
from dsguard.schema.timers import Timers
from dsguard.schema.weight_quantization import WeightQuantization
from dsguard.schema.zero import ZeroOptimization


def _is_positive_or_null(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and value > 0)


def _is_positive_and_finite(value: Any) -> bool:
    return isinstance(value, int | float) and 0 < value < float("inf")


def _is_communication_type(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.lower() in ("fp16", "bf16", "fp32"))


def _is_allreduce_op(value: Any) -> bool:
    return isinstance(value, str) and value.lower() in ("mean", "sum")


def _is_bucket_size(value: Any) -> bool:
    """Whether the ZeRO settings take a value as their all-gather bucket size."""
    try:
        ZeroOptimization.model_validate({"allgather_bucket_size": value})
    except ValidationError:
        return False
    return True


def _is_divisible(value: Any) -> bool:
    """Whether ``value % 8`` can be computed where it is asked for."""
    return not value or isinstance(value, int | float)


BATCH_NUMBER = Takes(_is_positive_or_null, "a number above 0")
SEQUENCE_PARALLEL = Takes(_is_positive_and_finite, "a number above 0")
COMMUNICATION_TYPE = Takes(_is_communication_type, 'one of "fp16", "bf16", "fp32"')
ALLREDUCE_OP = Takes(_is_allreduce_op, 'one of "mean", "sum"')
BUCKET_SIZE = Takes(_is_bucket_size, "a whole number of at least 0")
VOCABULARY = Takes(_is_divisible, "a whole number")
SWITCH = Takes(lambda value: isinstance(value, int), "true or false")
"""Switches that are or-ed with another one, which only booleans and whole numbers can be."""
DROPS_AUTO = Takes(lambda value: value == "auto", "an object")
"""Blocks that are read as fields of one model, which drops ``"auto"`` like any other value."""
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
    activation_checkpointing: ActivationCheckpointing = key(
        ActivationCheckpointing,
        "Settings for deepspeed.checkpointing; without effect unless the script calls its "
        "configure().",
    )
    aio: Aio | None = key(Aio, "Asynchronous I/O for NVMe offload.")
    allgather_size: Annotated[int, BUCKET_SIZE] = key(
        500_000_000,
        "Only read with the old form zero_optimization: true/false, as the all-gather bucket size.",
        deprecated="0.9.0",
        replaced_by="zero_optimization.allgather_bucket_size",
        wrong=Consequence.IGNORED,
    )
    autotuning: Autotuning = key(
        Autotuning, "The autotuner; only the launcher's --autotuning starts it."
    )
    bf16: Bf16 | None = key(Bf16, "Training in bfloat16.")
    bfloat16: Bf16 = key(
        Bf16,
        "Old name of bf16; ignored when bf16 is present.",
        deprecated="0.9.0",
        outdated=Consequence.NOTE,
        replaced_by="bf16",
    )
    checkpoint: Checkpoint = key(Checkpoint, "How checkpoints are written and loaded.")
    comet: Annotated[Comet, DROPS_AUTO] = key(
        Comet,
        "Metrics to Comet; needs the package comet_ml.",
        since="0.14.3",
    )
    comms_logger: CommsLogger = key(CommsLogger, "Communication logging.")
    communication_data_type: Annotated[str | None, COMMUNICATION_TYPE] = key(
        None,
        "Data type for gradient reduction: fp16, bf16 or fp32 (any case); unset follows the "
        "training precision.",
    )
    compile: Compile = key(
        Compile,
        "DeepCompile; without effect unless the script calls engine.compile().",
        since="0.13.2",
    )
    csv_monitor: Annotated[CsvMonitor, DROPS_AUTO] = key(CsvMonitor, "Metrics to CSV files.")
    data_efficiency: DataEfficiency = key(
        DataEfficiency,
        "The data efficiency library: curriculum sampling and random layer-token drop.",
    )
    data_parallel_size: int = key(
        None,
        "With sequence_parallel_size, makes the (dp, sp) device mesh in deepspeed.initialize.",
        since="0.15.0",
    )
    data_types: DataTypes = key(DataTypes, "Data types for gradients, parameters and buffers.")
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
    expert_parallel: Annotated[ExpertParallel | None, NOT_EMPTY_OBJECT] = key(
        ExpertParallel,
        "AutoEP: expert parallelism for Hugging Face MoE models.",
        since="0.19.2",
    )
    flops_profiler: FlopsProfiler = key(
        FlopsProfiler,
        "Counts floating-point operations of one training step.",
    )
    fp16: Fp16 = key(Fp16, "Training in float16 with loss scaling.")
    gradient_allreduce_op: Annotated[str, ALLREDUCE_OP] = key(
        "mean",
        "Whether gradients are averaged (mean) or added (sum) over the data-parallel ranks.",
        since="0.19.6",
    )
    gradient_clipping: float = key(
        1.0,
        "Limit on the global gradient norm; 0 turns clipping off. Unset means 1.0 from 0.19.3 on "
        "and 0 before.",
    )
    gradient_predivide_factor: float = key(
        1.0,
        "Gradients are divided by this before the all-reduce and by the rest of the world size "
        "after it.",
    )
    hybrid_engine: HybridEngine = key(
        HybridEngine,
        "One engine that trains and generates, for reinforcement learning.",
    )
    log_level: str | None = key(None, "Level of DeepSpeed's logger, in any case.", since="0.19.3")
    managed_gradient_accumulation: bool = key(
        True,
        "false hands the accumulation boundary to the caller: each step() applies an update.",
        since="0.19.4",
    )
    memory_breakdown: bool = key(False, "Log memory use at stages of the engine's start.")
    optimizer: Optimizer = key(
        Optimizer,
        "Optimizer to build when no client optimizer is passed to initialize().",
    )
    pipeline: Pipeline = key(Pipeline, "Pipeline engine options; any key is accepted.")
    prescale_gradients: bool = key(
        False,
        "Divide gradients before the all-reduce instead of after.",
    )
    scheduler: Scheduler = key(
        Scheduler,
        "LR scheduler to build when no client scheduler is passed and there is an optimizer.",
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
    )
    steps_per_print: int | None = key(
        None,
        "A progress line every this many optimizer steps; null prints none.",
    )
    tensor_parallel: TensorParallel = key(
        TensorParallel,
        "Training with automatic tensor parallelism (AutoTP).",
        since="0.16.4",
    )
    tensorboard: Annotated[TensorBoard, DROPS_AUTO] = key(
        TensorBoard,
        "Metrics to TensorBoard; needs the package tensorboard.",
    )
    timers: Annotated[Timers, TIMERS] = key(Timers, "Timers of the engine.", since="0.14.3")
    torch_autocast: TorchAutocast = key(
        TorchAutocast,
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
    wandb: Annotated[WandB, DROPS_AUTO] = key(
        WandB,
        "Metrics to Weights & Biases; needs the package wandb.",
    )
    weight_quantization: WeightQuantization = key(
        WeightQuantization,
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
    zero_optimization: ZeroOptimization | bool = key(
        ZeroOptimization,
        "ZeRO; true and false are an old form that means stage 1 and 0.",
    )

    @classmethod
    def unread(cls, given: dict[str, Any]) -> frozenset[str]:
        """Old keys whose successor is in force, and a size that is read beside another only."""
        unread = set()
        if given.get("bf16") is not None:
            unread.add("bfloat16")
        if given.get("zero_optimization") is not True:
            unread.add("allgather_size")
        if "sequence_parallel_size" not in given:
            unread.add("data_parallel_size")
        return frozenset(unread)

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """Old keys and forms at the top level."""
        if "bfloat16" in given and given.get("bf16") is not None:
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
            yield from _allgather_size(given["allgather_size"], zero, at.child("allgather_size"))


def _allgather_size(value: Any, zero: Any, at: Place) -> Iterator[Problem]:
    """The old form ``zero_optimization: true`` takes its bucket size from the top level."""
    replacement = "zero_optimization.allgather_bucket_size"
    if zero is True:
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
