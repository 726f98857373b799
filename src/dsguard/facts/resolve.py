"""Resolves one (config, launch) pair into a :class:`~dsguard.facts.case.Case`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from packaging.version import Version

from dsguard.facts.case import Case, Unreadable
from dsguard.facts.client import client_facts
from dsguard.facts.config_file import config_file_fact, named_config, unread_reason
from dsguard.facts.equation import solve
from dsguard.facts.parallel import ParallelSizes, parallel_sizes
from dsguard.facts.ranks import processes, starts_ranks
from dsguard.facts.samples import samples_per_step
from dsguard.facts.target import release_beside
from dsguard.facts.training import training_facts
from dsguard.facts.values import is_count, is_number, unfilled, written
from dsguard.frontends.base import FrontEnd, FrontEndName, Setting
from dsguard.frontends.detect import (
    config_argument,
    detect,
    front_end,
    some_trainer_fills,
)
from dsguard.frontends.requests import Requests
from dsguard.launch.context import LaunchContext, LauncherName
from dsguard.model.fact import (
    Candidate,
    Conflict,
    Fact,
    FactName,
    Facts,
    Known,
    Origin,
    OriginKind,
    Unknown,
)
from dsguard.model.placeholder import is_placeholder
from dsguard.model.report import Target, TargetOrigin
from dsguard.model.tree import Document, Object, dotted
from dsguard.schema.problem import Problem, ProblemKind
from dsguard.schema.sniff import BLOCKS, may_be_deepspeed
from dsguard.schema.validate import validate
from dsguard.schema.whole import STANDS_APART

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from dsguard.script.script import Script

NO_ELASTICITY_SINCE = Version("0.19.8")
"""From this release the elasticity block is refused."""


_BY_OPTION = Origin(OriginKind.OPTION, argument="--world-size")


class Options(Struct, frozen=True):
    """What the user told dsguard itself.

    ``world_size`` (all processes of the job) and ``front_end`` win over everything that is
    read or detected; None leaves them to the launch. ``world_size_from`` says who gave it: one
    from the environment counts the copies of this command, which are the ranks only where it
    starts none itself (``torchrun`` in every task of ``srun``).
    """

    world_size: int | None = None
    front_end: FrontEndName | None = None
    world_size_from: Origin = _BY_OPTION


def resolve(
    document: Document | None,
    launch: LaunchContext | None,
    script: Script | None,
    target: Target,
    options: Options,
    *,
    folder: Path,
    config_path: Path | None = None,
    unreadable: Unreadable | None = None,
) -> Case:
    """Everything that can be known of this pair before it is launched."""
    root = document.root.value if document is not None else None
    values: dict[str, Any] = root if isinstance(root, dict) else {}
    named_in_launch = launch is not None and config_argument(launch) is not None
    # A dict of the script is only a document because DeepSpeed or a front end gets it.
    in_code = document is not None and document.in_code
    recognised = named_in_launch or in_code or may_be_deepspeed(values)
    problems = _problems(document, values, Version(target.version)) if recognised else ()
    front_end_fact = _front_end(launch, script, options, problems)
    reader = None
    if isinstance(front_end_fact, Known):
        reader = front_end(
            front_end_fact.value, lambda package: release_beside(package, target, folder)
        )
    readable = document if document is not None and isinstance(document.root, Object) else None
    requests = Requests(launch, script)
    world_size = _world_size(
        processes(launch, reader, requests, script), options, starts_ranks(launch, script)
    )
    sizes: ParallelSizes = parallel_sizes(
        readable, launch, script, requests, world_size, Version(target.version)
    )

    named = named_config(launch, folder, config_path)
    broken = document is not None or unreadable is not None
    unread = unread_reason(named, launch, broken=broken) if readable is None else ""

    def settle(key: str) -> Fact | None:
        if unread:
            return _unseen(requests, reader, key, unread)
        return _settle(readable, requests, reader, key)

    elastic = _is_elastic(readable, Version(target.version))

    def size(key: str) -> Fact | None:
        return Unknown("elasticity computes the batch sizes") if elastic else _number(settle, key)

    batch = solve(
        size("train_batch_size"),
        size("train_micro_batch_size_per_gpu"),
        size("gradient_accumulation_steps"),
        sizes.data_parallel,
    )
    facts: dict[FactName, Fact] = {
        "deepspeed_version": Known(target.version, _target_origin(target)),
        "front_end": front_end_fact,
        **_launch_facts(launch),
        "config_file": config_file_fact(named, launch, script, config_path, document),
        "world_size": world_size,
        "data_parallel_size": sizes.data_parallel,
        "tensor_parallel_size": sizes.tensor_parallel,
        "pipeline_stages": sizes.pipeline_stages,
        "sequence_parallel_size": sizes.sequence_parallel,
        "train_batch_size": batch.train,
        "micro_batch_size": batch.micro,
        "gradient_accumulation_steps": _with_loser(
            batch.accumulation, requests, "gradient_accumulation_steps"
        ),
        **training_facts(readable, requests, reader, Version(target.version), settle, unread),
    }
    facts |= client_facts(script, reader, facts)
    facts["samples_per_step"] = samples_per_step(requests, reader, facts, batch.failure)
    return Case(
        document=readable if readable is not None else document,
        unreadable=unreadable,
        launch=launch,
        script=script,
        target=target,
        front_end=reader,
        folder=folder,
        named=named,
        recognised=recognised,
        requests=requests,
        problems=problems,
        batch=batch,
        facts=Facts(facts),
    )


_TOGETHER = frozenset(
    {
        ProblemKind.REFUSED_COMBINATION,
        ProblemKind.FAILING_COMBINATION,
        ProblemKind.UNUSED_SETTING,
    }
)
"""Problems that another key may cause or cure, be it there or not."""


def _problems(
    document: Document | None, values: dict[str, Any], target: Version
) -> tuple[Problem, ...]:
    """What the schema says of a config, without what hangs on keys that are not known."""
    found = tuple(validate(values, target))
    if document is None or not found:
        return found
    if _may_be_combined(document):
        found = tuple(problem for problem in found if problem.kind not in _TOGETHER)
    return tuple(
        problem
        for problem in found
        if not any(
            pointer and document.is_perhaps(pointer) for pointer in (problem.pointer, problem.other)
        )
    )


def _may_be_combined(document: Document) -> bool:
    """Whether keys that go into combinations are only known later, or may still come."""
    root = document.root
    return isinstance(root, Object) and (
        root.open
        or any(
            member.perhaps or (member.key in BLOCKS and is_placeholder(member.node.value))
            for member in root.members
            if member.key not in STANDS_APART
        )
    )


def _front_end(
    launch: LaunchContext | None,
    script: Script | None,
    options: Options,
    problems: Iterable[Problem],
) -> Fact:
    if options.front_end is not None:
        origin = Origin(OriginKind.OPTION, argument="--front-end")
        return Known(options.front_end, origin)
    return detect(launch, script, has_auto=_waits_for_trainer(problems))


def _waits_for_trainer(problems: Iterable[Problem]) -> bool:
    """Whether the config leaves a value that some trainer fills."""
    return any(
        problem.kind is ProblemKind.UNFILLED_AUTO and some_trainer_fills(dotted(problem.pointer))
        for problem in problems
    )


def _world_size(read: Fact, options: Options, starts_ranks: bool) -> Fact:
    """What the user says, or else who started dsguard itself, or else what the launch says."""
    if options.world_size is not None:
        origin = options.world_size_from
        if origin.kind is OriginKind.ENVIRONMENT and starts_ranks:
            return read
        if isinstance(read, Known) and read.value != options.world_size:
            return Known(options.world_size, origin, (Candidate(read.value, read.origin),))
        return Known(options.world_size, origin)
    return read


def _settle(
    document: Document | None,
    requests: Requests,
    reader: FrontEnd | None,
    key: str,
) -> Fact | None:
    candidate = written(document, key)
    request = requests.get(key)
    if candidate is not None and is_placeholder(candidate.value):
        return unfilled(document, key)
    handed = requests.handed(key)
    setting = Setting(
        key,
        candidate,
        request.candidate if request else None,
        handed.candidate if handed else None,
        requests.filled_by_plugin(key),
    )
    if reader is not None:
        return reader.settle(setting)
    if candidate is None:
        return None
    if setting.is_auto:
        return Unknown(f'{key} is "auto": a trainer fills it', setting.losers)
    return Known(candidate.value, candidate.origin, setting.losers)


def _unseen(requests: Requests, reader: FrontEnd | None, key: str, reason: str) -> Fact | None:
    """A setting where the config is not read: only what it could not change is known."""
    request = requests.get(key)
    if reader is not None and reader.name is FrontEndName.TRANSFORMERS:
        # The Trainer sizes its loader and counts by itself, and stops over another number.
        if key == "train_batch_size":
            return None
        if request is not None:
            return Known(request.value, request.origin)
    return Unknown(reason, (request.candidate,) if request is not None else ())


def _is_elastic(document: Document | None, target: Version) -> bool:
    """Whether DeepSpeed overwrites the batch sizes, as releases with elasticity do."""
    enabled = written(document, "elasticity.enabled")
    return target < NO_ELASTICITY_SINCE and enabled is not None and bool(enabled.value)


def _number(settle: Callable[[str], Fact | None], key: str) -> Fact | None:
    fact = settle(key)
    if isinstance(fact, Known) and not is_number(fact.value):
        return Unknown(f"{key} is not a number in the config")
    if isinstance(fact, Known) and not is_count(fact.value):
        return Unknown(f"{key} is beyond any batch size")
    return fact


def _with_loser(fact: Fact, requests: Requests, key: str) -> Fact:
    """The accumulation count that DeepSpeed derives also beats what the command line asks for."""
    request = requests.get(key)
    if request is None or isinstance(fact, Conflict) or fact.ignored:
        return fact
    if isinstance(fact, Known):
        if fact.value == request.value:
            return fact
        if fact.origin.kind in (OriginKind.DERIVED, OriginKind.DEFAULT):
            return Known(fact.value, fact.origin, (request.candidate,))
        return fact
    return Unknown(fact.reason, (request.candidate,))


def _target_origin(target: Target) -> Origin:
    if target.origin is TargetOrigin.OPTION:
        return Origin(OriginKind.OPTION, argument="--target")
    if target.origin is TargetOrigin.INSTALLED:
        return Origin(OriginKind.ENVIRONMENT, argument="installed package")
    if target.origin is TargetOrigin.PINNED:
        return Origin(OriginKind.ENVIRONMENT, argument=target.file)
    return Origin(OriginKind.DEFAULT, whose="dsguard (newest release it knows)")


def _launch_facts(launch: LaunchContext | None) -> dict[FactName, Fact]:
    if launch is None or launch.stands_alone:
        none = Unknown("no launch command was given")
        return {"launcher": none, "script": none}
    launcher: Fact
    if launch.launcher is LauncherName.UNKNOWN:
        launcher = Unknown("the launch names no launcher that dsguard knows")
    else:
        origin = Origin(OriginKind.LAUNCH, launch.launcher_location)
        launcher = Known(launch.launcher.value, origin)
    script: Fact
    if launch.script is None:
        script = Unknown("the launch names no script")
    elif not launch.script.known:
        script = Unknown(f"the shell would have to expand {launch.script.text}")
    else:
        script = Known(
            launch.script.text,
            Origin(OriginKind.LAUNCH, launch.command.locate(launch.script), "script"),
        )
    return {"launcher": launcher, "script": script}
