"""The guard on a loop of one process: what is a micro-batch, and what the model is left with."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from dsguard import GuardViolation, guard

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.deepspeed

STEPS = 4
EXPECT = {"gradient_accumulation_steps": STEPS, "micro_batch_size": 2}


class Net(torch.nn.Module):
    """Two layers, with a checkpoint around the first where ``reentrant`` is not None."""

    def __init__(self, reentrant: bool | None = None) -> None:
        super().__init__()
        self.first = torch.nn.Linear(6, 6)
        self.second = torch.nn.Linear(6, 1)
        self.reentrant = reentrant

    def forward(self, x: Any) -> Any:
        if self.reentrant is None:
            hidden = self.first(x)
        else:
            from torch.utils.checkpoint import checkpoint

            hidden = checkpoint(self.first, x, use_reentrant=self.reentrant)
        return self.second(torch.tanh(hidden))


class Loop:
    """A model, its optimizer and its guard."""

    def __init__(self, model: Any = None, expect: Any = EXPECT, **arguments: Any) -> None:
        torch.manual_seed(0)
        self.model = Net() if model is None else model
        ours = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.optimizer = arguments.pop("optimizer", ours)
        arguments.setdefault("on_violation", "record")
        self.guard = guard(self.model, optimizer=self.optimizer, expect=expect, **arguments)

    def batch(self) -> Any:
        return torch.randn(2, 6, requires_grad=True)

    def loss(self) -> Any:
        return self.model(self.batch()).pow(2).mean() / STEPS

    def train(self, windows: int = 2, micro_batch: Callable[[], None] | None = None) -> None:
        for _ in range(windows):
            for _ in range(STEPS):
                if micro_batch is not None:
                    micro_batch()
                else:
                    self.loss().backward()
            self.step()

    def step(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad()

    def found(self) -> dict[str, str]:
        self.guard.close()
        return {finding.rule: finding.severity.value for finding in self.guard.findings}

    def windows(self) -> dict[int, int]:
        return dict(self.guard.summary().windows)


def healthy(loop: Loop, windows: int = 2) -> None:
    assert loop.found() == {}
    assert loop.windows() == {STEPS: windows}
    assert dict(loop.guard.summary().samples_per_step) == {2 * STEPS: windows}


def test_a_plain_model_in_one_process() -> None:
    loop = Loop()
    loop.train()
    healthy(loop)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing(reentrant: bool) -> None:
    loop = Loop(Net(reentrant))
    loop.train()
    healthy(loop)


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_around_the_whole_model(reentrant: bool) -> None:
    from torch.utils.checkpoint import checkpoint

    loop = Loop()

    def micro_batch() -> None:
        output = checkpoint(loop.model, loop.batch(), use_reentrant=reentrant)
        (output.pow(2).mean() / STEPS).backward()

    loop.train(micro_batch=micro_batch)
    healthy(loop)


def test_a_gradient_penalty_is_no_micro_batch() -> None:
    loop = Loop()

    def micro_batch() -> None:
        batch = loop.batch()
        output = loop.model(batch)
        (gradient,) = torch.autograd.grad(output.sum(), batch, create_graph=True)
        ((output.pow(2).mean() + gradient.pow(2).sum()) / STEPS).backward()

    loop.train(micro_batch=micro_batch)
    healthy(loop)


def test_gradients_of_all_parameters_that_are_only_asked_for_are_no_micro_batch() -> None:
    loop = Loop()

    def micro_batch() -> None:
        torch.autograd.grad(loop.loss(), list(loop.model.parameters()))

    micro_batch()
    assert loop.guard.summary().micro_batches == 0
    loop.loss().backward(inputs=list(loop.model.parameters()))
    assert loop.guard.summary().micro_batches == 1


def test_a_gradient_of_the_output_that_is_only_asked_for_is_no_micro_batch() -> None:
    loop = Loop()
    for counted in range(STEPS):
        output = loop.model(loop.batch())
        (gradient,) = torch.autograd.grad(output.pow(2).mean(), output, retain_graph=True)
        assert loop.guard.summary().micro_batches == counted
        output.backward(gradient / STEPS)
    loop.step()
    healthy(loop, windows=1)


def test_evaluation_and_forwards_without_gradients_are_not_counted() -> None:
    loop = Loop()
    for _ in range(2):
        loop.train(1)
        loop.model.eval()
        with torch.no_grad():
            loop.model(torch.randn(16, 6))
        loop.model(torch.randn(16, 6))  # careless, and harmless
        loop.model.train()
        with torch.no_grad():
            loop.model(torch.randn(16, 6))
    healthy(loop)


def test_an_evaluation_in_mid_window_is_noted() -> None:
    loop = Loop()
    loop.loss().backward()
    loop.model.eval()
    with torch.no_grad():
        loop.model(torch.randn(16, 6))
    assert {f.rule: f.severity.value for f in loop.guard.findings} == {"window-open": "info"}


def test_a_model_that_is_trained_in_evaluation_mode() -> None:
    loop = Loop()
    loop.model.eval()
    loop.train()
    healthy(loop)


@pytest.mark.parametrize("how", ["compiled", "in place", "inside", "guarded when compiled"])
def test_compiled_models_have_one_graph(how: str) -> None:
    import torch._dynamo
    from torch._dynamo.testing import CompileCounter

    torch._dynamo.reset()
    counter = CompileCounter()
    model = Net()
    loop = Loop(
        torch.compile(model, backend=counter, fullgraph=True) if "guarded" in how else model
    )
    called: Any = loop.model
    if how == "compiled":
        called = torch.compile(model, backend=counter, fullgraph=True)
    elif how == "in place":
        model.compile(backend=counter, fullgraph=True)
    elif how == "inside":
        called = torch.compile(torch.nn.Sequential(model), backend=counter, fullgraph=True)
    loop.train(3, lambda: (called(loop.batch()).pow(2).mean() / STEPS).backward())
    assert counter.frame_count == 1
    assert loop.found() == {}
    # Inside another graph nothing is seen, and so nothing is judged.
    assert loop.windows() == ({} if how == "inside" else {STEPS: 3})


def test_outputs_that_are_no_tensors() -> None:
    class Named(Net):
        def forward(self, x: Any) -> Any:
            return {"hidden": None, "logits": [super().forward(x)]}

    loop = Loop(Named())

    def micro_batch() -> None:
        (loop.model(loop.batch())["logits"][0].pow(2).mean() / STEPS).backward()

    loop.train(micro_batch=micro_batch)
    healthy(loop)


def test_an_output_that_hides_its_tensors_is_said() -> None:
    class Opaque:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

    class Hiding(Net):
        def forward(self, x: Any) -> Any:
            return Opaque(super().forward(x))

    loop = Loop(Hiding())
    loop.train(micro_batch=lambda: loop.model(loop.batch()).inner.mean().backward())
    assert loop.found() == {"step-without-backward": "info"}
    assert "Opaque" in loop.guard.findings[0].message


def test_a_step_without_a_backward_pass() -> None:
    loop = Loop(expect=None)
    for _ in range(3):
        loop.loss()
        loop.step()
    assert loop.found() == {"step-without-backward": "warning"}


@pytest.mark.parametrize("expect", [EXPECT, None])
def test_a_scaler_that_skips_a_step(expect: Any) -> None:
    loop = Loop(expect=expect)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    for window in range(3):
        for _ in range(STEPS):
            scaled = scaler.scale(loop.loss() * (float("inf") if window == 1 else 1.0))
            scaled.backward()
        before = loop.model.first.weight.detach().clone()
        scaler.step(loop.optimizer)
        scaler.update()
        loop.optimizer.zero_grad()
        assert torch.equal(before, loop.model.first.weight) == (window == 1)
    assert loop.found() == {}
    summary = loop.guard.summary()
    if expect is None:  # nobody says that the window was whole
        assert (summary.optimizer_steps, summary.skipped_steps) == (2, 0)
        assert loop.windows() == {STEPS: 2}
    else:
        assert (summary.optimizer_steps, summary.skipped_steps) == (3, 1)
        assert loop.windows() == {STEPS: 3}


def test_without_an_expectation_no_window_is_wrong() -> None:
    loop = Loop(expect=None)
    for size in (1, 3, 2, 5):
        for _ in range(size):
            loop.loss().backward()
        loop.step()
    assert loop.found() == {}
    assert loop.windows() == {1: 1, 2: 1, 3: 1, 5: 1}


def test_a_short_window_at_the_end_of_an_epoch_is_noted() -> None:
    loop = Loop()
    loop.train()
    loop.loss().backward()
    loop.step()
    assert loop.found() == {"short-window": "info"}


def test_a_rest_that_is_thrown_away_is_a_warning_once_windows_were_whole() -> None:
    loop = Loop(on_violation="raise")
    loop.train()
    loop.loss().backward()
    loop.optimizer.zero_grad()  # the next epoch begins
    loop.train()
    assert loop.found() == {"gradients-zeroed": "warning"}
    assert loop.windows() == {STEPS: 4}


@pytest.mark.parametrize("rest", [0, 3])
def test_micro_batches_that_wait_at_the_end(rest: int) -> None:
    loop = Loop()
    loop.train()
    for _ in range(rest):
        loop.loss().backward()
    assert loop.found() == ({"window-open": "warning"} if rest else {})
    assert loop.guard.summary().pending_micro_batches == rest


def test_a_step_that_never_comes() -> None:
    loop = Loop(on_violation="raise")
    for _ in range(4 * STEPS + 1):
        loop.loss().backward()
    # It was found inside autograd, where nothing is raised.
    with pytest.raises(GuardViolation, match=r"optimizer.step\(\) was not called"):
        loop.loss()


def test_optimizers_that_call_a_closure() -> None:
    loop = Loop(expect={"gradient_accumulation_steps": 1})
    loop.guard.close()
    lbfgs = torch.optim.LBFGS(loop.model.parameters(), max_iter=4)
    loop.guard = guard(
        loop.model,
        optimizer=lbfgs,
        expect={"gradient_accumulation_steps": 1},
        on_violation="record",
    )

    for _ in range(2):
        batch = loop.batch().detach()

        def closure(batch: Any = batch) -> Any:
            lbfgs.zero_grad()
            loss = loop.model(batch).pow(2).mean()
            loss.backward()
            return loss

        lbfgs.step(closure)
    assert loop.found() == {}
    assert loop.windows() == {1: 2}


def test_the_last_micro_batch_in_a_closure() -> None:
    loop = Loop()
    for _ in range(2):
        for _ in range(STEPS - 1):
            loop.loss().backward()

        def closure() -> Any:
            loss = loop.loss()
            loss.backward()
            return loss

        loop.optimizer.step(closure)
        loop.optimizer.zero_grad()
    healthy(loop)


def test_a_scheduler_made_afterwards() -> None:
    loop = Loop()
    scheduler = torch.optim.lr_scheduler.StepLR(loop.optimizer, 1, 0.5)
    loop.train(1)
    scheduler.step()
    loop.train(1)
    assert loop.optimizer.param_groups[0]["lr"] == 0.05
    healthy(loop)


def test_weights_that_never_move() -> None:
    loop = Loop(optimizer=torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1))
    loop.train(6)
    assert loop.found() == {
        "optimizer-of-other-parameters": "warning",
        "parameters-not-moving": "warning",
    }


# What the model is left with


def test_copies_of_a_guarded_model_are_free_of_the_guard() -> None:
    loop = Loop()
    stream = io.BytesIO()
    torch.save(loop.model, stream)
    assert b"dsguard" not in stream.getvalue()
    assert b"dsguard" not in pickle.dumps(loop.model)
    stream.seek(0)
    for twin in (
        copy.deepcopy(loop.model),
        pickle.loads(pickle.dumps(loop.model)),
        torch.load(stream, weights_only=False),
    ):
        twin(loop.batch()).sum().backward()
    pickle.dumps(loop.optimizer)
    copy.deepcopy(loop.optimizer)
    assert loop.guard.summary().micro_batches == 0
    loop.train()
    healthy(loop)


def test_nothing_is_left_after_close() -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before = [
        {name: copy.copy(value) for name, value in vars(owner).items()}
        for owner in (model, optimizer)
    ]
    attached = guard(model, optimizer=optimizer, expect=EXPECT, on_violation="record")
    attached.close()
    for owner, attributes in zip((model, optimizer), before, strict=True):
        assert vars(owner).keys() == attributes.keys()
    for name in ("_forward_hooks", "_forward_hooks_with_kwargs"):
        assert not vars(model)[name]
    assert not vars(optimizer)["_optimizer_step_pre_hooks"]
    assert not vars(optimizer)["_optimizer_step_post_hooks"]


def test_a_guard_keeps_no_model_alive() -> None:
    loop = Loop()
    loop.train()
    model, optimizer = weakref.ref(loop.model), weakref.ref(loop.optimizer)
    parameter = weakref.ref(loop.model.first.weight)
    kept = loop.guard
    del loop
    gc.collect()
    assert (model(), optimizer(), parameter()) == (None, None, None)
    assert kept.findings == ()


def test_a_second_guard_replaces_the_first() -> None:
    loop = Loop()
    first = loop.guard
    loop.guard = guard(loop.model, optimizer=loop.optimizer, expect=EXPECT, on_violation="record")
    loop.train()
    healthy(loop)
    assert first.summary().micro_batches == 0


# What guard() refuses


def test_a_module_needs_its_optimizer() -> None:
    with pytest.raises(TypeError, match=r"say guard\(model, optimizer=...\)"):
        guard(Net())


def test_an_optimizer_is_one_of_pytorch() -> None:
    with pytest.raises(TypeError, match=r"takes a torch.optim.Optimizer, not a str"):
        guard(Net(), optimizer="adam")


def test_an_optimizer_in_a_wrapper_is_found() -> None:
    accelerate = pytest.importorskip("accelerate")
    model = Net()
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    accelerate.Accelerator(cpu=True)
    wrapped = accelerate.optimizer.AcceleratedOptimizer(inner)
    with guard(model, optimizer=wrapped, expect={"micro_batch_size": 2}) as attached:
        model(torch.randn(2, 6)).sum().backward()
        wrapped.step()
        wrapped.zero_grad()
    assert dict(attached.summary().windows) == {1: 1}


def test_samples_that_do_not_divide() -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    expect = {"train_batch_size": 7, "micro_batch_size": 2}
    with pytest.raises(ValueError, match="no whole gradient_accumulation_steps"):
        guard(model, optimizer=optimizer, expect=expect)


def test_something_else_altogether() -> None:
    with pytest.raises(TypeError, match="cannot guard a list"):
        guard([])
