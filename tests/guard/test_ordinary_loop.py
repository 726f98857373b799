"""A loop without DeepSpeed is counted on the spot, too; see ``test_ordinary.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import pytest

from dsguard import Guard, guard

torch = pytest.importorskip("torch")
from torch.utils.checkpoint import checkpoint  # noqa: E402

from dsguard.runtime.engines import gradient_sync  # noqa: E402
from dsguard.runtime.engines.data_parallel_hooks import DataParallelHooks  # noqa: E402
from dsguard.runtime.engines.data_parallel_view import DataParallelView  # noqa: E402
from dsguard.runtime.ordinary import NOTHING  # noqa: E402
from dsguard.runtime.windows import Windows  # noqa: E402
from tests.guard.at_random import at_each_place, at_random, state  # noqa: E402

pytestmark = pytest.mark.deepspeed

ACCUMULATION, SAMPLES, STEADY, SEEDS = 4, 2, 8, 10


class Refused(torch.autograd.Function):  # type: ignore[misc]
    """What a backward pass fails in."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(context: Any, gradient: Any) -> Any:
        raise ValueError("no memory")


class Net(torch.nn.Module):
    """Fails, or hides what it returns, where that is asked for."""

    trips = hides = False

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def forward(self, x: Any, *more: Any, mask: Any = None) -> Any:
        if self.trips:
            raise ValueError("a bad sample")
        output = self.layer(x() if callable(x) else x)
        return iter([output]) if self.hides else output


class DistributedDataParallel(torch.nn.Module):
    """As PyTorch's, as far as a guard looks at it."""

    def __init__(self) -> None:
        super().__init__()
        self.module = Net()
        self.require_backward_grad_sync = True

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        self.require_backward_grad_sync = False
        yield
        self.require_backward_grad_sync = True


class SGD(torch.optim.SGD):
    """Fails where that is asked for."""

    trips = False

    def step(self, closure: Any = None) -> Any:
        if self.trips:
            raise ValueError("no network")
        return super().step(closure)


class Loop:
    """A loop that accumulates, and what may happen to it."""

    def __init__(self, parallel: bool, always_synchronised: bool) -> None:
        torch.manual_seed(0)
        self.model = DistributedDataParallel() if parallel else Net()
        self.net = self.model.module if parallel else self.model
        self.optimizer = SGD(self.model.parameters(), lr=0.01)
        self.synchronised = (True,) * ACCUMULATION
        if not always_synchronised:
            self.synchronised = (False,) * (ACCUMULATION - 1) + (True,)
        self.done = 0

    def batch(self, samples: int = SAMPLES) -> Any:
        return torch.ones(samples, 3, requires_grad=True)

    def output(self) -> Any:
        return self.model(self.batch())

    def backward(self, loss: Callable[[], Any] | None = None, synchronised: bool = True) -> None:
        quiet = not synchronised and self.model is not self.net
        with self.model.no_sync() if quiet else nullcontext():
            ((loss or self.output)().sum() / ACCUMULATION).backward()
        self.done += 1

    def step(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.done = 0

    def micro_batch(self, loss: Callable[[], Any] | None = None) -> None:
        self.backward(loss, self.synchronised[min(self.done, ACCUMULATION - 1)])
        if self.done >= ACCUMULATION:
            self.step()

    def to_the_step(self) -> None:
        while self.done < ACCUMULATION:
            self.backward(synchronised=self.synchronised[self.done])

    def window(self, synchronised: Iterable[bool]) -> None:
        self.to_the_step()
        self.step()
        for each in synchronised:
            self.backward(synchronised=each)
        self.step()

    # What may happen

    def without_gradient(self) -> None:
        with torch.no_grad():
            self.output()

    def evaluate(self) -> None:
        self.model.eval()
        self.output()
        self.model.train()

    def train_in_evaluation(self) -> None:
        self.model.eval()
        self.micro_batch()
        self.model.train()

    def another_size(self) -> None:
        self.micro_batch(lambda: self.model(self.batch(3)))

    def by_keyword(self) -> None:
        self.micro_batch(lambda: self.model(x=self.batch()))

    def with_a_mask(self) -> None:
        self.micro_batch(lambda: self.model(self.batch(), mask=self.batch(5)))

    def several(self) -> None:
        self.micro_batch(lambda: self.output() + self.output())

    def one_more(self) -> None:
        self.micro_batch(lambda: (self.output(), self.output())[0])

    def left_out(self) -> None:
        self.output()

    def left_out_before_the_step(self) -> None:
        self.to_the_step()
        self.output()
        self.step()

    def passed_by(self) -> None:
        """One of the training comes to nothing, and one of an evaluation is trained on."""
        self.output()
        self.train_in_evaluation()

    def twice(self) -> None:
        loss = self.output().sum() / ACCUMULATION
        loss.backward(retain_graph=True)
        self.micro_batch(lambda: loss)

    def late(self) -> None:
        """A pass through a forward that another one was begun after."""
        first, second = self.output(), self.output()
        self.backward(lambda: second)
        self.backward(lambda: first)

    def again_in_backward(self) -> None:
        self.micro_batch(lambda: checkpoint(self.model, self.batch(), use_reentrant=False))

    def again_in_reentrant_backward(self) -> None:
        self.micro_batch(lambda: checkpoint(self.model, self.batch(), use_reentrant=True))

    def penalty(self) -> None:
        batch = self.batch()
        output = self.model(batch)
        (gradient,) = torch.autograd.grad(output.sum(), batch, create_graph=True)
        self.micro_batch(lambda: output.sum() + gradient.pow(2).sum())

    def asked_only(self) -> None:
        torch.autograd.grad(self.output().sum(), list(self.model.parameters()))

    def early(self) -> None:
        self.step()

    def too_late(self) -> None:
        self.done -= 1

    def synchronised_first(self) -> None:
        self.window((True, False, False, False))

    def synchronised_twice(self) -> None:
        self.window((False, False, True, True))

    def unsynchronised(self) -> None:
        self.backward(synchronised=False)

    def synchronised_once_more(self) -> None:
        self.backward(synchronised=True)

    def cleared(self) -> None:
        self.optimizer.zero_grad()

    def cleared_unseen(self) -> None:
        self.model.zero_grad()

    def cleared_before_the_step(self) -> None:
        self.to_the_step()
        self.model.zero_grad()
        self.step()

    def partly_cleared(self) -> None:
        self.net.layer.weight.grad = None

    def hidden(self) -> None:
        self.net.hides = True
        self.output()
        self.net.hides = False

    def hidden_before_the_step(self) -> None:
        self.to_the_step()
        self.hidden()
        self.step()

    def in_a_closure(self) -> None:
        def closure() -> Any:
            self.optimizer.zero_grad()
            loss = self.output().sum()
            loss.backward()
            return loss

        self.optimizer.step(closure)
        self.done = 0

    def the_last_in_a_closure(self) -> None:
        self.to_the_step()
        self.step()
        for place in range(ACCUMULATION - 1):
            self.backward(synchronised=self.synchronised[place])
        self.optimizer.step(self.backward)
        self.optimizer.zero_grad()
        self.done = 0

    def a_closure_without_a_pass(self) -> None:
        self.to_the_step()
        self.optimizer.step(lambda: None)
        self.optimizer.zero_grad()
        self.done = 0

    def a_closure_that_clears(self) -> None:
        self.to_the_step()
        self.optimizer.step(self.model.zero_grad)
        self.done = 0

    def scaled(self) -> None:
        self.optimizer.found_inf = None
        while self.done:
            self.micro_batch()
        del self.optimizer.found_inf

    def forward_fails(self) -> None:
        self.net.trips = True
        with suppress(ValueError):
            self.output()
        self.net.trips = False

    def backward_fails(self) -> None:
        with suppress(ValueError):
            self.backward(lambda: Refused.apply(self.output()))

    def backward_fails_inside(self) -> None:
        def loss() -> Any:
            return self.model(Refused.apply(self.batch()))

        with suppress(ValueError):
            self.backward(loss)

    def step_fails(self) -> None:
        self.optimizer.trips = True
        with suppress(ValueError):
            self.step()
        self.optimizer.trips = False

    def last_step_fails(self) -> None:
        self.to_the_step()
        self.step_fails()


ODD = [name for name in vars(Loop) if not name.startswith("_")]
ODD = ODD[ODD.index("without_gradient") :]


KINDS = pytest.mark.parametrize(
    ("parallel", "ranks", "always"),
    [(False, 1, True), (True, 1, True), (True, 1, False), (True, 2, True), (True, 2, False)],
)


def guarded(loop: Loop, **asked: int) -> Guard:
    asked = {"gradient_accumulation_steps": ACCUMULATION, **asked}
    return guard(loop.model, optimizer=loop.optimizer, expect=asked, on_violation="record")


def steady(loop: Loop, windows: int = STEADY) -> None:
    for _ in range(windows * ACCUMULATION):
        loop.micro_batch()


def run(act: Callable[[Loop, Guard], Any], parallel: bool, always: bool) -> tuple[Any, ...]:
    """What ``act`` has seen in a loop that has run for a while, and what is counted at last."""
    loop = Loop(parallel, always)
    with guarded(loop, micro_batch_size=SAMPLES) as watched:
        steady(loop)
        seen = act(loop, watched)
        return seen, state(watched), watched.summary(), watched.counts


@pytest.fixture
def same_either_way(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Asserts that it is the same where each micro-batch is looked at."""

    def compare(
        act: Callable[[Loop, Guard], Any], parallel: bool, ranks: int, always: bool
    ) -> None:
        monkeypatch.setattr(gradient_sync, "_size", lambda group: ranks)
        with monkeypatch.context() as looking:
            looking.setattr(DataParallelHooks, "_expect_the_like", lambda hooks, window: None)
            found = run(act, parallel, always)
        assert run(act, parallel, always) == found

    return compare


@pytest.mark.parametrize("odd", ODD)
@KINDS
def test_anything_at_any_place_of_a_window(
    odd: str, parallel: bool, ranks: int, always: bool, same_either_way: Callable[..., None]
) -> None:
    def act(loop: Loop, watched: Guard) -> Any:
        return at_each_place(watched, ACCUMULATION, loop.micro_batch, getattr(loop, odd))

    same_either_way(act, parallel, ranks, always)


@pytest.mark.parametrize("seed", range(SEEDS))
@KINDS
def test_anything_after_anything(
    seed: int, parallel: bool, ranks: int, always: bool, same_either_way: Callable[..., None]
) -> None:
    def act(loop: Loop, watched: Guard) -> Any:
        return at_random(watched, seed, loop.micro_batch, [getattr(loop, name) for name in ODD])

    same_either_way(act, parallel, ranks, always)


def looked_at(loop: Loop, monkeypatch: pytest.MonkeyPatch, **asked: int) -> set[int]:
    """The windows out of 120 of which a micro-batch was looked at."""
    seen = set()
    told = Windows.backward

    def backward(windows: Windows, *args: Any) -> None:
        told(windows, *args)
        if watched._tap.run.ordinary.awaits == NOTHING:
            seen.add(windows.optimizer_steps + 1)

    monkeypatch.setattr(Windows, "backward", backward)
    with guarded(loop, **asked) as watched:
        steady(loop, 120)
    assert watched.summary().windows == {ACCUMULATION: 120}
    return seen


@KINDS
def test_the_first_windows_and_a_sample_of_the_others_are_looked_at(
    parallel: bool, ranks: int, always: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gradient_sync, "_size", lambda group: ranks)
    loop = Loop(parallel, always)
    windows = looked_at(loop, monkeypatch, micro_batch_size=SAMPLES)
    if always and ranks > 1:  # each step is told that once would do
        assert windows == set(range(1, 121))
    else:
        assert windows == {1, 2, 3, 51, 101}


@pytest.mark.parametrize("windows", [0, STEADY])
@pytest.mark.parametrize("place", range(ACCUMULATION))
@KINDS
def test_a_pass_that_fails_is_none(
    place: int,
    windows: int,
    parallel: bool,
    ranks: int,
    always: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gradient_sync, "_size", lambda group: ranks)
    loop = Loop(parallel, always)
    with guarded(loop, micro_batch_size=SAMPLES) as watched:
        steady(loop, windows)
        for _ in range(place):
            loop.micro_batch()
        loop.backward_fails_inside()
        assert loop.done == place
        for _ in range(ACCUMULATION - place):
            loop.micro_batch()
        steady(loop, 2)
    assert watched.summary().windows == {ACCUMULATION: windows + 3}
    assert watched.summary().samples_per_step == {ACCUMULATION * SAMPLES * ranks: windows + 3}
    assert set(watched.counts) <= {"sync-off-boundary"}


@pytest.mark.parametrize("windows", [0, STEADY])
def test_a_pass_that_fails_and_is_tried_once_more(
    windows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = Loop(False, True)
    with guarded(loop, micro_batch_size=SAMPLES) as watched:
        steady(loop, windows)
        loss = loop.model(Refused.apply(loop.batch())).sum() / ACCUMULATION
        with pytest.raises(ValueError, match="no memory"):
            loss.backward(retain_graph=True)
        monkeypatch.setattr(Refused, "backward", staticmethod(lambda context, gradient: gradient))
        loop.backward(lambda: loss)
        while loop.done:
            loop.micro_batch()
    assert watched.summary().windows == {ACCUMULATION: windows + 1}
    assert not watched.counts


def test_a_pass_that_fails_before_gradients_are_cleared() -> None:
    loop = Loop(False, True)
    with guarded(loop, micro_batch_size=SAMPLES) as watched:
        steady(loop)
        loop.backward_fails_inside()
        loop.optimizer.zero_grad()
        steady(loop, 2)
    assert watched.summary().windows == {ACCUMULATION: STEADY + 2}
    assert not watched.counts


def test_batches_of_a_size_that_nobody_has_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(looked_at(Loop(False, True), monkeypatch)) < 10


def test_batches_that_do_not_show_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(False, True)
    rows = loop.batch()
    monkeypatch.setattr(loop, "batch", lambda: lambda: rows)
    assert len(looked_at(loop, monkeypatch)) == 120


def test_gradients_that_are_kept_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DataParallelView, "keeps_gradients", lambda view: False)
    loop = Loop(False, True)
    for parameter in loop.model.parameters():
        parameter.register_post_accumulate_grad_hook(lambda it: setattr(it, "grad", None))
    assert len(looked_at(loop, monkeypatch)) < 10


def test_a_parameter_that_is_not_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(False, True)
    loop.net.layer.weight.requires_grad_(False)
    assert len(looked_at(loop, monkeypatch)) < 10


def test_an_optimizer_whose_step_calls_that_of_its_base_class(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = Loop(False, True)
    torch.optim.SGD(loop.model.parameters())  # puts PyTorch's hooks on the base class
    assert len(looked_at(loop, monkeypatch)) < 10
