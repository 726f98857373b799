"""activation_checkpointing: read by ``deepspeed.checkpointing.configure()`` only."""

from dsguard.schema.block import UncheckedBlock, key


class ActivationCheckpointing(UncheckedBlock):
    """Recomputing activations instead of keeping them.

    Source: deepspeed/runtime/activation_checkpointing/config.py.
    """

    partition_activations: bool = key(False, "Split saved activations over model-parallel ranks.")
    contiguous_memory_optimization: bool = key(
        False,
        "Keep partitioned activations in one buffer; needs partition_activations.",
    )
    cpu_checkpointing: bool = key(
        False,
        "Move saved activations to CPU memory until the backward pass.",
    )
    number_checkpoints: int | None = key(
        None,
        "Checkpointed layers, which contiguous_memory_optimization needs to size its buffer.",
    )
    profile: bool = key(False, "Time the forward and backward pass of each checkpointed function.")
    synchronize_checkpoint_boundary: bool = key(False, "Synchronize the device at each checkpoint.")
