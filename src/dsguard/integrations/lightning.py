"""The guard for Lightning with its DeepSpeed strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dsguard.integrations.held import HeldTraining

if TYPE_CHECKING:
    from lightning.pytorch.callbacks import Callback

    from dsguard.runtime import Guard
else:
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:
        from pytorch_lightning.callbacks import Callback


class GuardCallback(Callback):
    """Puts a guard on the engine that ``DeepSpeedStrategy`` makes, for each ``fit()``.

    ``Trainer(strategy="deepspeed", callbacks=[GuardCallback()])``. The engine is held to
    ``accumulate_grad_batches``.

    Args:
        options: the keyword arguments of :func:`dsguard.guard`.
    """

    def __init__(self, **options: Any) -> None:
        self._held = HeldTraining("Trainer(accumulate_grad_batches)", options)

    @property
    def guard(self) -> Guard | None:
        """The guard of the running or last training, None before it."""
        return self._held.guard

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """The engine is there now: attach."""
        asked = {"gradient_accumulation_steps": trainer.accumulate_grad_batches}
        self._held.attach(getattr(trainer.strategy, "deepspeed_engine", None), asked)

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Send the guard's metrics to Lightning's loggers, after each optimizer step."""
        metrics = self._held.metrics()
        if metrics:
            pl_module.log_dict(metrics, rank_zero_only=True)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Micro-batches that wait now go into the next epoch."""
        self._held.epoch_end()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Say what was really consumed, and let go of the engine."""
        self._held.end(speaks=trainer.is_global_zero)
