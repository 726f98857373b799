"""flops_profiler: operation counts of one step."""

from typing import Annotated

from dsguard.schema.block import Takes, UncheckedBlock, key


class FlopsProfiler(UncheckedBlock):
    """Operation counts and times of one step.

    Source: deepspeed/profiling/config.py.
    """

    enabled: Annotated[bool, Takes(lambda v: isinstance(v, int), "true or false")] = key(
        False, "Profile one step; also turns wall_clock_breakdown on."
    )
    detailed: bool = key(True, "Print the per-module profile.")
    module_depth: int = key(-1, "Depth down to which modules are printed; -1 is all.")
    output_file: str | None = key(None, "Write to this file instead of stdout.")
    profile_step: int = key(1, "Number of the step that is profiled.")
    recompute_fwd_factor: float = key(
        0.0,
        "Extra forward passes to count for activation checkpointing, as a share of one.",
        since="0.9.3",
    )
    top_modules: int = key(1, "Modules that are listed for each depth.")
