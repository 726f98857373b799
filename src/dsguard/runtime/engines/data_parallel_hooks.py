"""The hooks on a loop without DeepSpeed: forwards, backward passes and steps, told as moments.

A micro-batch is a forward of the model that a backward pass goes through. Passes are seen where
they enter the model's output, whatever computed the loss from it.
"""

from __future__ import annotations

import functools
import weakref
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from dsguard.runtime.batch_size import batch_size
from dsguard.runtime.engines.forward_hook import hook_forwards
from dsguard.runtime.engines.script import first_trainable, parameters_of
from dsguard.runtime.moments import (
    Backward,
    EvaluationForward,
    Forward,
    GradientsZeroed,
    StepCalled,
)
from dsguard.runtime.ordinary import BACKWARD, FORWARD, STEP
from dsguard.runtime.outputs import (
    NO_TASK,
    GradientCalls,
    accumulates,
    at_end,
    graph_task,
    leaf_of,
    tensors_with_graph,
)
from dsguard.runtime.run import Boundary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dsguard.runtime.engines.data_parallel_view import DataParallelView
    from dsguard.runtime.engines.tap import Tap
    from dsguard.runtime.patches import Patch
    from dsguard.runtime.windows import Window, Windows

_OUTPUTS = 8
"""Tensors of one output that are watched: a loss is computed from one of the first."""


class _Forward(msgspec.Struct):
    """One forward of the model, kept by its graph."""

    size: int | None
    keywords: bool
    leaf: Any
    counted: bool = False
    """Whether it is among the training forwards."""
    passed: bool = False
    """Whether a backward pass went through it: it is a micro-batch."""


class DataParallelHooks:
    """Puts the hooks of one guard on one model and its optimizer."""

    def __init__(self, model: Any, optimizer: Any, view: DataParallelView, tap: Tap) -> None:
        import torch

        self._is_grad_enabled = torch.is_grad_enabled
        self._view = view
        self._syncs = view.syncs
        self._optimizer = weakref.ref(optimizer)
        # Nothing in such a loop changes what was asked for.
        self._accumulation = view.expected_accumulation()
        self._micro_batch = view.micro_batch()
        self._tap = tap
        self._watch = tap.watch
        self._contain = tap.watch.contain
        self._graph_task = graph_task()
        self._accumulates = accumulates()
        self._at_gradient = GradientCalls().call
        self._at_end = at_end()
        self._run = tap.run
        self._run.boundary = Boundary.CALLER
        self._ordinary = tap.run.ordinary
        self._pass = -1
        """The backward pass that was seen last."""
        self._passing: list[int] = []
        """That one, if it was counted and has not come to its end."""
        self._passed = self._passing.clear
        self._samples: int | None = None
        """In the last training forward that was looked at."""
        self._unseen = ""
        """The type of an output since the last step that shows no tensor with a graph."""
        self._around = 0
        self._stepping = False
        self._closure = False
        self._dropped: tuple[str, int] | None = None
        """What cleared the gradients of a whole window, and how many micro-batches it had."""
        self._sees_clearing = view.keeps_gradients() and not view.foreign_optimizer()
        """Whether gradients that are gone were cleared by somebody."""
        self._synchronisation_matters = bool(view.needs_synchronised_step())
        self._watched = first_trainable(parameters_of(optimizer))
        if not self._sees_clearing:
            self._watched = _KeptElsewhere
        tap.handles.append(hook_forwards(model, self._see_forward, tap.watch))
        tap.handles.append(optimizer.register_step_pre_hook(self._before_step))
        tap.handles.append(optimizer.register_step_post_hook(self._after_step))
        tap.patches.replace(optimizer, "zero_grad", self._zero_grad)

    @property
    def _windows(self) -> Windows:
        return self._ordinary.windows()

    # Forward

    # What every micro-batch calls contains its hooks itself, and counts an ordinary micro-batch
    # on the spot; a call more would show.

    def _see_forward(
        self, model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any
    ) -> None:
        training = model.training
        again = self._graph_task() != NO_TASK  # checkpointing runs it a second time
        if self._stepping and not self._closure:  # the last step has raised
            self._stepping, self._run.interrupted = False, True
        if self._passing and not again:
            self._pass_failed()
        if not self._is_grad_enabled():
            if not again:
                windows = self._windows
                windows.forward_without_gradient()
                if not training and windows.open:
                    self._tap.tell(EvaluationForward(self._run))
            return
        node = getattr(output, "grad_fn", None)
        if node is not None:
            nodes = [node]
        else:
            nodes = [tensor.grad_fn for tensor in islice(tensors_with_graph(output), _OUTPUTS)]
        if not nodes:
            if training and not again:
                self._unseen = type(output).__name__
            return
        for sync in self._syncs:
            sync.forwarded()
        size = batch_size(args, kwargs, self._micro_batch)
        seen = _Forward(size, bool(kwargs), leaf_of(nodes[0]))
        if training and not again:
            seen.counted = True
            ordinary = self._ordinary
            if (
                ordinary.awaits == FORWARD
                and size == ordinary.samples
                and (
                    not ordinary.micro_batches or getattr(self._watched(), "grad", None) is not None
                )
            ):
                ordinary.awaits = BACKWARD
            else:
                self._count(seen, args, kwargs)
        self._at_gradient(nodes, functools.partial(self._see_gradient, seen))

    def _count(self, seen: _Forward, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        windows, size, expected = self._windows, seen.size, self._micro_batch
        if (
            windows.open
            and self._sees_clearing
            and not self._stepping
            and not self._has_gradients()
        ):
            self._lost("something")  # cleared by whoever
        self._dropped = None
        self._samples = size
        windows.forward(size)
        if self._tap.watches_batches:
            self._tap.batch(args, kwargs)
        if self._run.probing or (expected is not None and size != expected):
            self._tap.tell(Forward(self._run, size, seen.keywords))

    # Backward

    def _see_gradient(self, seen: _Forward, gradient: Any) -> None:
        if self._watch.stopped:
            return
        try:
            task = self._graph_task()
            again, seen.passed = seen.passed, True
            if task == self._pass:  # one loss of several forwards
                if seen.counted and not again:
                    self._windows.backward_joined()
                return
            try:
                accumulates = seen.leaf is None or self._accumulates(seen.leaf)
            except RuntimeError:
                accumulates = False
            if not accumulates:  # torch.autograd.grad, for a gradient penalty
                seen.passed = again
                return
            self._pass = task
            synchronised = True
            for sync in self._syncs:  # all of them: being asked tells them that it has begun
                synchronised = sync.synchronises() and synchronised
            if again:
                if self._passing:  # one that has raised is tried once more
                    self._at_end(self._passed)
                self._windows.backward_again(synchronised)
                return
            self._passing.append(task)
            self._at_end(self._passed)
            ordinary = self._ordinary
            last = ordinary.micro_batches + 1 == ordinary.accumulation
            if (
                ordinary.awaits == BACKWARD
                and seen.counted
                and synchronised == (last or ordinary.synchronised)
            ):
                if last:
                    ordinary.awaits = STEP
                else:
                    ordinary.micro_batches += 1
                    ordinary.awaits = FORWARD
                return
            if not seen.counted:
                self._count_in_evaluation(seen)
            windows, expected = self._windows, self._accumulation
            windows.backward(expected, synchronised)
            if self._run.probing or (expected is not None and windows.open > expected):
                self._tap.tell(Backward(self._run, None, False), in_autograd=True)
        except Exception as error:
            self._watch.failed("a gradient", error)

    def _pass_failed(self) -> None:
        """The last backward pass has raised, and the loop goes on."""
        self._passing.clear()
        self._run.interrupted = True
        self._windows.backward_failed()

    def _count_in_evaluation(self, seen: _Forward) -> None:
        """A model that is trained in evaluation mode."""
        seen.counted = True
        self._dropped = None
        self._windows.forward(seen.size)
        self._windows.tokens(None, None)  # its batch is gone
        self._tap.tell(Forward(self._run, seen.size, seen.keywords), in_autograd=True)

    # Step

    def _before_step(
        self, optimizer: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> None:
        if self._watch.stopped:
            return
        try:
            self._stepping = True
            if self._passing and self._graph_task() == NO_TASK:
                self._pass_failed()
            self._closure = kwargs.get("closure") is not None or (
                len(args) > 1 and any(arg is not None for arg in args[1:])
            )
            spotless = getattr(self._watched(), "grad", None) is not None  # nothing was cleared
            if not self._closure and (not spotless or self._ordinary.awaits != STEP):
                self._judge_step()
        except Exception as error:
            self._watch.failed("step", error)

    def _judge_step(self) -> None:
        windows = self._windows
        if self._dropped is not None:
            (what, pending), self._dropped = self._dropped, None
            self._tap.tell(GradientsZeroed(self._run, what, True, pending))
        elif windows.open and self._sees_clearing and not self._has_gradients():
            self._tap.tell(GradientsZeroed(self._run, "something", True, windows.open))
        seen = windows.forwards_since_step or windows.since_step or self._unseen
        if seen:
            self._around = 0
        elif self._has_gradients():
            self._around += 1
        if self._run.probing or not self._ends_window():
            self._tap.tell(StepCalled(self._run, self._unseen, self._around))

    def _ends_window(self) -> bool:
        """Whether this step ends a window as it should, as far as backward passes go."""
        windows = self._windows
        if not windows.since_step:
            return False
        if not self._synchronisation_matters:
            return True
        return windows.synchronised_last and windows.open - windows.unsynchronised <= 1

    def _after_step(self, optimizer: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        if self._watch.stopped:
            return
        try:
            self._stepping = False
            if self._closure:
                self._judge_step()
            self._unseen = ""
            if hasattr(optimizer, "found_inf"):
                # A scaler that leaves the skipping to the optimizer says so by this, in this call.
                self._tap.forget_parameters()
            ordinary = self._ordinary
            # Closed already where the step() of a subclass has called that of its base class.
            if ordinary.closes() or ordinary.awaits == FORWARD:
                return
            windows = self._windows
            windows.step_returned()
            if not windows.open:
                return
            self._tap.window_closed = window = windows.optimizer_step(applied=True)
            self._tap.settle()
            self._expect_the_like(window)
        except Exception as error:
            self._watch.failed("step", error)

    def _expect_the_like(self, window: Window) -> None:
        """Count on the spot what follows, where it is likely to be what this window was."""
        untold, samples, windows = self._tap.untold(window), self._samples, self._windows
        if untold is None or samples is None or windows.pending:
            return
        steps, every = window.micro_batches, window.unsynchronised == 0
        if every and steps > 1 and self._synchronisation_matters:
            return  # more often than it has to be: each step is told of it
        self._ordinary.expect(steps, samples, untold, steps=False, synchronised=every)

    # Gradients that are cleared

    def _zero_grad(self, patch: Patch) -> Callable[..., Any]:
        function, owner = patch.function, patch.owner

        def zero_grad(*args: Any, **kwargs: Any) -> Any:
            if patch.on and self._ordinary.open():
                self._contain("zero_grad", self._zeroed)
            return function(owner(), *args, **kwargs)

        return zero_grad

    def _zeroed(self) -> None:
        if self._graph_task() != NO_TASK:
            return
        if self._passing:
            self._pass_failed()
        if self._stepping:  # a closure evaluates its batch anew
            self._windows.reopen()
            return
        what = "the optimizer's zero_grad()"
        if self._has_gradients() or self._view.keeps_gradients():
            self._lost(what)
        elif self._windows.open < self._view.accumulation():
            self._tap.tell(GradientsZeroed(self._run, what, False))

    def _lost(self, what: str) -> None:
        pending, expected = self._windows.open, self._accumulation
        if expected is None or pending >= expected:
            # A whole window: left out on purpose, as a scaler does at an overflow, unless the
            # next thing is a step.
            self._dropped = what, pending
            if expected is None:
                self._windows.reopen()
            else:
                self._tap.window_closed = self._windows.optimizer_step(applied=False)
                self._tap.settle()
            return
        self._windows.reopen()
        self._tap.tell(GradientsZeroed(self._run, what, True, pending))

    def _has_gradients(self) -> bool:
        optimizer: Any = self._optimizer()  # alive, as it or its model calls this
        return any(parameter.grad is not None for parameter in parameters_of(optimizer))


class _KeptElsewhere:
    """Stands for a parameter whose gradient may be gone although nobody has cleared it."""

    grad = ...
