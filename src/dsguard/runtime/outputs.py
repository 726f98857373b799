"""Questions about autograd that PyTorch answers without touching a device.

Every import of PyTorch waits until the first question: whoever asks one has imported it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

_DEPTH = 3


@lru_cache(maxsize=1)
def _questions() -> tuple[Any, Any]:
    import torch

    task = getattr(torch._C, "_current_graph_task_id", None)
    compiler = getattr(torch, "compiler", None)
    compiling = getattr(compiler, "is_compiling", None) or (lambda: False)
    return (task or (lambda: -1)), compiling


def in_autograd() -> bool:
    """Whether this runs inside a backward pass, as a checkpoint's second forward does."""
    return bool(_questions()[0]() != -1)


def is_compiling() -> bool:
    """Whether ``torch.compile`` is tracing this call instead of running it."""
    return bool(_questions()[1]())


def first_tensor_with_graph(output: Any, depth: int = _DEPTH) -> Any:
    """The loss of a model's output, else the first of its tensors that has a graph; or None."""
    if output is None or depth < 0:
        return None
    if hasattr(output, "grad_fn"):
        return output if output.grad_fn is not None else None
    if isinstance(output, Mapping) or hasattr(output, "keys"):
        parts = [output["loss"]] if "loss" in output else list(output.values())
    elif isinstance(output, (list, tuple)):
        parts = list(output)
    elif hasattr(output, "loss"):
        parts = [output.loss]
    else:
        return None
    for part in parts:
        tensor = first_tensor_with_graph(part, depth - 1)
        if tensor is not None:
            return tensor
    return None
