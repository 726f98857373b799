"""The classes by which a script sets Accelerate or Lightning up."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dsguard.script.objects import External

SETUP_CLASSES = {
    "accelerate": ("Accelerator", "GradientAccumulationPlugin", "DeepSpeedPlugin"),
    "lightning": ("Trainer", "DeepSpeedStrategy"),
    "pytorch_lightning": ("Trainer", "DeepSpeedStrategy"),
}
"""By library, from whichever of its modules they are imported."""


def setup_class(callee: External) -> str | None:
    """The name of such a class, None for anything else."""
    return callee.last if callee.last in SETUP_CLASSES.get(callee.library, ()) else None
