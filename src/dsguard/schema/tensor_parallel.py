"""tensor_parallel: training with automatic tensor parallelism (AutoTP)."""

from typing import Annotated, Any, Literal

from dsguard.schema.block import Before, CheckedBlock, Holds, UncheckedBlock, key


def _never(value: Any) -> Any:
    raise ValueError("nothing that JSON can hold is taken")


class PartitionConfig(UncheckedBlock):
    """Rules for how layers are split.

    Source: AutoTPConfig.from_dict in deepspeed/module_inject/autotp_config.py.
    """

    embedding_partition_dim: int = key(1, "Dimension embeddings are split on.", since="0.18.6")
    layer_specs: list[Any] = key(
        [],
        "Ordered rules, each with patterns, partition_type and, as needed, shape, partition_dim, "
        "model_types, gather_output, grad_allreduce.",
        since="0.18.6",
    )
    lm_head_patterns: list[str] = key(
        ["lm_head", "embed_out"],
        "Names of the LM head.",
        since="0.18.6",
    )
    strict_mode: bool = key(False, "Fail on linear layers no rule matches.", since="0.18.6")
    tp_size: int = key(1, "Overwritten by autotp_size.", since="0.18.6")
    use_default_specs: bool = key(True, "Merge with the preset's rules.", since="0.18.6")


class TensorParallelGroup(CheckedBlock):
    """The ranks that share a model.

    Source: TPConfig in deepspeed/runtime/tensor_parallel/config.py.
    """

    mpu: Any = key(None, "Model-parallel unit; only Python code can give it.", since="0.16.4")
    tp_grain_size: int = key(1, "Splits are multiples of this many elements.", since="0.16.4")
    tp_group: Any = key(None, "Process group; only Python code can give it.", since="0.16.4")
    tp_size: int = key(
        1,
        "Ranks one model is split over; must be 1 or autotp_size.",
        since="0.16.4",
    )


class TensorParallel(CheckedBlock):
    """Automatic tensor parallelism.

    Source: TPTrainingConfig in deepspeed/runtime/tensor_parallel/config.py.
    """

    autotp_size: int = key(0, "Ranks one model is split over; 0 turns AutoTP off.", since="0.16.4")
    dtype: Annotated[Any, Before(_never)] = key(
        "torch.float16",
        "Type the model is cast to; only Python code can give it (a torch.dtype object).",
        since="0.16.4",
        expected="absent: JSON cannot hold the torch.dtype object that DeepSpeed wants",
    )
    injection_policy_tuple: tuple[Any, ...] | None = key(
        None,
        "Set by DeepSpeed itself.",
        since="0.16.4",
    )
    keep_module_on_host: bool = key(
        False,
        "Keep weights on the host while sharding.",
        since="0.16.4",
    )
    replace_with_kernel_inject: bool = key(
        False,
        "Inference kernel injection.",
        since="0.16.4",
        alias="kernel_inject",
    )
    partition_config: Annotated[dict[str, Any] | None, Holds(PartitionConfig)] = key(
        None,
        "Rules of your own for how layers are split.",
        since="0.18.6",
    )
    preset_model: str | None = key(
        None,
        "Built-in rules to use: llama, bloom, chatglm, mixtral, deepseek_v2, qwen2 or phi3; "
        "another name means no preset.",
        since="0.18.6",
    )
    tensor_parallel: TensorParallelGroup = key(
        {},
        "Group and size of the tensor-parallel ranks.",
        since="0.16.4",
        alias="tp",
    )
    tp_overlap_comm: bool = key(False, "Overlap the all-reduce with compute.", since="0.16.6")
    vocab_parallel_ce_backend: Literal["torch", "liger"] = key(
        "torch",
        "Loss over the vocabulary shards: torch or liger.",
        since="0.19.8",
    )
    vocab_parallel_lm_head: bool | None = key(
        None,
        "Split the LM head over the vocabulary; null follows the model's own plan.",
        since="0.19.8",
    )
