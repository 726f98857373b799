"""How many ranks see different data.

DeepSpeedConfig (runtime/config.py, ``__init__``) divides the world by
``sequence_parallel_size``, or takes ``data_parallel_size`` when both keys are written; tensor
parallelism through the config does not divide it. A Megatron-style ``mpu`` is the script's.
"""

from __future__ import annotations

from dataclasses import dataclass

from packaging.version import Version

from dsguard.facts.values import is_count, is_number, written
from dsguard.frontends.requests import PARALLEL_FLAGS
from dsguard.launch.context import Argument, LaunchContext
from dsguard.model.fact import Fact, Known, Origin, OriginKind, Unknown
from dsguard.model.tree import Document


@dataclass(frozen=True)
class ParallelSizes:
    """The degrees of parallelism, each a fact."""

    data_parallel: Fact
    tensor_parallel: Fact
    pipeline_stages: Fact
    sequence_parallel: Fact


MESH_SINCE = Version("0.15.0")
"""From this release the two sizes together make a device mesh."""

DIVIDES_SINCE = Version("0.17.0")
"""From this release sequence_parallel_size alone divides the world."""


def parallel_sizes(
    document: Document | None, launch: LaunchContext | None, world_size: Fact, target: Version
) -> ParallelSizes:
    """The degrees that the config and the launch give."""
    sequence = written(document, "sequence_parallel_size")
    tensor = written(document, "tensor_parallel.autotp_size")
    deepspeed = Origin(OriginKind.DEFAULT, whose="DeepSpeed")
    mpu = _mpu_argument(launch)
    split_by_script = (
        Unknown(f"the script's {mpu.flag} {mpu.value} splits the ranks") if mpu else None
    )
    return ParallelSizes(
        data_parallel=split_by_script or _data_parallel(document, world_size, target),
        tensor_parallel=(
            Known(tensor.value, tensor.origin)
            if tensor is not None and is_number(tensor.value) and tensor.value > 0
            else split_by_script or Known(1, deepspeed)
        ),
        pipeline_stages=split_by_script or Unknown("the script decides (PipelineModule)"),
        sequence_parallel=(
            Known(sequence.value, sequence.origin)
            if sequence is not None and is_number(sequence.value)
            else Known(1, deepspeed)
        ),
    )


def _data_parallel(document: Document | None, world_size: Fact, target: Version) -> Fact:
    sequence = written(document, "sequence_parallel_size")
    data = written(document, "data_parallel_size")
    if sequence is not None and data is not None and target >= MESH_SINCE:
        if not is_count(data.value) or not data.value > 0:
            return Unknown("data_parallel_size is no number of ranks in the config")
        return Known(data.value, data.origin)
    if not isinstance(world_size, Known):
        return world_size
    if not is_count(world_size.value):
        return Unknown("the world size is beyond any number of processes")
    if sequence is None or target < DIVIDES_SINCE:
        return Known(
            world_size.value,
            Origin(OriginKind.DERIVED, facts=("world_size",), formula="every rank"),
        )
    if not is_count(sequence.value) or not sequence.value > 0:
        return Unknown("sequence_parallel_size is not a number to divide by")
    ranks = world_size.value / sequence.value
    if not is_count(ranks):
        return Unknown("sequence_parallel_size leaves no number of ranks")
    return Known(
        int(ranks) if float(ranks).is_integer() else ranks,
        Origin(
            OriginKind.DERIVED,
            facts=("world_size", "sequence_parallel_size"),
            formula=f"{world_size.value} / {sequence.value}",
        ),
    )


def _mpu_argument(launch: LaunchContext | None) -> Argument | None:
    argument = launch.arguments.get(*PARALLEL_FLAGS) if launch is not None else None
    if argument is None or argument.value in (None, "1"):
        return None
    return argument
