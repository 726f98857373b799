"""Loops of many shapes that are all right, one function each, on one rank."""

from __future__ import annotations

import contextlib
import pickle
import tempfile
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
from torch.utils.checkpoint import checkpoint

from dsguard import Guard, guard
from tests.guard.healthy_loops import MICRO_BATCH, WIDTH, Model, config, dataset, initialize
from tests.guard.scenarios import batches, scenario, train


class Outputs(torch.nn.Module):
    """A model that leaves the loss to the script; ``checkpointed`` layers run twice."""

    def __init__(self, checkpointed: str = "") -> None:
        super().__init__()
        self.first = torch.nn.Linear(WIDTH, WIDTH)
        self.second = torch.nn.Linear(WIDTH, 1)
        self.checkpointed = checkpointed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """One number a sample."""
        if self.checkpointed:
            hidden = checkpoint(self.first, x, use_reentrant=self.checkpointed == "reentrant")
        else:
            hidden = self.first(x)
        return self.second(torch.tanh(hidden))


@scenario(1, 2, 3)
def optimizer_offloaded(stage: int) -> Iterator[Guard]:
    settings = config(stage, accumulation=2)
    settings["zero_optimization"]["offload_optimizer"] = {"device": "cpu"}
    # DeepSpeed's own optimizer for this is a compiled op.
    settings["zero_force_ds_cpu_optimizer"] = False
    engine, _ = initialize(settings)
    guarded = guard(engine)
    train(engine, 6)
    assert guarded.summary().windows == {2: 3}
    yield guarded


@scenario(("no", 0), ("reentrant", 0), ("no", 2), ("reentrant", 2), ("no", 3), ("reentrant", 3))
def checkpointing_in_the_model(kind: str, stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=2), Outputs(kind))
    guarded = guard(engine)
    for x, y in batches(6):
        x.requires_grad_()
        engine.backward(torch.nn.functional.mse_loss(engine(x), y))
        engine.step()
    summary = guarded.summary()
    assert summary.windows == {2: 3}
    assert summary.samples_per_step == {2 * MICRO_BATCH: 3}
    yield guarded


@scenario((False, 0), (True, 1), (False, 2))
def checkpointing_the_engine(reentrant: bool, stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=2), Outputs())
    guarded = guard(engine)
    for x, y in batches(6):
        x.requires_grad_()
        output = checkpoint(engine, x, use_reentrant=reentrant)
        engine.backward(torch.nn.functional.mse_loss(output, y))
        engine.step()
    assert guarded.summary().windows == {2: 3}
    yield guarded


@scenario(0, 1, 2)
def gradient_penalty(stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=2), Outputs())
    guarded = guard(engine)
    for x, y in batches(6):
        x.requires_grad_()
        # DeepSpeed takes a gradient through its own output for a backward pass.
        (slope,) = torch.autograd.grad(engine.module(x).sum(), x, create_graph=True)
        output = engine(x)
        loss = torch.nn.functional.mse_loss(output, y) + (slope.norm(dim=1) - 1).square().mean()
        engine.backward(loss)
        engine.step()
    assert guarded.summary().windows == {2: 3}
    yield guarded


@scenario(0, 1, 2, 3)
def saved_and_resumed_in_one_process(stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=2))
    guarded = guard(engine)
    with tempfile.TemporaryDirectory() as folder:
        train(engine, 4)
        state = guarded.state_dict()
        engine.save_checkpoint(folder)
        train(engine, 2)
        engine.load_checkpoint(folder)
        guarded.load_state_dict(state)
        train(engine, 4)
    assert guarded.summary().optimizer_steps == engine.global_steps == 4
    yield guarded


class _OutOfMemory(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, loss: torch.Tensor) -> torch.Tensor:
        """The loss as it is."""
        return loss.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> torch.Tensor:
        """Nothing gets through."""
        raise MemoryError


@scenario(0, 1, 2)
def backward_passes_that_raise(stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=2))
    guarded = guard(engine)
    for index, (x, y) in enumerate(batches(11)):
        loss = engine(x, y)
        try:
            engine.backward(_OutOfMemory.apply(loss) if index in (2, 4, 7) else loss)
        except MemoryError:
            continue
        engine.step()
    summary = guarded.summary()
    assert summary.windows == {2: 4}
    assert summary.samples_per_step == {2 * MICRO_BATCH: 4}
    assert engine.global_steps == 4
    yield guarded


@scenario((0, 3), (1, 3), (2, 3))
def a_step_that_raises(stage: int, at: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=2))
    guarded = guard(engine)
    failing = mock.patch.object(engine.basic_optimizer, "step", side_effect=MemoryError)
    for index, (x, y) in enumerate(batches(9)):
        engine.backward(engine(x, y))
        if index == at:
            with failing, contextlib.suppress(MemoryError):
                engine.step()
        else:
            engine.step()
    assert guarded.summary().optimizer_steps == engine.global_steps
    yield guarded


@scenario(0, 1, 2)
def losses_that_are_no_numbers(stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=2))
    guarded = guard(engine)
    for index, (x, y) in enumerate(batches(10)):
        loss = engine(x, y * float("nan") if index in (1, 6) else y)
        if loss.isnan():
            continue
        engine.backward(loss)
        engine.step()
    summary = guarded.summary()
    assert summary.windows == {2: 4}
    assert summary.samples_per_step == {2 * MICRO_BATCH: 2}
    yield guarded


@scenario(0, 1, 2)
def adversarial_pair(stage: int) -> Iterator[Guard]:
    maker, _ = initialize(config(stage, accumulation=2), torch.nn.Linear(WIDTH, WIDTH))
    # It sees what is made and what is real at once.
    settings = config(stage, accumulation=2)
    settings["train_micro_batch_size_per_gpu"] = 2 * MICRO_BATCH
    critic, _ = initialize(settings, Outputs())
    guards = guard(maker), guard(critic)
    for x, _ in batches(6):
        signs = torch.tensor([[1.0], [-1.0]]).repeat_interleave(MICRO_BATCH, 0)
        with torch.no_grad():
            made = maker(x)
        critic.backward((critic(torch.cat([x, made])) * signs).mean())
        critic.step()
        critic.requires_grad_(False)
        maker.backward(-critic.module(maker(x)).mean())
        maker.step()
        critic.requires_grad_(True)
    for guarded in guards:
        assert guarded.summary().windows == {2: 3}
        yield guarded


@scenario(0, 2)
def engines_with_one_loader_and_one_schedule(stage: int) -> Iterator[Guard]:
    data = dataset(6 * MICRO_BATCH)
    models = Model(), Model()
    optimizer = torch.optim.Adam(models[0].parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 1))
    first, loader = initialize(
        config(stage, accumulation=2),
        models[0],
        optimizer=optimizer,
        lr_scheduler=schedule,
        training_data=data,
    )
    loader.num_local_io_workers = 0
    second, _ = initialize(config(stage, accumulation=2), models[1])
    guards = guard(first), guard(second)
    for _ in range(2):
        for x, y in loader:
            for engine in (first, second):
                engine.backward(engine(x, y))
                engine.step()
    for guarded in guards:
        assert guarded.summary().windows == {2: 6}
        yield guarded


@scenario(0, 1, 2)
def engines_stepping_one_scheduler(stage: int) -> Iterator[Guard]:
    models = Model(), Model()
    optimizer = torch.optim.Adam(models[0].parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (step + 1))
    settings = config(stage, accumulation=2)
    first, _ = initialize(settings, models[0], optimizer=optimizer, lr_scheduler=schedule)
    second, _ = initialize(settings, models[1], lr_scheduler=schedule)
    guards = guard(first), guard(second)
    for x, y in batches(6):
        for engine in (first, second):
            engine.backward(engine(x, y))
            engine.step()
    yield from guards


@scenario((0, "fp32"), (0, "bf16"), (1, "fp32"), (2, "bf16"), (3, "fp32"))
def two_parameter_groups(stage: int, precision: str) -> Iterator[Guard]:
    model = Model()
    settings = config(stage, precision, 2)
    settings["zero_optimization"]["sub_group_size"] = 10
    groups = [
        {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-2)
    torch.manual_seed(0)
    import deepspeed

    engine, _, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, config=settings)
    guarded = guard(engine)
    dtype = next(engine.module.parameters()).dtype
    for x, y in batches(6):
        engine.backward(engine(x.to(dtype), y.to(dtype)))
        engine.step()
    assert guarded.summary().windows == {2: 3}
    yield guarded


@scenario(0, 1, 2, 3)
def overflow_skips(stage: int) -> Iterator[Guard]:
    settings = config(stage, accumulation=2)
    del settings["bf16"]
    settings["fp16"] = {"enabled": True, "initial_scale_power": 8, "hysteresis": 1}
    from deepspeed.accelerator import get_accelerator

    with mock.patch.object(type(get_accelerator()), "is_fp16_supported", return_value=True):
        engine, _ = initialize(settings)
        guarded = guard(engine)
        for index, (x, y) in enumerate(batches(24)):
            loss = engine(x.half(), y.half())
            engine.backward(loss * float("inf") if index in (3, 4, 7, 15) else loss)
            engine.step()
    summary = guarded.summary()
    assert summary.skipped_steps == engine.skipped_steps == 4
    assert summary.optimizer_steps == engine.global_steps == 12
    yield guarded


@scenario(0, 1, 2, 3)
def batch_changed_at_a_boundary(stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=2))
    guarded = guard(engine, expect={"gradient_accumulation_steps": 2})
    train(engine, 4)
    engine.set_train_batch_size(4 * MICRO_BATCH)
    while engine.micro_steps % 4:
        train(engine, 1)
    train(engine, 8)
    assert guarded.summary().optimizer_steps == engine.global_steps
    yield guarded


@scenario(0, 1, 2, 3)
def manual_boundaries(stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=4))
    guarded = guard(engine)
    for _ in range(2):
        for index, (x, y) in enumerate(batches(10)):
            engine.set_gradient_accumulation_boundary(index % 4 == 3 or index == 9)
            engine.backward(engine(x, y))
            engine.step()
    summary = guarded.summary()
    assert summary.windows == {2: 2, 4: 4}
    assert engine.global_steps == 6
    yield guarded


@scenario(0, 1, 2, 3)
def model_steps_taken_by_the_script(stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=4))
    guarded = guard(engine)
    for index, (x, y) in enumerate(batches(8)):
        last = index % 4 == 3
        engine.set_gradient_accumulation_boundary(last)
        engine.backward(engine(x, y))
        if last:
            engine._take_model_step({})
    assert guarded.summary().windows == {4: 2}
    assert engine.global_steps == 2
    yield guarded


@scenario(0, 1, 2, 3)
def managed_by_the_script(stage: int) -> Iterator[Guard]:
    settings = config(stage, accumulation=3) | {"managed_gradient_accumulation": False}
    engine, _ = initialize(settings)
    guarded = guard(engine)
    for index, (x, y) in enumerate(batches(9)):
        engine.backward(engine(x, y))
        if index % 3 == 2:
            engine.step()
    assert guarded.summary().windows == {3: 3}
    assert engine.global_steps == 3
    yield guarded


@scenario(("no_sync", 0), ("no_sync", 1), *(("coalesce_grad_reduction", n) for n in (1, 2, 3)))
def synchronised_once(method: str, stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=1))
    guarded = guard(engine)
    for _ in range(3):
        with getattr(engine, method)():
            for x, y in batches(3):
                engine.backward(engine(x, y))
            if method != "no_sync":
                engine.backward(engine(x, y))
        if method == "no_sync":
            engine.backward(engine(x, y))
        engine.step()
    assert engine.global_steps == 3
    assert guarded.summary().optimizer_steps == 3
    yield guarded


@scenario(0, 1, 2, 3)
def more_forwards_than_backwards(stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=2))
    guarded = guard(engine)
    for x, y in batches(6):
        engine(x, y)
        engine.backward(engine(x, y) + engine(x.flip(0), y))
        engine.step()
    assert guarded.summary().windows == {2: 3}
    yield guarded


@scenario(0, 1, 2, 3)
def looking_in_the_middle_of_a_window(stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=2))
    guarded = guard(engine)
    for x, y in batches(6):
        engine.backward(engine(x, y))
        with torch.no_grad():
            engine(x[:1], y[:1])
        engine.eval()
        with torch.inference_mode():
            engine(x, y)
        engine.train()
        engine.step()
    assert guarded.summary().windows == {2: 3}
    yield guarded


@scenario(0, 2, 3)
def asked_whether_a_step_was_applied(stage: int) -> Iterator[Guard]:
    answers = []
    for guarding in (False, True):
        engine, _ = initialize(config(stage, accumulation=2))
        guarded = guard(engine) if guarding else None
        answer = []
        for x, y in batches(6):
            engine.backward(engine(x, y))
            answer.append(engine.is_gradient_accumulation_boundary())
            engine.step()
            answer.append(engine.was_step_applied())
        answers.append(answer)
    assert answers[0] == answers[1]
    assert guarded is not None
    yield guarded


@scenario(*((kind, stage) for kind in ("none", "deepspeed", "torch") for stage in (0, 2, 3)))
def schedules(kind: str, stage: int) -> Iterator[Guard]:
    states = []
    for guarding in (False, True):
        settings, arguments, model = config(stage, accumulation=2), {}, Model()
        if kind == "deepspeed":
            settings["scheduler"] = {"type": "WarmupLR", "params": {"warmup_num_steps": 4}}
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        if kind == "torch":
            arguments["lr_scheduler"] = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        engine, _ = initialize(settings, model, optimizer=optimizer, **arguments)
        guarded = guard(engine) if guarding else None
        train(engine, 6)
        schedule = engine.lr_scheduler
        assert (schedule is None) == (kind == "none")
        states.append(pickle.dumps(schedule.state_dict()) if schedule is not None else None)
        with tempfile.TemporaryDirectory() as folder:
            engine.save_checkpoint(folder)
            engine.load_checkpoint(folder)
        train(engine, 2)
    assert states[0] == states[1]
    assert guarded is not None
    yield guarded


@scenario(2, 3)
def gradients_that_skip_parameters(stage: int) -> Iterator[Guard]:
    """The first layer is frozen, a part of the model is used in some micro-batches only."""
    model = torch.nn.ModuleDict({"a": Outputs(), "b": Outputs()})
    model["a"].first.requires_grad_(False)
    model.forward = lambda x, which: model[which](x)  # type: ignore[method-assign]
    engine, _ = initialize(config(stage, accumulation=2), model)
    guarded = guard(engine)
    for index, (x, y) in enumerate(batches(6)):
        output = engine(x, "ab"[index % 2])
        engine.backward(torch.nn.functional.mse_loss(output, y))
        engine.step()
    yield guarded


@scenario(0, 2)
def losses_added_up_by_the_script(stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=4), Outputs())
    guarded = guard(engine)
    for x, y in batches(8):
        output = engine(x)
        parts = [torch.nn.functional.mse_loss(output, y), output.abs().mean(), output.var()]
        engine.backward(sum(parts) / len(parts))
        engine.step()
    yield guarded


@scenario(1, 2, 3)
def backward_by_the_loss(stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=2))
    guarded = guard(engine)
    for x, y in batches(6):
        engine(x, y).backward()
        engine.step()
    assert guarded.summary().windows == {2: 3}
    yield guarded


@scenario(1, 2, 3)
def backward_by_the_loss_after_many_by_the_engine(stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=2))
    guarded = guard(engine)
    train(engine, 20)
    for x, y in batches(6):
        engine(x, y).backward()
        engine.step()
    assert guarded.summary().windows == {2: 13}
    yield guarded


@scenario(0, 2)
def scaled_by_the_script(stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=4))
    guarded = guard(engine)
    for x, y in batches(8):
        engine.backward(engine(x, y) / 4, scale_wrt_gas=False)
        engine.step()
    yield guarded


@scenario(0, 1, 2, 3)
def zeroed_at_boundaries(stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=2))
    guarded = guard(engine)
    for index, (x, y) in enumerate(batches(6)):
        if index % 2 == 0:
            engine.zero_grad()
            engine.optimizer.zero_grad()
        engine.backward(engine(x, y))
        engine.step()
    yield guarded


@scenario(0, 1, 2, 3)
def parts_of_the_learning_rate_at_zero(stage: int) -> Iterator[Guard]:
    """A warm-up from 0, during which parameters rightly stay as they are."""
    settings = config(stage, accumulation=1)
    settings["scheduler"] = {
        "type": "WarmupLR",
        "params": {"warmup_min_lr": 0, "warmup_max_lr": 0.01, "warmup_num_steps": 50},
    }
    engine, _ = initialize(settings)
    guarded = guard(engine)
    train(engine, 12)
    yield guarded


@scenario(0, 1)
def short_last_batch(stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=2))
    guarded = guard(engine)
    for _ in range(2):
        for x, y in torch.utils.data.DataLoader(dataset(3 * MICRO_BATCH + 1), MICRO_BATCH):
            engine.backward(engine(x, y))
            engine.step()
    summary = guarded.summary()
    assert summary.windows == {2: 4}
    assert summary.samples_per_step == {4: 2, 3: 2}
    yield guarded
