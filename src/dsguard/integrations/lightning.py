"""The guard for Lightning with its DeepSpeed strategy."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from dsguard.integrations.pace import Pace
from dsguard.runtime import Guard, guard
from dsguard.runtime.expectation import Asked

if TYPE_CHECKING:
    from lightning.pytorch.callbacks import Callback
else:
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:
        from pytorch_lightning.callbacks import Callback

_LOGGER = logging.getLogger("dsguard.guard")


class GuardCallback(Callback):
    """Puts a guard on the engine that ``DeepSpeedStrategy`` makes, for each ``fit()``.

    ``Trainer(strategy="deepspeed", callbacks=[GuardCallback()])``. The engine is held to
    ``accumulate_grad_batches``.

    Args:
        options: the keyword arguments of :func:`dsguard.guard`.

    ``guard`` is the guard of the running or last training, None before it.
    """

    def __init__(self, **options: Any) -> None:
        self.guard: Guard | None = None
        self._options = options
        self._pace = Pace()

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """The engine is there now: attach."""
        engine = getattr(trainer.strategy, "deepspeed_engine", None)
        if engine is None:
            _LOGGER.warning("GuardCallback found no DeepSpeed engine: the run is not guarded")
            return
        asked = {"gradient_accumulation_steps": trainer.accumulate_grad_batches}
        options = {"expect": Asked(asked, "Trainer(accumulate_grad_batches)"), **self._options}
        self.guard = guard(engine, **options)
        self._pace = Pace()

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Send the guard's metrics to Lightning's loggers, after each optimizer step."""
        if self.guard is None:
            return
        metrics = self._pace.metrics(self.guard)
        if metrics:
            pl_module.log_dict(metrics, rank_zero_only=True)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Micro-batches that wait now go into the next epoch."""
        if self.guard is not None:
            self.guard.epoch_end()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Say what was really consumed, and let go of the engine."""
        if self.guard is None:
            return
        self.guard.close()
        if trainer.is_global_zero:
            print(f"dsguard: {self.guard.summary()}")
