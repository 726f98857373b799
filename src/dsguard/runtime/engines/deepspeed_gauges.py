"""What a DeepSpeed engine tells about the step it takes; nothing here waits for a device."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dsguard.runtime.engines.script import highest_learning_rate

if TYPE_CHECKING:
    from dsguard.runtime.engines.deepspeed_view import DeepSpeedView


class DeepSpeedGauges:
    """Implements :class:`dsguard.runtime.gauges.Gauges`."""

    def __init__(self, view: DeepSpeedView) -> None:
        self._view = view

    def learning_rate(self) -> float:
        """The highest of the parameter groups; 0 where the optimizer shows none."""
        return highest_learning_rate(self._view.engine.optimizer)

    def loss_scale(self) -> float | None:
        """The scale of the fp16 optimizer; that of ``torch_autocast`` lies on the device."""
        return self._view.loss_scale() if self._view.engine.fp16_enabled() else None

    def grad_norm(self) -> Any:
        """``engine.get_global_grad_norm()``.

        None where DeepSpeed keeps none: at ZeRO-0 without fp16 and bf16, and with
        ``compute_grad_norm`` false (``runtime/engine.py``, ``_take_model_step``).
        """
        tell = getattr(self._view.engine, "get_global_grad_norm", None)
        return tell() if tell is not None else None

    def monitor(self) -> tuple[Any, int] | None:
        """``engine.monitor`` and ``engine.global_samples``, over which it draws its own events."""
        engine = self._view.engine
        monitor = getattr(engine, "monitor", None)
        if monitor is None or not monitor.enabled:
            return None
        return monitor, int(engine.global_samples)
