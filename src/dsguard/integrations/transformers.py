"""The guard for the HF Trainer and what is built on it, such as TRL's trainers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from transformers import Trainer, TrainerCallback

from dsguard.integrations.held import HeldTraining
from dsguard.integrations.pace import PREFIX

if TYPE_CHECKING:
    from types import FrameType

    from dsguard.runtime import Guard


class GuardCallback(TrainerCallback):
    """Puts a guard on the engine that the Trainer makes, for each call of ``train()``.

    ``Trainer(..., callbacks=[GuardCallback()])``. The engine is held to the Trainer's own
    ``gradient_accumulation_steps`` and per-device batch. The Trainer divides the loss itself and
    ends the last window of an epoch early: both are known, the latter is noted.

    Args:
        trainer: the Trainer, where it cannot be told from the call that trains.
        options: the keyword arguments of :func:`dsguard.guard`.
    """

    def __init__(self, trainer: Trainer | None = None, **options: Any) -> None:
        self._trainer = trainer
        self._held = HeldTraining("TrainingArguments", options)

    @property
    def guard(self) -> Guard | None:
        """The guard of the running or last training, None before it."""
        return self._held.guard

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """The engine is there now: attach."""
        trainer = self._trainer or _calling_trainer()
        asked = {
            "gradient_accumulation_steps": args.gradient_accumulation_steps,
            "micro_batch_size": args.train_batch_size,
        }
        advice = "; pass it the trainer" if trainer is None else ""
        self._held.attach(getattr(trainer, "deepspeed", None), asked, advice)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Micro-batches that wait now go into the next epoch."""
        self._held.epoch_end()

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **kwargs: Any
    ) -> None:
        """Send the guard's metrics the way of the Trainer's own."""
        trainer = self._trainer or _calling_trainer()
        if trainer is None or any(key.startswith(PREFIX) for key in logs or ()):
            return
        metrics = self._held.metrics()
        if metrics:
            trainer.log(metrics)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Say what was really consumed, and let go of the engine."""
        self._held.end(speaks=state.is_world_process_zero)


def _calling_trainer() -> Trainer | None:
    """The Trainer whose method calls this callback.

    transformers hands a callback the model and the optimizer, not the Trainer nor the engine.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self")
        if isinstance(caller, Trainer):
            return caller
        frame = frame.f_back
    return None
