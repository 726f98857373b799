"""Questions about autograd that PyTorch answers without touching a device.

Every import of PyTorch waits until the first question: whoever asks one has imported it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

_DEPTH = 3
_NODES = 64


@lru_cache(maxsize=1)
def _questions() -> tuple[Any, Any, Any]:
    import torch

    task = getattr(torch._C, "_current_graph_task_id", None)
    compiler = getattr(torch, "compiler", None)
    # What the tracer of torch.compile knows; is_compiling() asks for TorchScript as well.
    compiling = (
        getattr(compiler, "is_dynamo_compiling", None)
        or getattr(compiler, "is_compiling", None)
        or (lambda: False)
    )
    executes = getattr(torch._C, "_will_engine_execute_node", None)
    return (task or (lambda: NO_TASK)), compiling, executes


NO_TASK = -1
"""What :func:`graph_task` answers outside of backward passes."""


def graph_task() -> Callable[[], int]:
    """PyTorch's own function that gives the number of the backward pass that is running.

    A checkpoint's second forward runs inside of one.
    """
    task: Callable[[], int] = _questions()[0]
    return task


def is_compiling() -> Callable[[], bool]:
    """PyTorch's own function that says whether ``torch.compile`` traces this call."""
    compiling: Callable[[], bool] = _questions()[1]
    return compiling


def first_tensor_with_graph(output: Any) -> Any:
    """The loss of a model's output, else the first of its tensors that has a graph; or None."""
    return next(tensors_with_graph(output), None)


def tensors_with_graph(output: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """The tensors of a model's output that a backward pass may start from, its loss first."""
    if output is None or depth < 0:
        return
    if hasattr(output, "grad_fn"):
        if output.grad_fn is not None:
            yield output
        return
    for part in _parts(output):
        yield from tensors_with_graph(part, depth - 1)


def _parts(output: Any) -> list[Any]:
    if isinstance(output, (list, tuple)) and not hasattr(output, "loss"):
        return list(output)
    if isinstance(output, Mapping) or (hasattr(output, "keys") and hasattr(output, "values")):
        named = dict(output)
    elif dataclasses.is_dataclass(output) and not isinstance(output, type):
        named = {field.name: getattr(output, field.name) for field in dataclasses.fields(output)}
    elif hasattr(output, "loss"):
        named = {"loss": output.loss}
    else:
        return []
    loss = named.pop("loss", None)
    return [loss, *named.values()]


def leaf_of(node: Any) -> Any:
    """The node of autograd that adds up the gradient of a parameter near to this node.

    None where none lies within the first nodes of its graph.
    """
    nodes = [node]
    for node in nodes:  # grows while it is walked
        if hasattr(node, "variable"):
            return node
        if len(nodes) > _NODES:
            return None
        for function, _ in node.next_functions:
            if function is not None:
                nodes.append(function)
    return None


class GradientCalls:
    """Has a function called as soon as a gradient reaches a node of autograd.

    ``node.register_prehook`` makes an ordered dict and a handle in Python, for every output of a
    model. ``Tensor.register_hook`` gives the node a dict of hooks that belongs to a tensor; this
    does the same with a tensor that carries nothing else.
    """

    def __init__(self) -> None:
        import torch

        self._carrier = torch.empty(0, device="cpu")

    def call(self, nodes: Iterable[Any], hook: Callable[[Any], None]) -> None:
        """Call the hook, with what reaches them, at each of these nodes."""
        carrier = self._carrier
        carrier._backward_hooks = {0: hook}
        for node in nodes:
            if hasattr(node, "_register_hook_dict"):
                node._register_hook_dict(carrier)
            else:
                node.register_prehook(hook)
        carrier._backward_hooks = None  # the nodes alone keep the hook and what it knows


def at_end() -> Callable[[Callable[[], None]], None]:
    """PyTorch's own function that has something called when the backward pass that is running ends.

    One that raises does not call it. DDP and FSDP finish their reductions by it.
    """
    import torch

    ends: Callable[[Callable[[], None]], None] = (
        torch.autograd.Variable._execution_engine.queue_callback
    )
    return ends


def accumulates() -> Callable[[Any], bool]:
    """What to ask inside a backward pass: whether it adds to the gradient at a leaf of the graph.

    ``torch.autograd.grad`` adds to none, and where the gradient of this leaf is what it was asked
    for, the question raises ``RuntimeError``. True where it cannot be told.
    """
    executes: Callable[[Any], bool] | None = _questions()[2]
    return executes or (lambda leaf: True)
