"""pipeline: options of the PipelineEngine."""

from dsguard.model.finding import Consequence
from dsguard.schema.block import UncheckedBlock, key


class Pipeline(UncheckedBlock):
    """Options of the PipelineEngine; any key is stored, the ones here have readers.

    Source: get_pipeline_config in deepspeed/runtime/config.py.
    """

    stages: int | str = key("auto", "Accepted, read by no code.", wrong=Consequence.IGNORED)
    partition: str = key(
        "best",
        "Accepted, read by no code (PipelineModule's own argument decides).",
        wrong=Consequence.IGNORED,
    )
    activation_checkpoint_interval: int = key(
        0,
        "Layers between activation checkpoints; above 0 overrides PipelineModule's.",
    )
    grad_partitioned: bool = key(
        True,
        "Partition gradients over model-parallel ranks when sending.",
        since="0.12.3",
        wrong=Consequence.LATE,
    )
    pipe_partitioned: bool = key(
        True,
        "Partition activations over model-parallel ranks when sending.",
        since="0.12.3",
        wrong=Consequence.LATE,
    )
    seed_layers: bool = key(False, "Accepted, read by no code.", wrong=Consequence.IGNORED)
    use_reentrant: bool | None = key(
        None,
        "false selects the non-reentrant checkpoint function.",
        since="0.10.3",
    )
