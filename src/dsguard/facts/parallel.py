"""How many ranks see different data.

DeepSpeedConfig (runtime/config.py, ``__init__``) divides the world by
``sequence_parallel_size``, or takes ``data_parallel_size`` when both keys are written; tensor
parallelism through the config does not divide it. A Megatron-style ``mpu`` is the script's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from packaging.version import Version

from dsguard.facts.values import is_count, is_number, unread, written
from dsguard.frontends.requests import PARALLEL_FLAGS, Requests
from dsguard.model.fact import Fact, Known, Origin, OriginKind, Unknown
from dsguard.script.declaration import Constant, FromArgument

if TYPE_CHECKING:
    from dsguard.launch.context import Argument, LaunchContext
    from dsguard.model.tree import Document
    from dsguard.script.script import Script


class ParallelSizes(Struct, frozen=True):
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
    document: Document | None,
    launch: LaunchContext | None,
    script: Script | None,
    requests: Requests,
    world_size: Fact,
    target: Version,
) -> ParallelSizes:
    """The degrees that the config, the launch and the script give."""
    sequence = written(document, "sequence_parallel_size")
    tensor = written(document, "tensor_parallel.autotp_size")
    deepspeed = Origin(OriginKind.DEFAULT, whose="DeepSpeed")
    mpu = _mpu_argument(launch)
    split_by_script = (
        Unknown(f"the script's {mpu.flag} {mpu.value} splits the ranks") if mpu else None
    )
    stages = _stages(script, requests)
    if stages is None and split_by_script is None:
        split_by_script = _by_mpu(script)
    data_parallel = split_by_script or _data_parallel(document, world_size, target)
    if stages is not None:
        data_parallel = _per_stage(world_size, stages)
    return ParallelSizes(
        data_parallel=data_parallel,
        tensor_parallel=(
            Known(tensor.value, tensor.origin)
            if tensor is not None and is_number(tensor.value) and tensor.value > 0
            else split_by_script
            or unread(document, "tensor_parallel.autotp_size")
            or Known(1, deepspeed)
        ),
        pipeline_stages=stages or split_by_script or Unknown("the script decides (PipelineModule)"),
        sequence_parallel=(
            Known(sequence.value, sequence.origin)
            if sequence is not None and is_number(sequence.value)
            else unread(document, "sequence_parallel_size") or Known(1, deepspeed)
        ),
    )


def _stages(script: Script | None, requests: Requests) -> Fact | None:
    """How many stages the script's ``PipelineModule`` has; None where it makes none."""
    pipelines = [e for e in script.loop.engines if e.is_pipeline] if script is not None else []
    if not pipelines:
        return None
    given = pipelines[0].stages if len(pipelines) == 1 else None
    if given is not None and isinstance(given.value, Constant) and is_number(given.value.value):
        return Known(given.value.value, Origin(OriginKind.SCRIPT, given.location))
    if given is not None and isinstance(given.value, FromArgument):
        request = requests.argument(given.value.name)
        if request is not None and is_number(request.value):
            return Known(request.value, request.origin)
    return Unknown("the script's PipelineModule splits the ranks when it runs")


def _by_mpu(script: Script | None) -> Unknown | None:
    """Ranks that share a model by an ``mpu`` that the script passes to the engine."""
    engines = script.loop.engines if script is not None else ()
    if any({"mpu", "mesh_param"} & engine.passed.keys() for engine in engines):
        return Unknown("the mpu that the script passes splits the ranks")
    return None


def _per_stage(world_size: Fact, stages: Fact) -> Fact:
    """How many ranks each stage of a pipeline has (deepspeed/runtime/pipe/topology.py)."""
    if not isinstance(stages, Known):
        return stages
    if not isinstance(world_size, Known):
        return world_size
    if not is_count(world_size.value) or stages.value < 1 or world_size.value % stages.value:
        return Unknown(f"{stages.value} stages do not divide the ranks")
    return Known(
        world_size.value // stages.value,
        Origin(
            OriginKind.DERIVED,
            facts=("world_size", "pipeline_stages"),
            formula=f"{world_size.value} / {stages.value}",
        ),
    )


def _data_parallel(document: Document | None, world_size: Fact, target: Version) -> Fact:
    sequence = written(document, "sequence_parallel_size")
    data = written(document, "data_parallel_size")
    for size, key in ((sequence, "sequence_parallel_size"), (data, "data_parallel_size")):
        counts = sequence is not None and target >= (MESH_SINCE if size is data else DIVIDES_SINCE)
        lost = unread(document, key) if counts else None
        if lost is not None:
            return lost
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
