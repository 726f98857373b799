"""aio: asynchronous I/O for NVMe offload."""

from dsguard.schema.block import UncheckedBlock, key


class Aio(UncheckedBlock):
    """Requests of the asynchronous I/O library.

    ``use_gds`` without CUDA stops DeepSpeed; that depends on the device and is not judged here.

    Source: deepspeed/runtime/swap_tensor/aio_config.py.
    """

    block_size: int = key(1_048_576, "Bytes of one read or write request.")
    queue_depth: int = key(8, "Requests that may be in flight at once.")
    intra_op_parallelism: int = key(1, "Threads one read/write is split over.", since="0.16.4")
    thread_count: int = key(
        1,
        "Old name of intra_op_parallelism.",
        removed="0.16.4",
        replaced_by="aio.intra_op_parallelism",
    )
    overlap_events: bool = key(True, "Overlap submission and completion.")
    single_submit: bool = key(False, "Submit requests one by one.")
    use_gds: bool = key(
        False,
        "Read and write with GPUDirect Storage; only with CUDA.",
        since="0.15.0",
    )
