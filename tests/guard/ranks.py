"""Two ranks that train real models under DDP, FSDP and ``fully_shard``, each guarded.

:func:`run` starts both and runs every scenario below; the :class:`Outcome` of rank 0 holds what the
other rank found as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.guard.fleet import run_on_ranks

_RANKS = 2
ACCUMULATION = 4
MICRO_BATCH = 2
WINDOWS = 8
EXPECT = {"gradient_accumulation_steps": ACCUMULATION, "micro_batch_size": MICRO_BATCH}


@dataclass
class Outcome:
    """What one scenario gave.

    ``findings`` maps rules to the severity of their first finding, ``messages`` to its words;
    ``apart``: the ranks hold other weights; ``moved``: some weight has changed.
    """

    findings: dict[str, str] = field(default_factory=dict)
    messages: dict[str, str] = field(default_factory=dict)
    apart: bool = False
    moved: bool = False
    weights: list[float] = field(default_factory=list)
    optimizer_steps: int = 0
    micro_batches: int = 0
    windows: dict[int, int] = field(default_factory=dict)
    samples: dict[int, int] = field(default_factory=dict)
    raised: str = ""
    other: dict[str, str] = field(default_factory=dict)


SCENARIOS: dict[str, Callable[[], Outcome]] = {}


def run() -> dict[str, Outcome]:
    """Every scenario on two ranks, in one pair of processes."""
    first, _ = run_on_ranks(_RANKS, "tests.guard.ranks:every_scenario", with_deepspeed=False)
    return {name: Outcome(**fields) for name, fields in first.items()}


def every_scenario() -> dict[str, Any]:
    """On each rank: what came out, with what the other rank found."""
    import torch.distributed as dist

    found: dict[str, Any] = {}
    for name, scenario in SCENARIOS.items():
        outcome = scenario()
        heard: list[Any] = [None] * _RANKS
        dist.all_gather_object(heard, outcome.findings)
        outcome.other = heard[1 - dist.get_rank()]
        found[name] = asdict(outcome)
    dist.barrier()
    return found


# Models


class Job:
    """A small model under one way of synchronising, its optimizer and its guard."""

    def __init__(
        self,
        kind: str,
        expect: dict[str, Any] | None = None,
        *,
        guarded: bool = True,
        optimizer_first: bool = False,
        ranks: str = "off",
        on_violation: str = "record",
    ) -> None:
        import torch

        from dsguard import guard

        torch.manual_seed(0)
        self.kind = kind
        net = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Tanh(), torch.nn.Linear(6, 1))
        early = torch.optim.SGD(net.parameters(), lr=0.1) if optimizer_first else None
        self.model = _wrap(kind, net)
        self.optimizer = early or torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.start = self.local()
        torch.manual_seed(100 + torch.distributed.get_rank())
        self.guard: Any = None
        if guarded:
            self.guard = guard(
                self.model,
                optimizer=self.optimizer,
                expect=expect,
                on_violation=on_violation,  # type: ignore[arg-type]
                ranks=ranks,  # type: ignore[arg-type]
            )

    def batch(self, size: int = MICRO_BATCH) -> Any:
        import torch

        return torch.randn(size, 6)

    def loss(self, size: int = MICRO_BATCH) -> Any:
        return self.model(self.batch(size)).pow(2).mean() / ACCUMULATION

    def synchronised(self, yes: bool) -> AbstractContextManager[Any]:
        """Whether the forward and backward passes inside are to synchronise."""
        if self.kind == "fsdp2":
            self.model.set_requires_gradient_sync(yes)
            return nullcontext()
        return nullcontext() if yes else self.model.no_sync()  # type: ignore[no-any-return]

    def step(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad()

    def local(self) -> Any:
        """This rank's weights, in one tensor."""
        import torch

        parts = [p.to_local() if hasattr(p, "to_local") else p for p in self.model.parameters()]
        return torch.cat([part.detach().flatten().clone() for part in parts])

    def end(self) -> Outcome:
        import torch
        import torch.distributed as dist

        weights = self.local()
        outcome = Outcome(moved=not torch.equal(weights, self.start), weights=weights.tolist())
        if self.kind == "ddp":
            gathered = [torch.empty_like(weights) for _ in range(_RANKS)]
            dist.all_gather(gathered, weights)
            outcome.apart = not torch.equal(*gathered)
        if self.guard is not None:
            self.guard.close()
            for finding in self.guard.findings:
                outcome.findings.setdefault(finding.rule, finding.severity.value)
                outcome.messages.setdefault(finding.rule, finding.message)
            summary = self.guard.summary()
            outcome.optimizer_steps = summary.optimizer_steps
            outcome.micro_batches = summary.micro_batches
            outcome.windows = dict(summary.windows)
            outcome.samples = dict(summary.samples_per_step)
        return outcome


def _wrap(kind: str, net: Any) -> Any:
    import torch
    from torch.nn.parallel import DistributedDataParallel

    if kind == "ddp":
        return DistributedDataParallel(net)
    if kind == "fsdp2":
        from torch.distributed.fsdp import fully_shard

        for layer in (net[0], net[2]):
            fully_shard(layer)
        return fully_shard(net)
    if kind == "fsdp":
        from torch.distributed.fsdp import FullyShardedDataParallel

        return FullyShardedDataParallel(net, device_id=torch.device("cpu"))
    return net


# Loops

Sync = Callable[[int], bool]


def last(i: int) -> bool:
    return i == ACCUMULATION - 1


def train(job: Job, sync: Sync = last, windows: int = WINDOWS) -> None:
    for _ in range(windows):
        for i in range(ACCUMULATION):
            with job.synchronised(sync(i)):
                job.loss().backward()
        job.step()


def scenario(*kinds: str) -> Callable[[Callable[[str], Outcome]], None]:
    """Register a function of a kind of model, once for each."""

    def register(function: Callable[[str], Outcome]) -> None:
        for kind in kinds:
            SCENARIOS[f"{function.__name__}[{kind}]"] = lambda kind=kind: function(kind)  # type: ignore[misc]

    return register


ALL = ("ddp", "fsdp", "fsdp2")


@scenario(*ALL)
def last_synchronised(kind: str) -> Outcome:
    job = Job(kind, EXPECT)
    train(job)
    return job.end()


@scenario(*ALL)
def without_guard(kind: str) -> Outcome:
    job = Job(kind, guarded=False)
    train(job)
    return job.end()


@scenario(*ALL)
def never_synchronised(kind: str) -> Outcome:
    return _fault(kind, lambda i: False)


@scenario("ddp", "fsdp2")
def never_synchronised_without_expectation(kind: str) -> Outcome:
    job = Job(kind)
    train(job, lambda i: False)
    return job.end()


@scenario(*ALL)
def first_synchronised(kind: str) -> Outcome:
    return _fault(kind, lambda i: i == 0)


@scenario(*ALL)
def never_synchronised_later(kind: str) -> Outcome:
    return _fault(kind, lambda i: False, healthy=WINDOWS)


def _fault(kind: str, sync: Sync, healthy: int = 0) -> Outcome:
    job = Job(kind, EXPECT)
    train(job, windows=healthy)
    said = ""
    try:
        train(job, sync)
    except RuntimeError as error:
        said = str(error)
    outcome = job.end()
    outcome.raised = said
    return outcome


@scenario(*ALL)
def always_synchronised(kind: str) -> Outcome:
    job = Job(kind, EXPECT)
    train(job, lambda i: True)
    return job.end()


@scenario("ddp", "fsdp2")
def raised(kind: str) -> Outcome:
    from dsguard import GuardViolation

    job = Job(kind, EXPECT, on_violation="raise")
    said = ""
    try:
        train(job, lambda i: False)
    except GuardViolation as error:
        said = str(error)
    outcome = job.end()
    outcome.raised = said
    return outcome


@scenario("ddp")
def backward_outside_no_sync(kind: str) -> Outcome:
    job = Job(kind, EXPECT)
    for _ in range(WINDOWS):
        for _ in range(ACCUMULATION):
            with job.model.no_sync():
                loss = job.loss()
            loss.backward()
        job.step()
    return job.end()


@scenario("ddp")
def two_passes_of_one_forward(kind: str) -> Outcome:
    job = Job(kind)
    for _ in range(WINDOWS):
        output = job.model(job.batch())
        output.mean().backward(retain_graph=True)
        output.pow(2).mean().backward()
        job.step()
    return job.end()


@scenario("ddp")
def two_losses_of_one_forward(kind: str) -> Outcome:
    job = Job(kind)
    for _ in range(WINDOWS):
        output = job.model(job.batch())
        (output.mean() + output.pow(2).mean()).backward()
        job.step()
    return job.end()


@scenario("ddp")
def two_forwards_of_one_loss(kind: str) -> Outcome:
    job = Job(kind, {"gradient_accumulation_steps": 1})
    for _ in range(WINDOWS):
        (job.loss() + job.loss()).backward()
        job.step()
    return job.end()


@scenario("ddp")
def around_the_wrapper(kind: str) -> Outcome:
    job = Job(kind)
    for _ in range(WINDOWS):
        job.model.module(job.batch()).mean().backward()
        job.step()
    return job.end()


@scenario("ddp", "fsdp2")
def step_after_each(kind: str) -> Outcome:
    job = Job(kind, EXPECT)
    for _ in range(WINDOWS * ACCUMULATION):
        with job.synchronised(True):
            job.loss().backward()
        job.step()
    return job.end()


@scenario("ddp", "fsdp2")
def step_after_twice_as_many(kind: str) -> Outcome:
    job = Job(kind, EXPECT)
    for i in range(WINDOWS * 2 * ACCUMULATION):
        with job.synchronised((i + 1) % (2 * ACCUMULATION) == 0):
            job.loss().backward()
        if (i + 1) % (2 * ACCUMULATION) == 0:
            job.step()
    return job.end()


@scenario("ddp", "fsdp2")
def cleared_before_each(kind: str) -> Outcome:
    job = Job(kind, EXPECT)
    for _ in range(WINDOWS):
        for _ in range(ACCUMULATION):
            with job.synchronised(True):
                job.optimizer.zero_grad()
                job.loss().backward()
        job.optimizer.step()
    return job.end()


@scenario("ddp", "fsdp2")
def cleared_before_each_in_effect(kind: str) -> Outcome:
    """What :func:`cleared_before_each` really trains: the last micro-batch of a window."""
    job = Job(kind, guarded=False)
    for _ in range(WINDOWS):
        for i in range(ACCUMULATION):
            batch = job.batch()
            if last(i):
                (job.model(batch).pow(2).mean() / ACCUMULATION).backward()
        job.step()
    return job.end()


@scenario("fsdp2")
def cleared_while_unsharded(kind: str) -> Outcome:
    """``zero_grad`` does not see gradients that wait for their reduction."""
    job = Job(kind, EXPECT)
    for _ in range(WINDOWS):
        for i in range(ACCUMULATION):
            with job.synchronised(last(i)):
                job.optimizer.zero_grad()
                job.loss().backward()
        job.step()
    return job.end()


@scenario("ddp")
def cleared_by_the_model(kind: str) -> Outcome:
    job = Job(kind, EXPECT)
    for _ in range(WINDOWS):
        for i in range(ACCUMULATION):
            job.model.zero_grad()
            with job.synchronised(last(i)):
                job.loss().backward()
        job.optimizer.step()
    return job.end()


@scenario("ddp")
def cleared_before_the_step(kind: str) -> Outcome:
    job = Job(kind, EXPECT)
    for _ in range(WINDOWS):
        for i in range(ACCUMULATION):
            with job.synchronised(last(i)):
                job.loss().backward()
        job.optimizer.zero_grad()
        job.optimizer.step()
    return job.end()


@scenario("ddp", "fsdp2")
def other_batches(kind: str) -> Outcome:
    job = Job(kind, EXPECT)
    for _ in range(WINDOWS):
        for i in range(ACCUMULATION):
            with job.synchronised(last(i)):
                job.loss(2 * MICRO_BATCH).backward()
        job.step()
    return job.end()


@scenario("ddp", "fsdp2")
def ranks_apart(kind: str) -> Outcome:
    import torch.distributed as dist

    steps = {"gradient_accumulation_steps": 2 + dist.get_rank()}
    return Job(kind, steps, ranks="attach").end()


@scenario("ddp", "fsdp2")
def ranks_alike(kind: str) -> Outcome:
    return Job(kind, EXPECT, ranks="attach").end()


@scenario("ddp")
def other_arithmetic(kind: str) -> Outcome:
    return Job(kind, {**EXPECT, "train_batch_size": 32, "world_size": 4}).end()


@scenario("ddp")
def expected_by_total(kind: str) -> Outcome:
    """16 samples of 2 on each of 2 ranks are 4 micro-batches."""
    job = Job(kind, {"train_batch_size": 16, "micro_batch_size": MICRO_BATCH})
    for _ in range(WINDOWS):
        job.loss().backward()
        job.step()
    return job.end()


@scenario("fsdp2")
def optimizer_made_too_early(kind: str) -> Outcome:
    job = Job(kind, EXPECT, optimizer_first=True)
    train(job)
    return job.end()


@scenario("plain")
def nothing_synchronises(kind: str) -> Outcome:
    try:
        Job(kind)
    except TypeError as error:
        return Outcome(raised=str(error))
    return Outcome()


@scenario("ddp")
def compiled(kind: str) -> Outcome:
    import torch

    job = Job(kind, EXPECT)
    wrapped, job.model = job.model, torch.compile(job.model, backend="eager")
    job.synchronised = lambda yes: nullcontext() if yes else wrapped.no_sync()  # type: ignore[method-assign]
    train(job)
    return job.end()


@scenario("fsdp", "fsdp2")
def unknown_names(kind: str) -> Outcome:
    """Another release of PyTorch, in which the private names are gone."""
    with _renamed():
        job = Job(kind, EXPECT)
        train(job, lambda i: True)
        return job.end()


@contextmanager
def _renamed() -> Iterator[None]:
    from dsguard.runtime.engines import gradient_sync

    kept = gradient_sync._FSDP_FLAG, gradient_sync._FSDP2_FLAGS
    gradient_sync._FSDP_FLAG, gradient_sync._FSDP2_FLAGS = "_gone", ("gone", "gone_too")
    try:
        yield
    finally:
        gradient_sync._FSDP_FLAG, gradient_sync._FSDP2_FLAGS = kept
