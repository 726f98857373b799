"""From what a framework hands its users to what a guard is put on."""

from __future__ import annotations

from typing import Any


def unwrapped(given: Any, optimizer: Any) -> tuple[Any, Any]:
    """The engine or model, and its optimizer, inside an ``Accelerator``; others as they are.

    Accelerate keeps a DeepSpeed engine in ``deepspeed_engine_wrapped`` and everything else that
    was prepared in ``_models`` and ``_optimizers`` (accelerate/accelerator.py).

    Raises:
        TypeError: nothing was prepared, or several models were and none is an engine.
    """
    if not hasattr(given, "deepspeed_engine_wrapped"):
        return given, optimizer
    wrapped = given.deepspeed_engine_wrapped
    if wrapped is not None:
        return wrapped.engine, optimizer
    models = getattr(given, "_models", [])
    if len(models) != 1:
        raise TypeError(
            f"this Accelerator has prepared {len(models)} models: call guard after prepare(), and "
            "pass the prepared model where there are several"
        )
    if optimizer is None and len(getattr(given, "_optimizers", [])) == 1:
        optimizer = given._optimizers[0]
    return models[0], getattr(optimizer, "optimizer", optimizer)
