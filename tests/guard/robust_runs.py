"""Runs on real engines whose results are compared with and without the guard."""

from __future__ import annotations

import gc
import hashlib
import io
import logging
import os
import signal
import time
import weakref
from typing import Any
from unittest import mock

import deepspeed
import torch
import torch.distributed as dist

from dsguard import guard
from dsguard.runtime.rule import all_guard_rules
from tests.guard.healthy_loops import config, initialize
from tests.guard.scenarios import batches, train


def digests() -> dict[str, tuple[str, str]]:
    """Of the parameters after 20 steps, without the guard and with it."""
    found = {}
    for stage in range(4):
        for precision in ("fp32", "bf16"):
            pair = []
            for guarding in (False, True):
                engine, _ = initialize(config(stage, precision, 2))
                watched = guard(engine, ranks="off") if guarding else None
                dtype = next(engine.module.parameters()).dtype
                for x, y in batches(40, dist.get_rank()):
                    engine.backward(engine(x.to(dtype), y.to(dtype)))
                    engine.step()
                assert engine.global_steps == 20
                pair.append(_digest(engine))
                if watched is not None:
                    assert watched.findings == ()
            found[f"zero{stage}-{precision}"] = (pair[0], pair[1])
    return found


def _digest(engine: Any) -> str:
    digest = hashlib.sha256()
    parameters = list(engine.module.parameters())
    # A rank's own share of a parameter ends in memory that nobody has written.
    with deepspeed.zero.GatheredParameters(parameters):
        for parameter in parameters:
            digest.update(parameter.detach().float().numpy().tobytes())
    return digest.hexdigest()


def traces() -> dict[int, dict[str, Any]]:
    """What stays on an engine after ``close()``, and whether a guard keeps one alive."""
    found = {}
    for stage in range(4):
        engine, _ = initialize(config(stage, accumulation=2))
        before = _attributes(engine)
        watched = guard(engine)
        train(engine, 4)
        watched.close()
        after = _attributes(engine)
        outcome: dict[str, Any] = {
            "attributes": sorted(name for name in after if after[name] != before.get(name)),
            "hooks": list(engine.basic_optimizer._optimizer_step_post_hooks),
        }
        del engine, watched
        for name, guarding in (("alive_without", False), ("alive", True)):
            engine, _ = initialize(config(stage, accumulation=2))
            watched = guard(engine) if guarding else None
            assert (watched is not None) == guarding
            train(engine, 4)
            alive = weakref.ref(engine)
            del engine
            for _ in range(3):
                gc.collect()
            outcome[name] = alive() is not None
        found[stage] = outcome
    return found


def _attributes(engine: Any) -> dict[str, Any]:
    owners = {"engine": engine, "optimizer": engine.optimizer, "base": engine.basic_optimizer}
    return {
        f"{owner}.{name}": value
        for owner, of in owners.items()
        for name, value in vars(of).items()
        if callable(value)
    }


def apart(how: str) -> dict[str, Any]:
    """The last rank attaches never, late, twice, or dies; the others train on their own."""
    said = _listen()
    last = dist.get_rank() == dist.get_world_size() - 1
    alone = dist.new_group([dist.get_rank()], use_local_synchronization=True)
    assert alone is not None
    from tests.guard.stub import StubEngine
    from tests.guard.stub import train as train_stub

    engine = StubEngine()
    with (
        mock.patch("dsguard.runtime.session._SECONDS_FOR_RANKS", 2.0),
        # On a busy machine rank 0 may be long in coming; it is there in the end.
        mock.patch("dsguard.runtime.ranks._SECONDS_TO_ANSWER", 60.0),
    ):
        all_guard_rules()  # their modules are not imported within the two seconds
        _store().set(f"ready/{dist.get_rank()}", "1")
        _store().wait([f"ready/{rank}" for rank in range(dist.get_world_size())])
        if last and how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if last and how == "late":
            _wait_for_another("answers")
        watched = None if last and how == "never" else guard(engine)
        train_stub(engine, 8)
        if how == "twice" and last:
            watched = guard(engine)
        train_stub(engine, 8)
    found = [(f.rule, f.message) for f in watched.findings] if watched else []
    answer = {"steps": engine.global_steps, "found": found, "said": said.getvalue()}
    _leave_together(how)
    return answer


def _store() -> Any:
    return torch.distributed.distributed_c10d._get_default_store()


def _wait_for_another(key: str) -> None:
    """Until rank 0 has given its answer without this rank."""
    while not _store().check([f"dsguard/0/{key}"]):
        time.sleep(0.01)


def _leave_together(how: str) -> None:
    """Rank 0 serves the store: it goes last."""
    ranks = range(dist.get_world_size() - (how == "killed"))
    _store().set(f"left/{dist.get_rank()}", "1")
    if dist.get_rank() == 0:
        _store().wait([f"left/{rank}" for rank in ranks])


def voices() -> dict[str, str]:
    """A fault on all ranks, and one on rank 1 only."""
    found = {}
    for name, ranks in (("everywhere", (0, 1)), ("on_one", (1,))):
        said = _listen()
        engine, _ = initialize(config(0, accumulation=3))
        watched = guard(engine)
        for index, (x, y) in enumerate(batches(6)):
            # Away from the boundary, where a backward pass is no collective.
            if dist.get_rank() in ranks and index % 3 == 0:
                engine.backward(engine(x, y))
            engine.backward(engine(x, y))
            engine.step()
            dist.barrier()
        watched.close()
        found[name] = said.getvalue()
        dist.barrier()
    return found


def collectives(every: int) -> dict[str, Any]:
    """Which collectives a training makes, with the guard and without."""
    made: dict[str, list[str]] = {}
    for name in ("bare", "guarded"):
        engine, _ = initialize(config(0, accumulation=2))
        watched = guard(engine, every=every or None) if name == "guarded" else None
        calls: list[str] = []
        with _counted(calls):
            for x, y in batches(24, dist.get_rank()):
                engine.backward(engine(x, y))
                engine.step()
        made[name] = sorted(calls, key=lambda call: call == "all_gather")
        assert watched is None or watched.findings == ()
    return {**made, "steps": engine.global_steps}


def _counted(calls: list[str]) -> Any:
    return mock.patch.multiple(
        dist,
        **{
            name: _counting(name, getattr(dist, name), calls)
            for name in ("all_gather", "all_gather_object", "all_reduce", "barrier", "broadcast")
        },
    )


def _counting(name: str, function: Any, calls: list[str]) -> Any:
    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(name)
        return function(*args, **kwargs)

    return counted


def _listen() -> io.StringIO:
    said = io.StringIO()
    logger = logging.getLogger("dsguard.guard")
    logger.handlers = [logging.StreamHandler(said)]
    logger.propagate = False
    return said
