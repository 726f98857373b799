"""compile: DeepCompile."""

from typing import Any, Literal

from dsguard.schema.block import CheckedBlock, key
from dsguard.schema.history import Was


class Compile(CheckedBlock):
    """Settings of DeepCompile and, from 0.13.2 to 0.14.3, of ``torch.compile``.

    Source: deepspeed/compile/config.py; of old, CompileConfig in deepspeed/runtime/compiler.py.
    """

    enabled: bool = key(
        False,
        "Compile the model with torch.compile.",
        since="0.13.2",
        removed="0.14.4",
        replaced_by="compile.deepcompile",
    )
    backend: str = key(
        "inductor",
        "Backend for torch.compile.",
        since="0.13.2",
        removed="0.14.4",
        replaced_by="engine.compile(backend=...)",
    )
    kwargs: dict[str, Any] = key(
        {},
        "More arguments for torch.compile.",
        since="0.13.2",
        removed="0.14.4",
        replaced_by="engine.compile(compile_kwargs=...)",
    )

    deepcompile: bool = key(False, "Turn DeepCompile on.", since="0.16.6")
    autoep_non_moe: bool = key(
        False,
        "Compile only the parts outside AutoEP layers.",
        since="0.19.8",
    )
    debug_log: bool = key(False, "Dump the graphs of each compiler pass.", since="0.16.6")
    double_buffer: bool = key(
        True,
        "Two buffers for gathers, so that one fills while the other is used.",
        since="0.16.6",
    )
    free_activation: bool = key(
        False,
        "Free large activations as soon as they are used.",
        since="0.16.6",
    )
    free_activation_threshold: int = key(
        10_485_760,
        "Activations of at least this many bytes are freed early.",
        since="0.18.0",
    )
    keep_all_input_tensors: bool = key(
        False,
        "Keep every real input tensor for profiling, not a dummy.",
        since="0.17.2",
    )
    keep_int_input_tensors: bool = key(
        True,
        "Keep real integer input tensors for profiling, not dummies.",
        since="0.17.2",
    )
    offload_activation: bool = key(
        False,
        "Move saved activations to host memory between forward and backward.",
        since="0.16.6",
    )
    offload_activation_pin_memory: bool = key(
        True,
        "Pin the host memory that offload_activation uses.",
        since="0.19.6",
    )
    offload_opt_states: bool = key(
        False,
        "Offload optimizer states around forward/backward.",
        since="0.16.6",
    )
    offload_parameters: bool = key(
        False,
        "Offload parameters; set by the engine when both offloads are cpu.",
        since="0.16.6",
    )
    passes: list[Literal["z1", "z3", "autosp", "autotp"]] | None = key(
        None,
        "Compiler passes to put together; null takes the schedule of the ZeRO stage.",
        since="0.18.9",
        was=(Was("0.19.6", type=list[Literal["z1", "z3", "autosp"]] | None),),
    )
    symmetric_memory: bool = key(
        False,
        "Use PyTorch's symmetric memory for collectives.",
        since="0.16.6",
    )
    sync_after_allgather: bool = key(False, "Synchronize after all-gather.", since="0.16.6")
    sync_after_reduce: bool = key(False, "Synchronize after reduce.", since="0.16.6")
    sync_before_allgather: bool = key(False, "Synchronize before all-gather.", since="0.16.6")
    sync_before_reduce: bool = key(False, "Synchronize before reduce.", since="0.16.6")
