"""Whether an object looks like a DeepSpeed config.

Used when a folder is scanned, so it looks at top-level keys only and loads no model.

DeepSpeed configs have no mark of their own, and other tools' files hold some of the same keys:
training frameworks embed a few DeepSpeed keys among dozens of their own (GPT-NeoX), trainers
write ``train_batch_size`` into their state. So three things are asked for: most keys are
DeepSpeed's; keys that hold a block hold one, not the name of an optimizer; and the evidence
suffices, which means a key nobody else uses, or two keys at least.
"""

from __future__ import annotations

from typing import Any

from dsguard.model.placeholder import is_placeholder

BLOCKS = frozenset(
    {
        "activation_checkpointing",
        "aio",
        "amp",
        "autotuning",
        "bf16",
        "bfloat16",
        "checkpoint",
        "comet",
        "comms_logger",
        "compile",
        "compression_training",
        "csv_monitor",
        "curriculum_learning",
        "data_efficiency",
        "data_types",
        "eigenvalue",
        "elasticity",
        "expert_parallel",
        "flops_profiler",
        "fp16",
        "hybrid_engine",
        "nebula",
        "optimizer",
        "pipeline",
        "progressive_layer_drop",
        "quantize_training",
        "scheduler",
        "sparse_attention",
        "tensor_parallel",
        "tensorboard",
        "timers",
        "torch_autocast",
        "wandb",
        "weight_quantization",
        "zero_optimization",
    }
)
"""Top-level keys that hold an object, removed ones included."""

SCALARS = frozenset(
    {
        "allgather_size",
        "communication_data_type",
        "data_parallel_size",
        "dataloader_drop_last",
        "datastates_ckpt",
        "disable_allgather",
        "disable_python_gc",
        "dump_state",
        "gradient_accumulation_steps",
        "gradient_allreduce_op",
        "gradient_clipping",
        "gradient_predivide_factor",
        "graph_harvesting",
        "log_level",
        "managed_gradient_accumulation",
        "memory_breakdown",
        "prescale_gradients",
        "seq_parallel_comm_data_type",
        "seq_parallel_communication_data_type",
        "sequence_parallel_size",
        "sparse_gradients",
        "steps_per_print",
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "use_data_before_expert_parallelism",
        "vocabulary_size",
        "wall_clock_breakdown",
        "zero_allow_untested_optimizer",
        "zero_force_ds_cpu_optimizer",
    }
)
"""Top-level keys that hold anything else, removed ones included."""

OURS_ALONE = frozenset(
    {
        "zero_optimization",
        "train_micro_batch_size_per_gpu",
        "zero_allow_untested_optimizer",
        "zero_force_ds_cpu_optimizer",
    }
)
"""Keys that by themselves tell a DeepSpeed config."""

_COMMENT_STARTS = ("_", "#", "//", "$")


def looks_like_deepspeed(value: Any) -> bool:
    """Whether a JSON value looks like a DeepSpeed config; false for anything but an object."""
    if not isinstance(value, dict):
        return False
    keys, known = _keys(value)
    if 2 * len(known) <= len(keys):
        return False
    return len(known) > 1 or any(key in OURS_ALONE for key in known)


def may_be_deepspeed(value: dict[str, Any]) -> bool:
    """Whether an object may be meant as a DeepSpeed config, when a person says it is one.

    One key that DeepSpeed reads is enough, misspelt or not, if most of the others are too;
    an empty object may be anything.
    """
    keys, known = _keys(_with_blocks(value))
    misspelt = [key for key in keys if key not in known and key not in BLOCKS and _is_misspelt(key)]
    return not keys or 2 * (len(known) + len(misspelt)) > len(keys)


def _with_blocks(value: dict[str, Any]) -> dict[str, Any]:
    """The object with an empty block in place of each placeholder for one."""
    return {
        key: {} if key in BLOCKS and is_placeholder(held) else held for key, held in value.items()
    }


def _is_misspelt(key: str) -> bool:
    from difflib import get_close_matches  # most configs have no such key

    return bool(get_close_matches(key, [*SCALARS, *BLOCKS], 1, 0.85))


def named_like_config(name: str) -> bool:
    """Whether a file has a name that people give their DeepSpeed configs.

    For what cannot be recognised by its keys, because it cannot be read.
    """
    file = name.replace("\\", "/").rpartition("/")[2].lower()
    return any(word in file for word in ("ds_config", "dsconfig", "deepspeed"))


def _keys(value: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The top-level keys that are no remarks, and those of them that DeepSpeed reads."""
    keys = [key for key in value if not key.startswith(_COMMENT_STARTS)]
    known = [
        key
        for key in keys
        if key in SCALARS
        or (key in BLOCKS and not isinstance(value[key], str | list | int | float))
        or (key == "zero_optimization" and isinstance(value[key], bool))
    ]
    return keys, known
