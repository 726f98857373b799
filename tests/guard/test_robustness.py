"""The guard never changes, keeps, slows down or outlives what it watches."""

from __future__ import annotations

import gc
import logging
import subprocess
import sys
import textwrap
import tracemalloc
import weakref
from pathlib import Path
from typing import Any

import pytest

from dsguard import GuardViolation, guard
from dsguard.model.finding import Consequence
from dsguard.runtime.engines.deepspeed_hooks import DeepSpeedHooks
from dsguard.runtime.fingerprint import Fingerprint
from dsguard.runtime.later import Later
from dsguard.runtime.loss_graph import constant_divisors
from dsguard.runtime.moments import Backward, OptimizerStepped, StepCalled
from dsguard.runtime.reporting import Notebook
from dsguard.runtime.rule import all_guard_rules
from dsguard.runtime.rules.several_backwards import several_backwards
from dsguard.runtime.run import Boundary
from dsguard.runtime.watch import Watch

torch = pytest.importorskip("torch")

from tests.guard.fleet import run_on_ranks  # noqa: E402
from tests.guard.stub import MICRO_BATCH, StubEngine, train  # noqa: E402

ROOT = Path(__file__).parent.parent.parent
RUNS = "tests.guard.robust_runs"


class _Failing:
    """A finding's place cannot be asked, whatever rule wants it."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, *args: Any) -> Any:
        self.calls += 1
        raise ZeroDivisionError("planted")


# What the training is, with a guard and without


@pytest.mark.deepspeed
@pytest.mark.parametrize("ranks", [1, 2])
def test_parameters_are_the_same_to_the_bit(ranks: int) -> None:
    for digests in run_on_ranks(ranks, f"{RUNS}:digests"):
        assert len(digests) == 8
        for stage, (bare, guarded) in digests.items():
            assert bare == guarded, stage


@pytest.mark.deepspeed
def test_an_engine_is_left_as_it_was_and_not_kept_alive() -> None:
    (outcomes,) = run_on_ranks(1, f"{RUNS}:traces")
    assert len(outcomes) == 4
    for stage, outcome in outcomes.items():
        assert outcome == {
            "attributes": [],
            "hooks": [],
            "alive": outcome["alive_without"],
            "alive_without": outcome["alive_without"],
        }, stage


# Memory


def test_a_million_micro_steps_leave_no_memory_behind() -> None:
    engine = StubEngine()
    run = guard(engine, on_violation="record")._tap.run
    windows, watch = run.windows, Watch(all_guard_rules(), Notebook("record"))
    backward, step = Backward(run, None, False), StepCalled(run)

    def micro_steps(number: int) -> None:
        for index in range(number):
            windows.forward(index)
            windows.backward(4)
            if index % 500 == 0:  # whatever this is a fault of
                watch.tell(backward)
                watch.tell(step)
            windows.step_returned()
            if index % 4 == 3:
                window = windows.optimizer_step(applied=index % 16 > 3)
                if index % 500 == 3:
                    watch.tell(OptimizerStepped(run, window))

    micro_steps(20_000)
    gc.collect()
    blocks = sys.getallocatedblocks()
    tracemalloc.start()
    try:
        micro_steps(20_000)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        micro_steps(20_000)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after < before + 2_000
    micro_steps(940_000)
    gc.collect()
    assert windows.micro_batches == 1_000_000
    assert sys.getallocatedblocks() - blocks < 500


def test_hooks_leave_no_memory_behind() -> None:
    engine = StubEngine()
    watched = guard(engine, on_violation="raise")
    train(engine, 4_000)
    gc.collect()
    blocks = sys.getallocatedblocks()
    train(engine, 16_000)
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 500
    assert watched.summary().windows == {4: 5_000}


# Faults of the guard


def test_a_rule_that_fails_is_reported_once_and_off(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failing = _Failing()
    monkeypatch.setattr("dsguard.runtime.run.Run.engine_says", failing)
    engine = StubEngine()
    watched = guard(engine)
    with caplog.at_level(logging.INFO, "dsguard.guard"):
        for _ in range(20):
            engine.backward(engine(torch.ones(MICRO_BATCH, 2)))
            engine.backward(engine(torch.ones(MICRO_BATCH, 2)))
            engine.step()
    faults = [f for f in watched.findings if f.code == "DSG900"]
    assert [f.consequence for f in faults] == [Consequence.NOTE] * len(faults)
    by_rule = [f for f in faults if several_backwards.meta.slug in f.message]
    assert len(by_rule) == 1
    assert "ZeroDivisionError: planted" in by_rule[0].message
    assert len([r for r in caplog.records if "several-backwards failed" in r.message]) == 1
    assert engine.global_steps == 5
    assert watched.summary().micro_batches == 40, "the guard goes on counting"


@pytest.mark.parametrize(
    "hook",
    [
        "_before_forward",
        "_before_backward",
        "_before_step",
        "_stepped",
        "_close_window",
        "_after_step",
        "_expect_the_like",
    ],
)
def test_a_hook_that_fails_is_reported_once_and_ends_the_guard(
    hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = _Failing()
    monkeypatch.setattr(DeepSpeedHooks, hook, failing)
    engine = StubEngine()
    watched = guard(engine, on_violation="record")
    train(engine, 20)
    assert failing.calls == 1
    assert [f.code for f in watched.findings] == ["DSG900"]
    assert engine.micro_steps == 20
    assert engine.global_steps == 5
    watched.close()
    assert [f.code for f in watched.findings] == ["DSG900"]


def test_a_hook_on_attaching_that_fails_leaves_the_engine_usable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(DeepSpeedHooks, "_attach_optimizers", _Failing())
    engine = StubEngine()
    watched = guard(engine, on_violation="record")
    train(engine, 8)
    assert engine.global_steps == 2
    assert [f.code for f in watched.findings] == ["DSG900"]


# Ending


def state_of(engine: Any) -> tuple[Any, ...]:
    hooks = engine.optimizer._optimizer_step_post_hooks
    own = {name: value for name, value in vars(engine).items() if not name.endswith("_steps")}
    return own, dict(vars(engine.optimizer)), dict(hooks)


def test_close_restores_everything_and_may_be_called_again() -> None:
    engine = StubEngine()
    before = state_of(engine)
    watched = guard(engine, on_violation="record")
    assert state_of(engine) != before
    train(engine, 5)
    watched.close()
    watched.close()
    assert state_of(engine) == before
    assert [f.rule for f in watched.findings] == ["window-open"]
    train(engine, 4)
    assert watched.summary().micro_batches == 5


def test_close_under_another_wrapper_leaves_a_call_through() -> None:
    engine = StubEngine()
    watched = guard(engine, on_violation="record")
    inner, calls = engine.step, []

    def step() -> None:
        calls.append(1)
        inner()

    engine.step = step
    watched.close()
    train(engine, 4)
    assert len(calls) == 4
    assert engine.global_steps == 1
    assert watched.summary().micro_batches == 0
    assert engine.step is step
    assert [name for name in vars(engine) if callable(vars(engine)[name])] == ["step"]


def test_a_second_guard_replaces_the_first() -> None:
    engine = StubEngine()
    before = state_of(engine)
    first = guard(engine, on_violation="record")
    train(engine, 3)
    second = guard(engine, on_violation="record")
    train(engine, 5)
    assert first.summary().micro_batches == 3
    assert first.findings == ()
    assert second.summary().micro_batches == 5
    second.close()
    assert state_of(engine) == before


def test_an_engine_dies_as_it_would_without_the_guard() -> None:
    gc.collect()
    gc.disable()
    try:
        engine = StubEngine()
        parameter = weakref.ref(engine.module.weight)
        watched = guard(engine, on_violation="record")
        train(engine, 6)
        alive = weakref.ref(engine)
        del engine
        assert alive() is None
        assert parameter() is None, "the guard keeps a parameter"
        assert [f.rule for f in watched.findings] == ["window-open"]
        watched.close()
    finally:
        gc.enable()


def test_a_guard_that_nobody_keeps_goes_on() -> None:
    engine = StubEngine()
    found: list[dict[str, Any]] = []
    guard(engine, on_violation="record", record=found.append)
    gc.collect()
    train(engine, 8)
    assert [record["step"] for record in found] == [1, 2]


def test_context_manager() -> None:
    engine = StubEngine()
    before = state_of(engine)
    with guard(engine, on_violation="record") as watched:
        train(engine, 6)
    assert state_of(engine) == before
    assert [f.rule for f in watched.findings] == ["window-open"]

    def interrupted() -> None:
        nonlocal watched
        with guard(engine, on_violation="record") as watched:
            train(engine, 1)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert state_of(engine) == before
    assert watched.findings == ()


def test_a_violation_is_raised_outside_autograd_and_leaves_the_engine_consistent() -> None:
    engine = StubEngine()
    watched = guard(engine, on_violation="raise")
    x = torch.ones(MICRO_BATCH, 2)
    for _ in range(4):
        engine.backward(engine(x))
    with pytest.raises(GuardViolation, match=r"engine.step\(\) is called after 4") as raised:
        engine.step()
    assert raised.value.finding.rule == "accumulated-twice"
    assert engine.micro_steps == 0
    watched.close()
    engine.zero_grad()
    train(engine, 8)
    assert engine.global_steps == 2


def test_what_is_found_inside_autograd_is_raised_after_it() -> None:
    engine = StubEngine()
    guard(engine, on_violation="raise")
    x = torch.ones(MICRO_BATCH, 2)
    inside: list[str] = []

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, loss: Any) -> Any:
            return loss.clone()

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            inside.append("reached")
            return gradient / 4

    def loop() -> None:
        for _ in range(4):
            engine.backward(Scaled.apply(engine(x)))
            inside.append("returned")
            engine.step()

    with pytest.raises(GuardViolation) as raised:
        loop()
    assert raised.value.finding.rule == "loss-divided-twice"
    assert inside[:2] == ["reached", "returned"], "raised inside autograd"


# Ranks


@pytest.mark.deepspeed
@pytest.mark.parametrize(
    ("ranks", "how"), [(2, "never"), (3, "never"), (2, "late"), (3, "killed"), (2, "twice")]
)
def test_a_rank_that_does_not_attach_as_the_others(ranks: int, how: str) -> None:
    """The last rank stands apart; nobody hangs, and the training of the others is their own."""
    dead = (ranks - 1,) if how == "killed" else ()
    answers = run_on_ranks(ranks, f"{RUNS}:apart", may_die=dead, how=how)
    present = [answer for answer in answers if answer is not None]
    assert len(present) == ranks - len(dead)
    for answer in present:
        assert answer["steps"] == 4
    found = present[0]["found"]
    if how == "twice":
        assert found == []
    else:
        assert [rule for rule, _ in found] == ["rank-not-attached"]
        assert f"rank {ranks - 1} attached no guard within 2 seconds" in found[0][1]
        assert sum(said.count("rank-not-attached") for said in _said(present)) == 1


@pytest.mark.deepspeed
def test_one_voice() -> None:
    first, second = run_on_ranks(2, f"{RUNS}:voices")
    assert first["everywhere"].count("several-backwards") == 1
    assert "[rank" not in first["everywhere"]
    assert second["everywhere"] == ""
    assert first["on_one"] == ""
    assert second["on_one"].count("several-backwards") == 1
    assert second["on_one"].startswith("[rank 1] ")


@pytest.mark.deepspeed
@pytest.mark.parametrize("every", [0, 1, 3])
def test_collectives_are_made_where_they_were_asked_for_and_nowhere_else(every: int) -> None:
    for answer in run_on_ranks(2, f"{RUNS}:collectives", every=every):
        assert answer["steps"] == 12
        expected = 12 // every if every else 0
        assert answer["guarded"] == answer["bare"] + ["all_gather"] * expected


def _said(answers: list[dict[str, Any]]) -> list[str]:
    return [answer["said"] for answer in answers]


# The end of the process


SCRIPT = """
    import sys
    import torch
    from dsguard import guard
    from tests.guard.stub import StubEngine, train

    def main():
        engine = StubEngine()
        guard(engine)
        train(engine, 6)
        {end}

    main()
"""


def child(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("end", "code", "told"),
    [
        ("pass", 0, True),
        ("globals()['kept'] = engine", 0, True),
        ("globals()['kept'] = engine; sys.exit(0)", 0, True),
        ("globals()['kept'] = engine; 1 / 0", 1, False),
        ("1 / 0", 1, False),
        ("sys.exit(3)", 3, True),
    ],
)
def test_a_window_that_is_open_at_the_end_of_the_process(end: str, code: int, told: bool) -> None:
    done = child(SCRIPT.format(end=end))
    assert done.returncode == code, done.stderr
    assert ("window-open" in done.stderr) == told, done.stderr


# Imports


def test_importing_the_guard_imports_no_framework_and_no_package_of_the_command_line() -> None:
    done = child(
        """
        import sys
        import dsguard
        from dsguard import guard
        import dsguard.runtime
        heavy = {"torch", "deepspeed", "numpy", "pydantic", "typer", "rich", "packaging"}
        print(sorted(heavy & {name.partition(".")[0] for name in sys.modules}))
        """
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_the_guard_works_without_the_packages_of_the_command_line() -> None:
    done = child(
        """
        import sys
        for name in ("pydantic", "typer", "rich", "packaging", "deepspeed"):
            sys.modules[name] = None
        from dsguard import guard
        from tests.guard.stub import StubEngine, train
        engine = StubEngine()
        guarded = guard(engine, expect={"gradient_accumulation_steps": 8})
        train(engine, 5)
        guarded.close()
        print([f.code for f in guarded.findings], guarded.summary().micro_batches)
        """
    )
    assert done.stdout.strip() == "['DSG901', 'DSG925'] 5", done.stderr


# Devices


class OnDevice:
    """A tensor of a device that must not be waited for."""

    ndim = 0
    grad_fn = None

    def __init__(self, kind: str = "cuda") -> None:
        self.device = torch.device("meta") if kind == "meta" else _Device(kind)

    def detach(self) -> OnDevice:
        return self

    def reshape(self, shape: tuple[int, ...]) -> OnDevice:
        return self

    def __float__(self) -> float:
        raise AssertionError("waited for the device")

    item = tolist = __bool__ = __int__ = cpu = __float__


class _Device:
    def __init__(self, kind: str) -> None:
        self.type = kind


def test_a_number_of_a_device_is_read_when_it_has_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    ready, values = [], []

    class Landed:
        def copy_(self, source: Any, non_blocking: bool) -> None:
            assert non_blocking

        def __float__(self) -> float:
            assert ready
            return 2.0

    class Event:
        def record(self) -> None:
            pass

        def query(self) -> bool:
            return bool(ready)

        def synchronize(self) -> None:
            raise AssertionError("waited for the device")

    monkeypatch.setattr(torch, "empty", lambda *a, **k: Landed())
    monkeypatch.setattr(torch.cuda, "Event", Event)
    later = Later()
    for _ in range(20):
        later.read(OnDevice(), values.append)
    later.arrive()
    assert values == []
    ready.append(1)
    later.arrive()
    assert values == [2.0] * 8, "a device that never answers fills no memory"


def test_a_device_without_events_is_not_asked() -> None:
    later = Later()
    later.read(OnDevice("xpu"), lambda value: pytest.fail("read"))
    later.arrive()


def test_a_divisor_on_a_device_is_not_read() -> None:
    weight = torch.ones((), device="meta", requires_grad=True)
    assert constant_divisors(weight / torch.full((), 4.0, device="meta")) == ()
    assert constant_divisors(weight / 4) == (4,)
    assert constant_divisors(torch.ones((), requires_grad=True) / torch.tensor(4.0)) == (4,)


def test_parameters_are_compared_on_their_device() -> None:
    asked: list[Any] = []

    class Asked(Later):
        def read(self, tensor: Any, then: Any) -> None:
            asked.append(tensor)

    parameter = torch.nn.Parameter(torch.zeros(100))
    fingerprint = Fingerprint([parameter], lambda p: p, Asked())
    fingerprint.look()
    fingerprint.look()
    assert [tensor.dim() for tensor in asked] == [0], "one number, and nobody has read it here"


def test_boundaries_of_the_stub_are_those_of_the_engine() -> None:
    engine = StubEngine()
    watched = guard(engine, on_violation="record")
    train(engine, 8)
    assert watched._tap.run.boundary is Boundary.ENGINE
    assert watched.summary().windows == {4: 2}
    assert watched.findings == ()
