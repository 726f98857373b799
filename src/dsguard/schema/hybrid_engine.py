"""hybrid_engine: training and generation in one engine."""

from dsguard.schema.block import CheckedBlock, key
from dsguard.schema.history import Was


class HybridEngine(CheckedBlock):
    """Generation between training steps.

    Source: HybridEngineConfig in deepspeed/runtime/config.py.
    """

    enabled: bool = key(False, "Use DeepSpeedHybridEngine.")
    enable_cuda_graph: bool = key(
        False,
        "Replay generation from CUDA graphs; off with stage 3, cache release or tp > 1.",
        since="0.19.6",
    )
    inference_tp_size: int = key(1, "Tensor-parallel degree while generating.")
    max_out_tokens: int = key(
        512,
        "Longest sequence, in tokens, that the generation workspace holds.",
        gt=0,
        was=(Was("0.19.7", type=int),),
    )
    pin_parameters: bool = key(True, "Keep all layers gathered while generating (stage 3).")
    release_inference_cache: bool = key(False, "Free the workspace between generations.")
    tp_gather_partition_size: int = key(8, "Layers gathered at a time.")
