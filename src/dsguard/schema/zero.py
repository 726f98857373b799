"""zero_optimization: ZeRO and its offload blocks."""

import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

from dsguard.model.finding import Consequence
from dsguard.schema import wording
from dsguard.schema.block import CheckedBlock, Limit, key, keys_of
from dsguard.schema.history import Was
from dsguard.schema.problem import Place, Problem
from dsguard.schema.zenflow import ZenFlow


class ZeroStage(int, Enum):
    """What ZeRO partitions over the data-parallel ranks."""

    DISABLED = 0
    OPTIMIZER_STATES = 1
    GRADIENTS = 2
    PARAMETERS = 3


class OffloadDevice(str, Enum):
    """Where offloaded numbers are kept."""

    NONE = "none"
    CPU = "cpu"
    NVME = "nvme"


class OffloadParam(CheckedBlock):
    """Where parameters are kept while they are not used.

    Source: deepspeed/runtime/zero/offload_config.py.
    """

    device: OffloadDevice = key(OffloadDevice.NONE, "none, cpu or nvme.")
    nvme_path: Path | None = key(None, "Folder on the NVMe drive; device nvme needs it.")
    buffer_count: int = key(5, "Buffers for NVMe parameter swapping.", ge=0)
    buffer_size: int = key(
        100_000_000,
        "Elements of one NVMe swap buffer; the largest partitioned parameter must fit.",
        ge=0,
    )
    max_in_cpu: int = key(
        1_000_000_000,
        "Parameter elements kept in CPU memory with NVMe offload.",
        ge=0,
    )
    pin_memory: bool = key(
        True,
        "Page-locked CPU memory for offloaded parameters.",
        was=(Was("0.19.5", default=False),),
    )


class OffloadOptimizer(CheckedBlock):
    """Where optimizer states are kept and the step is done.

    Source: deepspeed/runtime/zero/offload_config.py.
    """

    device: OffloadDevice = key(
        OffloadDevice.NONE,
        "none, cpu or nvme (stage 1/2 treat nvme as cpu).",
    )
    nvme_path: Path | None = key(
        None,
        "Folder on the NVMe drive; stage 3 with device nvme needs it.",
    )
    buffer_count: int = key(4, "Buffers for NVMe optimizer-state swapping.", ge=0)
    cpuadam_cores_perc: float = key(
        0.8,
        "Share of the CPU cores for SuperOffload's CPU Adam, from 0 to 1.",
        since="0.18.0",
        ge=0.0,
        le=1.0,
    )
    fast_init: bool = key(False, "Quick NVMe start of optimizer states.")
    pin_memory: bool = key(
        True,
        "Page-locked CPU memory for offloaded states.",
        was=(Was("0.19.5", default=False),),
    )
    pipeline_read: bool = key(False, "Overlap reading the next tile with the step.")
    pipeline_write: bool = key(False, "Overlap writing the previous tile with the step.")
    ratio: float = key(
        1.0,
        "Share of the optimizer step done on the CPU, from 0 to 1; below 1 only with stage 3 and "
        "DeepSpeedCPUAdam.",
        since="0.12.3",
        ge=0.0,
        le=1.0,
    )
    super_offload: bool = key(False, "CPU offload for superchips (stage 3, CUDA).", since="0.18.0")


class LeafModule(CheckedBlock):
    """Modules that are gathered as one piece.

    Source: deepspeed/runtime/zero/leaf_module_config.py.
    """

    classes: list[str] = key(
        [
            "transformers.models.mixtral.modeling_mixtral.MixtralSparseMoeBlock",
            "transformers.models.qwen2_moe.modeling_qwen2_moe.Qwen2MoeSparseMoeBlock",
            "transformers.models.qwen3_moe.modeling_qwen3_moe.Qwen3MoeSparseMoeBlock",
        ],
        "Class names of leaf modules, with their path.",
        since="0.18.0",
    )
    name_suffixes: list[str] = key([], "Name endings of leaf modules.", since="0.18.0")
    names: list[str] = key([], "Module names of leaf modules.", since="0.18.0")

    @classmethod
    def arguments(cls, given: Any) -> Any:
        """One name may stand for a list of one, and null for an empty block."""
        if given is None:
            return {}
        if not isinstance(given, dict):
            return given
        names = {name: [value] for name, value in given.items() if isinstance(value, str)}
        return super().arguments(given | {n: v for n, v in names.items() if n in keys_of(cls)})

    def combinations(self, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """``"auto"`` becomes a list of one name before it could be dropped."""
        for name in keys_of(type(self)):
            if given.get(name) == "auto":
                yield wording.unfilled_auto(
                    at.child(name), Consequence.DIFFERS, expected="a list of strings"
                )


class ZeroOptimization(CheckedBlock):
    """What is partitioned over the data-parallel ranks, and how.

    Source: DeepSpeedZeroConfig in deepspeed/runtime/zero/config.py.
    """

    stage: ZeroStage = key(
        ZeroStage.DISABLED,
        "What is partitioned: 0 nothing, 1 optimizer states, 2 also gradients, 3 also parameters.",
    )
    contiguous_gradients: bool = key(
        True,
        "Copy gradients into one buffer; forced on by CPU offload.",
    )
    reduce_scatter: bool = key(True, "Reduce-scatter instead of all-reduce for gradients.")
    reduce_bucket_size: int = key(
        500_000_000,
        "Elements (not bytes) reduced at a time; bounds the memory of reduction.",
        gt=0,
        was=(Was("0.19.6", type=Annotated[int, Limit("ge", 0)]),),
    )
    allgather_bucket_size: int = key(
        500_000_000,
        "Elements all-gathered at a time (stage 1 and 2, where it must be even).",
        ge=0,
    )
    overlap_comm: bool | None = key(
        None,
        "Reduce gradients while the backward pass goes on; unset is true at stage 3 and false "
        "below.",
    )
    offload_param: OffloadParam | None = key(
        None,
        "Parameter offload settings; only stage 3 uses them.",
    )
    offload_optimizer: OffloadOptimizer | None = key(
        None,
        "Optimizer-state offload settings (stage 1-3).",
    )
    sub_group_size: int = key(
        1_000_000_000,
        "Elements one tile of the optimizer step holds (stage 3).",
        ge=0,
    )
    allgather_partitions: bool = key(
        True,
        "All-gather or broadcasts after a step; no release since 0.9.0 reads it.",
    )
    compute_grad_norm: bool = key(
        True,
        "false skips the global gradient norm (stage 1/2 only, needs gradient_clipping 0).",
        since="0.19.7",
    )
    cpu_offload: bool | None = key(
        None,
        "Deprecated: true becomes offload_optimizer {device: cpu}.",
        deprecated="0.9.0",
        outdated=Consequence.NOTE,
        replaced_by="zero_optimization.offload_optimizer",
    )
    cpu_offload_param: bool | None = key(
        None,
        "Deprecated: true becomes offload_param {device: cpu}.",
        deprecated="0.9.0",
        outdated=Consequence.NOTE,
        replaced_by="zero_optimization.offload_param",
    )
    cpu_offload_use_pin_memory: bool | None = key(
        None,
        "Deprecated and without effect: only a warning is logged.",
        deprecated="0.9.0",
        outdated=Consequence.IGNORED,
        replaced_by="zero_optimization.offload_param.pin_memory / "
        "zero_optimization.offload_optimizer.pin_memory",
    )
    elastic_checkpoint: bool = key(
        False,
        "Old elastic checkpoint format; not supported with stage 3.",
        deprecated="0.19.3",
        replaced_by="checkpoint.load_universal",
    )
    enable_sanity_checks: bool = key(False, "Extra internal checks in stage 3.", since="0.17.6")
    ignore_unused_parameters: bool = key(
        True,
        "Do not fail on parameters without gradients (stage 2).",
    )
    leaf_module: LeafModule = key({}, "Modules that ZeRO-3 gathers as one piece.", since="0.18.0")
    legacy_stage1: bool = key(
        False,
        "Old stage-1 code; any true value fails when the engine starts.",
        deprecated="0.9.0",
    )
    load_from_fp32_weights: bool = key(
        True,
        "Take master weights from the fp32 copies in a checkpoint.",
    )
    log_trace_cache_warnings: bool = key(
        False,
        "Log invalidations of the stage-3 trace cache.",
        since="0.16.4",
    )
    memory_efficient_linear: bool = key(
        True,
        "Replace torch linear under zero.Init by a lower-memory one.",
    )
    override_module_apply: bool = key(
        True,
        "Patch nn.Module.apply under zero.Init.",
        since="0.10.1",
    )
    parameter_alignment: bool = key(
        False,
        "Pad each parameter to 16 bytes in the flat buffer (stage 1/2).",
        since="0.19.7",
    )
    pipeline_loading_checkpoint: bool = key(
        False,
        "Load stage-3 checkpoints rank after rank.",
        since="0.10.1",
    )
    round_robin_gradients: bool = key(
        False,
        "Spread gradient partitions round-robin over ranks (stage 1/2 with CPU offload).",
    )
    save_muon_momentum_buffer_in_memory: bool = key(
        False,
        "Keep Muon momentum in memory with NVMe offload (stage 3).",
        since="0.18.9",
    )
    allgather_sequential: bool = key(
        False,
        "Gather parameters one by one; forces the prefetch bucket to 1 (stage 3).",
        since="0.18.5",
        alias="stage3_allgather_sequential",
    )
    gather_16bit_weights_on_model_save: bool = key(
        False,
        "Gather whole 16-bit weights in save_16bit_model() (stage 3).",
        alias="stage3_gather_16bit_weights_on_model_save",
    )
    stage3_gather_fp16_weights_on_model_save: bool = key(
        False,
        "Deprecated name of stage3_gather_16bit_weights_on_model_save.",
        deprecated="0.9.0",
        outdated=Consequence.NOTE,
        replaced_by="zero_optimization.stage3_gather_16bit_weights_on_model_save",
    )
    max_live_parameters: int = key(
        1_000_000_000,
        "Most parameter elements a rank keeps gathered before it releases some (stage 3).",
        alias="stage3_max_live_parameters",
        ge=0,
    )
    max_reuse_distance: int = key(
        1_000_000_000,
        "A parameter used again within this many elements is not released (stage 3).",
        alias="stage3_max_reuse_distance",
        ge=0,
    )
    mics_hierarchical_params_gather: bool = key(
        False,
        "Gather parameters in two steps, between and inside nodes (MiCS).",
        since="0.9.2",
        removed="0.19.7",
        refused_when_gone=True,
    )
    mics_shard_size: int = key(
        -1,
        "Ranks that share one copy of the partitioned states (MiCS, stage 3); -1 turns it off.",
        since="0.9.2",
        removed="0.19.7",
        refused_when_gone=True,
    )
    model_persistence_threshold: int = key(
        sys.maxsize,
        "Most elements that stage3_param_persistence_threshold may keep whole in total (stage 3).",
        alias="stage3_model_persistence_threshold",
        ge=0,
    )
    module_granularity_threshold: int = key(
        0,
        "Modules finer than this are fetched as a unit (stage 3).",
        since="0.16.0",
        alias="stage3_module_granularity_threshold",
    )
    param_persistence_threshold: int = key(
        100_000,
        "Parameters smaller than this stay whole on every rank (stage 3).",
        alias="stage3_param_persistence_threshold",
        ge=0,
    )
    prefetch_bucket_size: int = key(
        50_000_000,
        "Parameter elements fetched ahead of use (stage 3).",
        alias="stage3_prefetch_bucket_size",
        ge=0,
    )
    use_all_reduce_for_fetch_params: bool = key(
        False,
        "Fetch parameters with all-reduce (stage 3).",
        since="0.14.3",
        alias="stage3_use_all_reduce_for_fetch_params",
    )
    use_multi_rank_bucket_allreduce: bool = key(
        True,
        "One all-reduce for the buckets of several ranks (stage 1/2).",
        since="0.12.4",
    )
    zenflow: ZenFlow | None = key(
        None,
        "ZenFlow: important gradients on the GPU, the rest on the CPU; needs optimizer offload.",
        since="0.17.5",
    )
    zeropp_loco_param: dict[str, Any] | None = key(
        None,
        "LoCo: err_beta and reset_T of the error feedback for quantized gradients (ZeRO++).",
        since="0.16.2",
        removed="0.19.8",
        refused_when_gone=True,
        replaced_by="zero_optimization.zero_quantized_gradients",
    )
    zero_hpz_partition_size: int = key(
        1,
        "Ranks in the secondary ZeRO++ partition (stage 3).",
        since="0.10.0",
        ge=0,
    )
    zero_quantized_gradients: bool = key(
        False,
        "Quantized gradient all-to-all reduction (ZeRO++).",
        since="0.10.0",
    )
    zero_quantized_nontrainable_weights: bool = key(
        False,
        "Keep frozen weights quantized (stage 3).",
        since="0.10.2",
    )
    zero_quantized_weights: bool = key(
        False,
        "Quantize weights in all-gathers (ZeRO++, stage 3).",
        since="0.10.0",
    )

    def combinations(self, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """Old keys beside their successors, and settings that need a certain stage."""
        for old, new in (
            ("cpu_offload", "offload_optimizer"),
            ("cpu_offload_param", "offload_param"),
            ("stage3_gather_fp16_weights_on_model_save", "gather_16bit_weights_on_model_save"),
        ):
            if {old, new} <= self.written:
                spelled = new if new in given else f"stage3_{new}"
                yield wording.conflict(
                    at.child(old),
                    given[old],
                    at.child(spelled),
                    Consequence.REFUSED,
                    "DeepSpeed refuses an old key together with its replacement and stops when it "
                    "reads the config",
                    at.child(spelled).dotted,
                )
        stage_at = at.child("stage") if "stage" in given else None
        if not self.compute_grad_norm and self.stage not in (1, 2):
            yield wording.combination(
                at.child("compute_grad_norm"),
                given["compute_grad_norm"],
                stage_at,
                f"{at.dotted}.compute_grad_norm is false with {at.dotted}.stage {int(self.stage)}, "
                "but only stage 1 and 2 can go without the norm",
            )
        offload = self.offload_optimizer
        if (
            self.is_since("0.15.0")
            and offload is not None
            and offload.ratio < 1
            and self.stage != 3
        ):
            yield wording.combination(
                at.child("offload_optimizer").child("ratio"),
                given["offload_optimizer"]["ratio"],
                stage_at,
                f"{at.dotted}.offload_optimizer.ratio is {offload.ratio:g} with "
                f"{at.dotted}.stage {int(self.stage)}, but only stage 3 can offload a part",
            )
        if self.legacy_stage1:
            yield wording.deprecated_key(
                at.child("legacy_stage1"), given["legacy_stage1"], Consequence.LATE, None
            )
        if self.is_since("0.19.3") and self.elastic_checkpoint and self.stage == 3:
            yield wording.deprecated_key(
                at.child("elastic_checkpoint"),
                given["elastic_checkpoint"],
                Consequence.IGNORED,
                "checkpoint.load_universal",
                "stage 3 does not use it",
            )
