"""sparse_attention: the layout of block-sparse attention, up to 0.19.6."""

from typing import Annotated, Any

from dsguard.schema.block import Takes, UncheckedBlock, key

_MODES = ("dense", "fixed", "variable", "bigbird", "bslongformer")


class SparseAttention(UncheckedBlock):
    """Which blocks of the attention matrix are computed; the mode decides which keys count.

    Source: get_sparse_* in deepspeed/runtime/config.py up to 0.19.6.
    """

    mode: Annotated[
        str, Takes(_MODES.__contains__, "one of " + ", ".join(f'"{mode}"' for mode in _MODES))
    ] = key("fixed", "Pattern of the layout.")
    attention: str = key("bidirectional", "bidirectional or unidirectional.")
    block: int = key(16, "Edge of a block in elements.")
    different_layout_per_head: bool = key(False, "Give every head a layout of its own.")
    global_block_end_indices: list[Any] | None = key(None, "Ends of global blocks.")
    global_block_indices: list[Any] = key([0], "Starts of global blocks.")
    horizontal_global_attention: bool = key(False, "Let global blocks attend to all others too.")
    local_window_blocks: list[Any] = key([4], "Blocks in each local window (variable).")
    num_different_global_patterns: int = key(1, "Global patterns over the heads (fixed).")
    num_global_blocks: int = key(1, "Global blocks in a window (fixed, bigbird).")
    num_local_blocks: int = key(4, "Blocks in a local window (fixed).")
    num_random_blocks: int = key(0, "Random blocks in a row (variable, bigbird).")
    num_sliding_window_blocks: int = key(3, "Blocks in the sliding window.")
