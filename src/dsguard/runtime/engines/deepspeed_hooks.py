"""The hooks on a DeepSpeed engine: what its methods do, told as moments.

Every hook is an instance attribute over a method of the engine or of its optimizer; nothing is
put on the module (it may be compiled, copied or pickled) nor on the learning-rate scheduler
(whose attributes are its ``state_dict``).
"""

from __future__ import annotations

import functools
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MethodType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from dsguard.runtime.batch_size import PACKED, ROWLESS, batch_size
from dsguard.runtime.checkpoints import keep, origins_of
from dsguard.runtime.engines.deepspeed_view import BOUNDARY, UNSYNCHRONISED
from dsguard.runtime.engines.schedule import Schedule
from dsguard.runtime.engines.script import first_trainable
from dsguard.runtime.loss_graph import mark_output
from dsguard.runtime.moments import (
    Backward,
    EpochEnded,
    EvaluationForward,
    Forward,
    GradientsZeroed,
    Loaded,
    LossWeight,
    Resized,
    Resumed,
    Saving,
    SchedulerMoved,
    StepCalled,
    SteppedAround,
)
from dsguard.runtime.ordinary import BACKWARD, FORWARD, STEP
from dsguard.runtime.outputs import NO_TASK, first_tensor_with_graph, graph_task, is_compiling
from dsguard.runtime.reporting import GuardViolation
from dsguard.runtime.run import Boundary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dsguard.runtime.engines.deepspeed_view import DeepSpeedView
    from dsguard.runtime.engines.tap import Tap
    from dsguard.runtime.patches import Original, Patch
    from dsguard.runtime.windows import Window, Windows

_UNSEEN = "a zero_grad() of the module, or something like it,"

_NOT_KEPT = "where it is resumed, it is compared with less"
_KEPT = "the checkpoint is whole, and the guard goes on; see what is in the way in its folder"


@dataclass(eq=False, slots=True)
class _Inside:
    """What is running now, of an engine or of engines that share their base optimizer."""

    calls: int = 0
    """Depth of engine calls in which optimizers and gradients are DeepSpeed's business."""
    backward: bool = False
    """Whether it is ``engine.backward``."""


_inside: WeakKeyDictionary[Any, _Inside] = WeakKeyDictionary()
"""By base optimizer."""


class DeepSpeedHooks:
    """Puts the hooks of one guard on one engine."""

    def __init__(self, engine: Any, view: DeepSpeedView, tap: Tap) -> None:
        self._view = view
        self._counts = view.counts
        self._tap = tap
        self._watch = tap.watch
        self._contain = tap.watch.contain
        self._graph_task = graph_task()
        self._is_compiling = is_compiling()
        self._run = tap.run
        self._ordinary = tap.run.ordinary
        self._inside = _Inside()
        with suppress(TypeError):  # no base optimizer, or one that cannot be watched
            self._inside = _inside.setdefault(engine.basic_optimizer, self._inside)
        self._around_engine = 0
        """Backward passes since the last ``step()`` that ``engine.backward`` did not start."""
        self._watches_outputs = True
        """Whether backward passes are looked for that ``engine.backward`` does not start."""
        self._always_by_engine = True
        self._followed = False
        """Whether the output of the last forward is followed into the backward pass."""
        self._divided = False
        self._had_gradient = False
        self._micro_batch: int | None = None
        """What the engine has said last; it is asked again where a batch has another size."""
        self._epochs = 0
        self._schedule = Schedule(engine.lr_scheduler)
        self._watched = first_trainable(engine.module.parameters())
        self._attach(engine)

    @property
    def _windows(self) -> Windows:
        return self._ordinary.windows()

    def _attach(self, engine: Any) -> None:
        import torch

        self._is_grad_enabled, self._tensor = torch.is_grad_enabled, torch.Tensor
        wrap, replace = self._tap.patches.wrap, self._tap.patches.replace
        replace(engine, "zero_grad", self._zero_grad("engine", "engine.zero_grad()"))
        for name in ("set_train_batch_size", "set_train_micro_batch_size"):
            if hasattr(type(engine), name):
                wrap(engine, name, self._resize(name))
        wrap(engine, "save_checkpoint", self._save)
        wrap(engine, "load_checkpoint", self._load)
        if self._view.pipeline:
            wrap(engine, "train_batch", self._train_batch)
            wrap(engine, "_next_batch", self._next_batch)
        else:
            replace(engine, "forward", self._forward)
            replace(engine, "backward", self._backward)
            replace(engine, "step", self._step)
        replace(engine, "_take_model_step", self._take_model_step)
        self._attach_optimizers(engine)
        loader = engine.__dict__.get("training_dataloader")
        if loader is not None and hasattr(type(loader), "_create_dataloader"):
            wrap(loader, "_create_dataloader", self._loader_starts)

    def _attach_optimizers(self, engine: Any) -> None:
        replace = self._tap.patches.replace
        optimizer, base = engine.optimizer, engine.basic_optimizer
        if optimizer is not None and hasattr(optimizer, "zero_grad"):
            replace(
                optimizer,
                "zero_grad",
                self._zero_grad(
                    "base" if optimizer is base else "optimizer", "the optimizer's zero_grad()"
                ),
            )
        if base is None:
            return
        if optimizer is not base:
            if hasattr(base, "zero_grad"):
                replace(base, "zero_grad", self._zero_grad("base", "the optimizer's zero_grad()"))
            replace(optimizer, "step", self._wrapper_step)
        if hasattr(base, "register_step_post_hook"):
            self._tap.handles.append(base.register_step_post_hook(self._base_stepped))

    # Forward

    # What every micro-batch calls contains its hooks itself, and counts an ordinary micro-batch
    # on the spot: on a small model a call costs more than what is done in it.

    def _forward(self, patch: Patch) -> Callable[..., Any]:
        function, owner, watch, ordinary = patch.function, patch.owner, self._watch, self._ordinary
        is_compiling, is_grad_enabled = self._is_compiling, self._is_grad_enabled
        tensor = self._tensor

        def forward(*args: Any, **kwargs: Any) -> Any:
            engine = owner()
            if is_compiling() or watch.stopped:
                return function(engine, *args, **kwargs)
            counted = followed = False
            try:
                samples = ordinary.samples
                if ordinary.awaits == FORWARD and (samples > 1 or PACKED.isdisjoint(kwargs)):
                    rows = False
                    for part in (*args, *kwargs.values()) if kwargs else args:
                        if type(part) is tensor:
                            shape = part.shape
                            if shape:
                                if shape[0] != samples:
                                    break
                                rows = True
                        elif not isinstance(part, ROWLESS):
                            break
                    else:
                        training = rows and engine._modules["module"].training
                        counted = training and is_grad_enabled()
                if counted:
                    ordinary.awaits = BACKWARD
                else:
                    counted, followed = self._before_forward(engine, args, kwargs)
            except Exception as error:
                watch.failed("forward", error)
            try:
                output = function(engine, *args, **kwargs)
            except BaseException:
                if counted:
                    self._windows.forward_failed()
                raise
            if followed:
                self._contain("forward", self._after_forward, output)
            return output

        return forward

    def _before_forward(
        self, engine: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[bool, bool]:
        """Count it.

        Returns:
            Whether it is one of the training, and whether its output has to be followed into the
            backward pass.
        """
        if self._graph_task() != NO_TASK:  # checkpointing runs it again
            if not self._inside.backward and not self._windows.forwards_since_step:
                self._around_engine += 1  # for the first time, as far as gradients go
            return False, False
        run, windows = self._run, self._windows
        training = engine._modules["module"].training  # engine.module looks in three dicts
        if not training or not self._is_grad_enabled():
            windows.forward_without_gradient()
            if not training and windows.open:
                self._tap.tell(EvaluationForward(run))
            return False, False
        if self._had_gradient:
            self._look_at_gradients()
        size, told = self._micro_batch, run.probing
        if told or batch_size(args, kwargs, size) != size:
            told, self._micro_batch = True, self._view.micro_batch()
            size = batch_size(args, kwargs, self._micro_batch)
        windows.forward(size)
        if self._tap.watches_batches:
            self._tap.batch(args, kwargs)
        if told:
            self._tap.tell(Forward(run, size, bool(kwargs)))
        self._followed = followed = run.probing or self._watches_outputs
        return True, followed

    def _after_forward(self, output: Any) -> None:
        tensor = first_tensor_with_graph(output)
        if tensor is not None:
            if self._run.probing:
                mark_output(tensor)
            # Runs after all hooks on the tensor: it sees the gradient that counts.
            tensor.grad_fn.register_prehook(
                functools.partial(self._output_gradient, tensor.dim() == 0)
            )

    def _output_gradient(self, scalar: bool, gradients: tuple[Any, ...]) -> None:
        self._contain("a gradient", self._see_gradient, scalar, gradients)

    def _see_gradient(self, scalar: bool, gradients: tuple[Any, ...]) -> None:
        if not self._inside.backward:
            self._around_engine += 1
        elif scalar and self._divided and self._run.probing and gradients[0] is not None:
            scale = self._view.loss_scale()
            self._tap.later.read(
                gradients[0],
                lambda value: self._tap.tell(
                    LossWeight(self._run, value / scale), in_autograd=True
                ),
            )

    # Backward

    def _backward(self, patch: Patch) -> Callable[..., Any]:
        function, owner, watch, ordinary = patch.function, patch.owner, self._watch, self._ordinary
        inside, run = self._inside, self._run

        def backward(*args: Any, **kwargs: Any) -> Any:
            engine = owner()
            if watch.stopped:
                return function(engine, *args, **kwargs)
            try:
                own, done, steps = engine.__dict__, ordinary.micro_batches, ordinary.accumulation
                last = done + 1 == steps
                if (
                    ordinary.awaits == BACKWARD
                    and own.get(BOUNDARY) == (last if ordinary.declared else None)
                    and not own.get(UNSYNCHRONISED)
                    and (done < steps if done else engine.gradient_accumulation_steps() == steps)
                ):
                    if ordinary.declared:
                        run.reduced = last
                    ordinary.awaits = STEP
                else:
                    self._before_backward(engine, args[0] if args else kwargs.get("loss"), kwargs)
            except Exception as error:
                watch.failed("backward", error)
            inside.calls += 1
            inside.backward = True
            try:
                result = function(engine, *args, **kwargs)
            except BaseException:
                if not watch.stopped:
                    run.interrupted = True
                    self._windows.backward_failed()
                raise
            finally:
                inside.calls -= 1
                inside.backward = False
            # No forward was awaited so far: a checkpoint may have run one again.
            if ordinary.awaits == STEP and not ordinary.steps:
                done = ordinary.micro_batches + 1
                if done != ordinary.accumulation:
                    ordinary.micro_batches, ordinary.awaits = done, FORWARD
            return result

        return backward

    def _before_backward(self, engine: Any, loss: Any, kwargs: Mapping[str, Any]) -> None:
        if self._had_gradient:
            self._look_at_gradients()
        run, windows = self._run, self._windows
        own = engine.__dict__
        declared = own.get(BOUNDARY)
        if declared is not None:
            run.reduced = bool(declared)
        run.through_engine = True
        steps = windows.expected if windows.open else int(engine.gradient_accumulation_steps())
        windows.backward(steps, not own.get(UNSYNCHRONISED))
        if run.probing or not windows.forwards or windows.open > (steps or 0):
            accumulation = self._view.accumulation()
            self._divided = accumulation > 1 and bool(kwargs.get("scale_wrt_gas", True))
            self._see_boundary(engine)
            self._tap.tell(Backward(run, loss, self._divided))

    def _see_boundary(self, engine: Any) -> None:
        """Who decides where the window ends, and whether the engine takes it for its end."""
        run = self._run
        if engine.__dict__.get(BOUNDARY) is not None:
            run.boundary = Boundary.MANUAL  # reduced as it was said before the backward pass
        else:
            run.boundary = self._counts
            run.reduced = (engine.micro_steps + 1) % self._view.accumulation() == 0

    # Step

    def _step(self, patch: Patch) -> Callable[..., Any]:
        function, owner, watch, ordinary = patch.function, patch.owner, self._watch, self._ordinary
        inside, moves = self._inside, self._schedule.moves

        def step(*args: Any, **kwargs: Any) -> Any:
            engine = owner()
            if watch.stopped:
                return function(engine, *args, **kwargs)
            steps = skipped = 0
            try:
                steps, skipped = engine.global_steps, engine.skipped_steps
                last = ordinary.micro_batches + 1 == ordinary.accumulation
                if ordinary.awaits != STEP or (
                    engine.__dict__.get(BOUNDARY) != (last if ordinary.declared else None)
                ):
                    self._before_step(engine)
                elif moves:
                    self._look_at_scheduler()
            except Exception as error:
                watch.failed("step", error)
            inside.calls += 1
            try:
                result = function(engine, *args, **kwargs)
            except BaseException:
                self._step_failed(engine, steps, skipped)
                raise
            finally:
                inside.calls -= 1
            if not watch.stopped:
                try:
                    if engine.global_steps != steps:
                        self._stepped(engine.skipped_steps == skipped)
                    elif ordinary.awaits == STEP and ordinary.steps:
                        ordinary.micro_batches += 1
                        ordinary.awaits = FORWARD
                    else:
                        self._after_step()
                except Exception as error:
                    watch.failed("step", error)
            return result

        return step

    def _before_step(self, engine: Any) -> None:
        run, windows = self._run, self._windows
        around, self._around_engine = self._around_engine, 0
        if windows.since_step:
            self._watches_outputs = not self._always_by_engine
        else:
            self._step_around(around)
        if self._schedule.moves:
            self._look_at_scheduler()
        manual = run.boundary is Boundary.MANUAL
        if engine.__dict__.get(BOUNDARY) is None:
            usual = not manual and windows.since_step == 1
        else:
            usual = manual and run.reduced  # the backward pass has known of this boundary
        if run.probing or not usual:
            self._see_boundary(engine)
            self._tap.tell(StepCalled(run))

    def _step_around(self, around: int) -> None:
        """A step for which nobody has called ``engine.backward``."""
        self._always_by_engine, self._watches_outputs = False, True
        if not self._followed and self._windows.forwards_since_step:
            around = around or 1  # nobody has looked; from now on somebody does
        if around:
            # loss.backward() on the engine's output; beside engine.backward() such a pass is
            # a gradient penalty or the like and no micro-batch.
            accumulation = self._view.accumulation()
            self._run.through_engine = False
            for _ in range(around):
                self._windows.backward(accumulation, not self._view.unsynchronised())
                self._tap.tell(Backward(self._run, None, True))

    def _after_step(self) -> None:
        windows = self._windows
        steps = windows.since_step <= 1
        windows.step_returned()
        if windows.open and self._run.probing:  # else there is nothing to lose, or it is no sample
            parameter = self._watched()
            self._had_gradient = parameter is not None and parameter.grad is not None
        window = self._tap.window_closed
        if window is not None:
            self._tap.settle()
            self._expect_the_like(window, steps)

    def _expect_the_like(self, window: Window, steps: bool) -> None:
        """Count on the spot what follows, where it is likely to be what this window was.

        ``steps``: its last call of ``step()`` came after one micro-batch.
        """
        untold, samples = self._tap.untold(window), self._micro_batch
        if untold is None or samples is None or self._windows.pending:
            return
        if not self._watches_outputs:
            self._followed = False
            declared = self._run.boundary is Boundary.MANUAL
            self._ordinary.expect(
                window.micro_batches, samples, untold, steps=steps, declared=declared
            )

    def _stepped(self, applied: bool) -> None:
        """The engine has counted an optimizer step."""
        if self._schedule.moves:
            self._schedule.left_by_engine()
        if not applied or not self._ordinary.closes():
            self._close_window(applied)
            self._after_step()

    def _close_window(self, applied: bool) -> None:
        self._had_gradient = False
        self._tap.window_closed = self._windows.optimizer_step(applied)

    def _step_failed(self, engine: Any, steps: int, skipped: int) -> None:
        """The exception is on its way to the script: nothing may take its place."""
        self._run.interrupted = True
        with suppress(GuardViolation):  # other ranks may settle, and wait for this one in it
            self._contain("step", self._settle_failed, engine, steps, skipped)
        self._run.interrupted = True  # the engine has not counted this step

    def _settle_failed(self, engine: Any, steps: int, skipped: int) -> None:
        if engine.global_steps != steps:
            self._close_window(engine.skipped_steps == skipped)
        self._windows.step_returned()
        self._tap.settle()

    def _take_model_step(self, patch: Patch) -> Callable[..., Any]:
        function, owner, inside, tap = patch.function, patch.owner, self._inside, self._tap
        records = tap.records

        def take_model_step(*args: Any, **kwargs: Any) -> Any:
            if records:
                self._contain("the optimizer step", tap.stepping)
            if inside.calls or not patch.on:
                return function(owner(), *args, **kwargs)
            # A script with a schedule of its own calls it outside of step().
            original = MethodType(function, owner())
            return self._stepping("the optimizer step", original, args, kwargs)

        return take_model_step

    def _stepping(
        self, what: str, original: Original, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """A call that may step the optimizer, without ``step()``."""
        before = self._contain(what, self._counters)
        self._inside.calls += 1
        try:
            result = original(*args, **kwargs)
        finally:
            self._inside.calls -= 1
        self._contain(what, self._after_stepping, before)
        return result

    def _counters(self) -> tuple[int, int]:
        """The optimizer steps so far, and how many of them were skipped."""
        if self._schedule.moves:
            self._look_at_scheduler()
        engine = self._view.engine
        return engine.global_steps, engine.skipped_steps

    def _after_stepping(self, before: tuple[int, int]) -> None:
        engine, (steps, skipped) = self._view.engine, before
        if engine.global_steps != steps:
            self._stepped(engine.skipped_steps == skipped)
        else:
            self._after_step()

    # A pipeline does everything in one call

    def _train_batch(
        self, original: Original, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        self._windows.reopen()
        return self._stepping("train_batch", original, args, kwargs)

    def _next_batch(self, original: Original, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        batch = original(*args, **kwargs)
        if self._is_grad_enabled():
            self._contain("a micro-batch", self._pipeline_batch, batch)
        return batch

    def _pipeline_batch(self, batch: Any) -> None:
        size = batch_size((batch,), {}, self._view.micro_batch())
        self._windows.forward(size)
        self._tap.batch((batch,), {})
        self._windows.backward(self._view.accumulation())
        # Inside the schedule of the pipeline nothing may be raised: other stages wait.
        self._tap.tell(Forward(self._run, size, False), in_autograd=True)

    # Around the engine

    def _wrapper_step(self, patch: Patch) -> Callable[..., Any]:
        function, owner = patch.function, patch.owner

        def step(*args: Any, **kwargs: Any) -> Any:
            if not self._inside.calls and patch.on:
                self._contain(
                    "the optimizer", self._stepped_around, "engine.optimizer.step()", True
                )
            self._inside.calls += 1  # what it does to gradients is its own business
            try:
                return function(owner(), *args, **kwargs)
            finally:
                self._inside.calls -= 1

        return step

    def _base_stepped(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if not self._inside.calls:
            what = f"{type(optimizer).__name__}.step()"
            self._contain("the optimizer", self._stepped_around, what, False)

    def _stepped_around(self, what: str, wrapper: bool) -> None:
        self._tap.tell(SteppedAround(self._run, what, wrapper))

    def _zero_grad(self, whose: str, what: str) -> Callable[[Patch], Callable[..., Any]]:
        def make(patch: Patch) -> Callable[..., Any]:
            function, owner, inside = patch.function, patch.owner, self._inside

            def zero_grad(*args: Any, **kwargs: Any) -> Any:
                # The engine calls it in every step of its own.
                if not inside.calls and patch.on and (self._ordinary.open() or self._around_engine):
                    self._contain("zero_grad", self._zeroed, whose, what)
                return function(owner(), *args, **kwargs)

            return zero_grad

        return make

    def _zeroed(self, owner: str, what: str) -> None:
        if self._graph_task() != NO_TASK:
            return
        self._had_gradient = False
        lossy = self._view.loses_gradients(owner)
        self._tap.tell(GradientsZeroed(self._run, what, lossy))

    def _look_at_gradients(self) -> None:
        """Whether a gradient that was there after the last ``step()`` is gone."""
        self._had_gradient = False
        watched = self._watched()
        if watched is not None and watched.grad is None and self._windows.open:
            self._tap.tell(GradientsZeroed(self._run, _UNSEEN, True))

    def _look_at_scheduler(self) -> None:
        times = self._schedule.moved()
        if times:
            self._tap.tell(SchedulerMoved(self._run, times))

    # Changing, saving, loading

    def _resize(self, name: str) -> Any:
        def resize(original: Original, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            before = self._view.accumulation()
            result = original(*args, **kwargs)
            self._contain("a change of the batch", self._resized, f"engine.{name}()", before)
            return result

        return resize

    def _resized(self, what: str, before: int) -> None:
        # The script has changed its mind: what was asked for before is no longer asked for.
        self._run.expected = self._run.expected.without(
            "train_batch_size", "micro_batch_size", "gradient_accumulation_steps"
        )
        self._run.resized = self._run.probing = True  # what the window began with holds no more
        self._micro_batch = self._view.micro_batch()
        if self._windows.open and not self._inside.calls:
            self._tap.tell(Resized(self._run, what, before, self._view.accumulation()))

    def _save(self, original: Original, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._contain("save_checkpoint", self._tap.tell, Saving(self._run))
        saved = original(*args, **kwargs)
        self._contain("save_checkpoint", self._saved, args, kwargs)
        return saved

    def _saved(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        engine = self._view.engine
        if engine.global_rank != 0:
            return
        given = dict(zip(("save_dir", "tag"), args, strict=False)) | dict(kwargs)
        tag = given.get("tag") or f"global_step{engine.global_steps}"
        folder = Path(given["save_dir"], str(tag))
        try:
            if folder.is_dir():
                keep(folder, self._view.facts(), self._windows, self._run.contract)
        except Exception as error:
            self._watch.fault("writing dsguard.json into a checkpoint", error, _NOT_KEPT, _KEPT)

    def _load(self, original: Original, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self._inside.calls += 1
        try:
            result = original(*args, **kwargs)
        finally:
            self._inside.calls -= 1
        self._contain("load_checkpoint", self._loaded, result)
        return result

    def _loaded(self, result: Any) -> None:
        engine, pending = self._view.engine, self._windows.open
        accumulation = self._view.accumulation()
        counted = self._view.boundary() is Boundary.ENGINE and not self._view.pipeline
        residue = engine.micro_steps % accumulation if counted else 0
        self._windows.reopen(residue, accumulation)
        self._windows.step_returned()
        self._schedule.left_by_engine()
        self._had_gradient = False
        self._around_engine = 0
        self._run.interrupted = False
        self._tap.forget_parameters()
        self._tap.tell(Loaded(self._run, pending, residue))
        path, client_state = result if isinstance(result, tuple) else (None, None)
        origins = origins_of(Path(path).parent, client_state) if path else None
        if origins is not None:
            self._tap.tell(Resumed(self._run, origins.contract, origins.pending))

    def _loader_starts(
        self, original: Original, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        self._epochs += 1
        if self._epochs > 1 and not self._inside.calls:
            self._contain("the loader", self._tap.tell, EpochEnded(self._run))
        return original(*args, **kwargs)
