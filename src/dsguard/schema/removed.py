"""Keys that older releases of DeepSpeed had and the newest known one has not.

Everything below a removed block went with it and is not listed. Source: the keys read by every
release from 0.9.0 to 0.19.8, and ``_REMOVED_*_CONFIG_KEYS`` in deepspeed/runtime/config.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from packaging.version import Version


@dataclass(frozen=True)
class Removed:
    """A removed key.

    ``refused``: its mere presence stops DeepSpeed from ``removed_in`` on, whatever the value;
    otherwise it is an unknown key like any other. ``replacement`` is a dotted path or words.
    ``last_present`` is None where no known release read the key as a block of its own.
    """

    dotted: str
    removed_in: Version
    refused: bool
    replacement: str | None
    last_present: str | None


_BATCH_KEYS = "train_batch_size / train_micro_batch_size_per_gpu / gradient_accumulation_steps"

_TABLE: tuple[tuple[str, str, bool, str | None, str | None], ...] = (
    ("aio.thread_count", "0.16.4", False, "aio.intra_op_parallelism", "0.16.3"),
    ("amp", "0.19.8", True, "fp16 / bf16 / torch_autocast", "0.19.7"),
    (
        "autotuning.model_info.hideen_size",
        "0.9.3",
        False,
        "autotuning.model_info.hidden_size",
        "0.9.2",
    ),
    ("compile.backend", "0.14.4", False, "engine.compile(backend=...)", "0.14.3"),
    ("compile.enabled", "0.14.4", False, "compile.deepcompile", "0.14.3"),
    ("compile.kwargs", "0.14.4", False, "engine.compile(compile_kwargs=...)", "0.14.3"),
    ("compression_training", "0.19.7", True, None, "0.19.6"),
    (
        "curriculum_learning",
        "0.19.8",
        True,
        "data_efficiency.data_sampling.curriculum_learning",
        "0.19.7",
    ),
    ("eigenvalue", "0.19.8", True, None, None),
    ("elasticity", "0.19.8", True, _BATCH_KEYS, "0.19.7"),
    ("graph_harvesting", "0.19.8", True, None, "0.19.7"),
    ("nebula", "0.19.7", True, None, "0.19.6"),
    ("progressive_layer_drop", "0.19.8", True, None, "0.19.7"),
    ("quantize_training", "0.19.7", True, None, "0.19.6"),
    (
        "seq_parallel_comm_data_type",
        "0.16.5",
        False,
        "seq_parallel_communication_data_type",
        "0.16.4",
    ),
    ("sparse_attention", "0.19.7", True, None, "0.19.6"),
    ("sparse_gradients", "0.19.8", True, "nn.Embedding(sparse=True), without a key", "0.19.7"),
    ("zero_optimization.mics_hierarchical_params_gather", "0.19.7", True, None, "0.19.6"),
    ("zero_optimization.mics_shard_size", "0.19.7", True, None, "0.19.6"),
    (
        "zero_optimization.zeropp_loco_param",
        "0.19.8",
        True,
        "zero_optimization.zero_quantized_gradients",
        "0.19.7",
    ),
)

REMOVED: dict[str, Removed] = {
    dotted: Removed(dotted, Version(version), refused, replacement, last)
    for dotted, version, refused, replacement, last in _TABLE
}
"""Removed keys by dotted path."""
