"""The classes by which a script sets a front end up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.script.objects import External
from dsguard.script.training_arguments import FRAMEWORK_CLASSES

if TYPE_CHECKING:
    from dsguard.script.objects import Value

SETUP_CLASSES = {
    "accelerate": ("Accelerator", "GradientAccumulationPlugin", "DeepSpeedPlugin"),
    "lightning": ("Trainer", "DeepSpeedStrategy"),
    "pytorch_lightning": ("Trainer", "DeepSpeedStrategy"),
}
"""Those of Accelerate and Lightning by library, from whichever of its modules they come."""


def setup_class(callee: External) -> str | None:
    """The name of such a class, None for anything else."""
    return callee.last if callee.last in SETUP_CLASSES.get(callee.library, ()) else None


def framework_of(value: Value) -> str | None:
    """The name of a class of training arguments of transformers or TRL, None for others."""
    if isinstance(value, External) and value.last in FRAMEWORK_CLASSES:
        libraries = {"transformers", "trl"}
        return value.last if value.library in libraries else None
    return None
