"""checkpoint: writing and loading of checkpoints."""

from typing import Annotated

from dsguard.schema.block import Takes, UncheckedBlock, key


def _any_case(*names: str) -> Takes:
    return Takes(
        lambda value: isinstance(value, str) and value.upper() in names,
        "one of " + ", ".join(f'"{name.lower()}"' for name in names) + " (in any case)",
    )


def _any_case_or_null(*names: str) -> Takes:
    takes = _any_case(*names)
    return Takes(lambda value: value is None or takes.test(value), takes.expected + " or null")


class ParallelWrite(UncheckedBlock):
    """Who writes a checkpoint at the same time.

    Source: get_checkpoint_parallel_write_pipeline in deepspeed/runtime/config.py.
    """

    pipeline_stage: Annotated[bool, Takes(lambda v: v in [True, False], "true or false")] = key(
        False, "Pipeline stages write their parts at the same time."
    )


class Writer(UncheckedBlock):
    """The fast checkpoint writer.

    Source: get_checkpoint_writer_config in deepspeed/runtime/model_checkpointing/config.py.
    """

    type: Annotated[str | None, _any_case_or_null("MOCK", "PYTHON", "FAST")] = key(
        "FAST", "MOCK, PYTHON or FAST (any case).", since="0.17.1"
    )
    data_parallel: Annotated[str | None, _any_case_or_null("REPLICA", "SOCKET", "MACHINE")] = key(
        None,
        "REPLICA, SOCKET or MACHINE: unit that shares the writing.",
        since="0.17.1",
    )
    decoupled: bool = key(
        False,
        "Write in a process of its own while training goes on.",
        since="0.17.1",
    )
    io_buffer_double: bool = key(
        True,
        "Fill one buffer while the other is written.",
        since="0.17.1",
    )
    io_buffer_size: int = key(67_108_864, "Size of the write buffer in bytes.", since="0.17.1")
    io_multiplier: int = key(1, "Factor on the writer's I/O parallelism.", since="0.17.1")
    show_statistics: bool = key(False, "Log how fast checkpoints were written.", since="0.17.1")


class Checkpoint(UncheckedBlock):
    """Writing and loading of checkpoints.

    Source: deepspeed/runtime/model_checkpointing/config.py.
    """

    tag_validation: Annotated[str, _any_case("WARN", "IGNORE", "FAIL")] = key(
        "WARN",
        "What happens when ranks save under different tags: Ignore, Warn or Fail, in any case.",
    )
    checkpoint_serialization: bool = key(
        True,
        "Serialize with torch.save's zip format.",
        since="0.17.1",
    )
    load_universal: bool = key(False, "Load checkpoints in DeepSpeed's universal format.")
    parallel_write: ParallelWrite = key({}, "Who writes at the same time.")
    use_node_local_storage: bool = key(
        False,
        "Every node writes its own copy, for storage that the nodes do not share.",
    )
    writer: Writer | None = key(
        None,
        "Fast checkpoint writer; its presence alone selects the Fast/Decoupled engine.",
        since="0.17.1",
    )
