"""Configs of our own that DeepSpeed accepts, together holding every block and key."""

from __future__ import annotations

from typing import Any

from packaging.version import Version

from dsguard.schema.block import Block
from dsguard.schema.config import Config
from dsguard.schema.history import NEWEST_KNOWN
from dsguard.schema.releases import as_of
from dsguard.schema.shape import FieldFacts, fields_of

BATCH = {"train_micro_batch_size_per_gpu": 1}
BATCH_KEYS = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")

_SAMPLES = {
    "optimizer.type": "AdamW",
    "scheduler.type": "WarmupLR",
    "communication_data_type": "bf16",
    "seq_parallel_communication_data_type": "fp32",
    "zero_optimization.stage": 2,
    "bf16.enabled": False,
    "fp16.loss_scale": 0,
    "aio.use_gds": False,
    "torch_autocast.dtype": "bfloat16",
    "checkpoint.writer.data_parallel": "replica",
    "compile.passes": ["z3"],
    "vocabulary_size": 32000,
    "log_level": "warning",
    "wandb.group": "night runs",
    "data_efficiency.data_sampling.curriculum_learning.curriculum_metrics": {
        "seqlen": {
            "min_difficulty": 64,
            "max_difficulty": 1024,
            "schedule_type": "fixed_linear",
            "schedule_config": {"total_curriculum_step": 100, "difficulty_step": 8},
        }
    },
    "data_efficiency.data_sampling.dynamic_batching.max_tokens": 4096,
    "data_efficiency.data_sampling.dynamic_batching.max_batch_size": 16,
    "autotuning.arg_mappings": {"train_micro_batch_size_per_gpu": "--batch"},
}

_LEFT_OUT = {
    *BATCH_KEYS,
    "allgather_size",
    "bfloat16",
    "tensor_parallel.dtype",
    "zero_optimization.cpu_offload",
    "zero_optimization.cpu_offload_param",
    "zero_optimization.stage3_gather_fp16_weights_on_model_save",
}
"""Old spellings and keys without an accepted value; the hand-written configs hold them."""


def whole_config(release: Version = NEWEST_KNOWN) -> dict[str, Any]:
    """One config with nearly every key that a release has, each with a value it takes."""
    return BATCH | _block(as_of(Config, release), "")


def _block(block: type[Block], prefix: str) -> dict[str, Any]:
    made = {}
    for facts in dict.fromkeys(fields_of(block).values()):
        dotted = prefix + facts.name
        if dotted not in _LEFT_OUT:
            made[facts.name] = _SAMPLES.get(dotted, _sample(facts, dotted))
    return made


def _sample(facts: FieldFacts, dotted: str) -> Any:
    shape = facts.shape
    if shape.block is not None:
        return _block(shape.block, f"{dotted}.")
    if facts.default is not None and facts.default != {}:
        return facts.default
    for kind, value in (
        ("boolean", True),
        ("whole", 4),
        ("number", 0.5),
        ("string", shape.choices[0] if shape.choices else "some text"),
        ("list", ["item"]),
        ("object", {}),
    ):
        if kind in shape.kinds:
            return value
    return None


WRITTEN: tuple[dict[str, Any], ...] = (
    {
        "fp16": {"enabled": True, "loss_scale": 0, "loss_scale_window": 500, "min_loss_scale": 1},
        "zero_optimization": {
            "stage": 3,
            "offload_param": {"device": "nvme", "nvme_path": "/mnt/fast", "buffer_size": 2e8},
            "offload_optimizer": {"device": "cpu", "ratio": 0.4, "pin_memory": True},
            "stage3_max_live_parameters": 2e9,
            "max_reuse_distance": 1000000,
            "stage3_gather_fp16_weights_on_model_save": True,
            "leaf_module": {"classes": "my.Block", "names": ["experts"]},
        },
        "optimizer": {"type": "Adam", "params": {"lr": 3e-4, "betas": [0.9, 0.95]}},
        "scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": 900}},
        "gradient_clipping": 0.7,
        "steps_per_print": 50,
    },
    {
        "bfloat16": {"enabled": True, "bf16_master_weights_and_grads": True},
        "zero_optimization": {"stage": 1, "cpu_offload": True, "cpu_offload_param": False},
        "tensorboard": {"enabled": True, "output_path": "logs", "job_name": "first"},
        "wandb": {"enabled": False, "project": "ours"},
        "csv_monitor": {"enabled": True},
        "comet": {"online": None, "samples_log_interval": "20"},
        "data_types": {"grad_accum_dtype": "fp32", "keep_in_fp32_modules": ["norm"]},
    },
    {
        "zero_optimization": True,
        "allgather_size": 100000000,
        "flops_profiler": {"enabled": True, "profile_step": 5, "output_file": None},
        "wall_clock_breakdown": False,
        "activation_checkpointing": {"partition_activations": True, "number_checkpoints": 4},
        "aio": {"block_size": 262144, "queue_depth": 32},
        "timers": {"throughput": {"enabled": True, "synchronized": False}},
        "comms_logger": {"enabled": True, "prof_ops": ["all_reduce"]},
    },
    {
        "bf16": {"enabled": True},
        "zero_optimization": {
            "stage": 2,
            "overlap_comm": True,
            "offload_optimizer": {"device": "cpu"},
            "zenflow": {"topk_ratio": 0.05, "select_strategy": "step", "select_interval": 4},
        },
        "tensor_parallel": {
            "autotp_size": 2,
            "tp": {"tp_size": 2},
            "partition_config": {"layer_specs": [], "use_default_specs": True},
        },
        "compile": {"deepcompile": True, "passes": ["z1"]},
        "gradient_allreduce_op": "mean",
        "sequence_parallel_size": 1,
        "torch_autocast": {"enabled": True, "dtype": "bf16"},
        "hybrid_engine": {"enabled": False, "max_out_tokens": 64},
        "weight_quantization": {"num_bits": 4, "q_type": "asymmetric"},
    },
    {
        "checkpoint": {
            "tag_validation": "Warn",
            "parallel_write": {"pipeline_stage": True},
            "writer": {"type": "fast", "data_parallel": "socket"},
        },
        "data_efficiency": {
            "enabled": True,
            "data_sampling": {
                "enabled": True,
                "curriculum_learning": {"enabled": True, "curriculum_metrics": {}},
                "dynamic_batching": {"enabled": True, "max_tokens": "2048"},
            },
            "data_routing": {"random_ltd": {"enabled": True, "total_layer_num": 24}},
        },
        "expert_parallel": {"enabled": True, "autoep_size": 2, "load_balance_coeff": None},
        "autotuning": {"enabled": True, "results_dir": "out", "model_info": {"num_params": 9}},
        "pipeline": {"activation_checkpoint_interval": 1, "anything": "goes"},
        "datastates_ckpt": {"host_cache_size": 16},
        "optimizer": {"type": "Muon", "params": {"lr": 0.02, "momentum": 0.95}},
    },
)
"""Configs as people write them; each needs BATCH added."""

OLD: tuple[dict[str, Any], ...] = (
    {
        "amp": {"enabled": False, "opt_level": "O1"},
        "progressive_layer_drop": {"enabled": True, "theta": 0.6, "gamma": 0.01},
        "curriculum_learning": {
            "enabled": True,
            "curriculum_type": "seqlen",
            "min_difficulty": 8,
            "max_difficulty": 512,
            "schedule_type": "fixed_linear",
            "schedule_config": {"total_curriculum_step": 900, "difficulty_step": 8},
        },
        "sparse_gradients": True,
        "aio": {"thread_count": 2, "queue_depth": 4},
    },
    {
        "sparse_attention": {"mode": "bigbird", "block": 32, "num_random_blocks": 1},
        "nebula": {"enabled": True, "persistent_storage_path": "/mnt/kept"},
        "quantize_training": {"enabled": True, "quantize_groups": 4},
        "communication_data_type": "FP16",
        "fp16": {"enabled": True, "initial_scale_power": 12, "hysteresis": 1, "opt_level": "O2"},
        "zero_optimization": {"stage": 3, "reduce_bucket_size": 1000.5},
    },
    {
        "compression_training": {
            "weight_quantization": {
                "shared_parameters": {
                    "enabled": True,
                    "quantization_type": "asymmetric",
                    "rounding": "stochastic",
                    "fp16_mixed_quantize": {"enabled": False},
                },
                "different_groups": {
                    "first": {"params": {"start_bits": 12, "target_bits": 4}, "modules": ["a"]}
                },
            },
            "activation_quantization": {
                "shared_parameters": {"enabled": True, "range_calibration": "static"},
                "different_groups": {"second": {"params": {"bits": 8}}},
            },
            "sparse_pruning": {
                "shared_parameters": {"enabled": True, "method": "topk"},
                "different_groups": {"third": {"params": {"dense_ratio": 0.5}}},
            },
            "head_pruning": {
                "shared_parameters": {"enabled": True, "num_heads": 12},
                "different_groups": {"fourth": {"params": {"dense_ratio": 0.5}}},
            },
            "row_pruning": {"shared_parameters": {"enabled": False}, "different_groups": {}},
            "layer_reduction": {"enabled": True, "keep_number_layer": 3},
        },
    },
    {
        "elasticity": {
            "enabled": True,
            "max_train_batch_size": 64,
            "micro_batch_sizes": [2, 4],
            "ignore_non_elastic_batch_info": True,
            "min_gpus": 1,
            "max_gpus": 16,
            "version": 0.1,
        },
    },
    {
        "compile": {"enabled": False, "backend": "inductor", "kwargs": {}},
        "zero_optimization": {"stage": 3, "mics_shard_size": 2, "offload_param": {}},
        "bf16": {"enabled": True, "immediate_grad_update": True},
        "tensorboard": {"enabled": False, "job_name": 7},
    },
)
"""Configs of old releases; none of them is accepted by all."""

ODD_VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    3,
    7,
    0.0,
    0.5,
    1.0,
    -0.5,
    5e8,
    15099494.4,
    float("inf"),
    float("nan"),
    10**30,
    "",
    "auto",
    "AUTO",
    "true",
    "False",
    "no",
    "0",
    "5",
    "1e3",
    "0.5",
    "cpu",
    "fp16",
    "mean",
    "throughput",
    "some text",
    [],
    ["auto"],
    ["a", "b"],
    [1, None],
    {},
    {"enabled": True},
    {"enabled": "auto"},
    {"stage": 3},
    {"strict": True, "enabled": "auto"},
    {"device": "cpu"},
    {"nobody": "auto"},
)
