"""By which constant a loss was divided last, read from its autograd graph.

Looks at the scalar end of the graph only, and only at numbers that lie on the CPU: nothing is
computed and no device is waited for.
"""

from __future__ import annotations

from typing import Any

_DEPTH = 8
_TRANSPARENT = (
    "AliasBackward",
    "CloneBackward",
    "ReshapeAliasBackward",
    "SqueezeBackward",
    "ToCopyBackward",
    "UnsqueezeBackward",
    "ViewBackward",
)


_MARK = "dsguard.output"


def mark_output(tensor: Any) -> None:
    """Remember in its graph that this tensor came out of the model."""
    tensor.grad_fn.metadata[_MARK] = True


def constant_divisors(loss: Any) -> tuple[float, ...]:
    """The constants that the last operations divided a scalar loss by, the last one first.

    A multiplication by 0.25 is a division by 4. Empty where there are none, or where the
    graph does not show them. What a model does before it returns is not looked at: see
    :func:`mark_output`.
    """
    node = getattr(loss, "grad_fn", None)
    divisors: list[float] = []
    for _ in range(_DEPTH):
        if node is None or _MARK in node.metadata:
            break
        name = node.name()
        inputs = node.next_functions
        if name.startswith(("DivBackward", "MulBackward")):
            constant = _constant(node, inputs)
            if constant is None:
                break
            divisors.append(constant if name.startswith("Div") else 1 / constant)
        elif not (name.startswith(_TRANSPARENT) or _reduces_a_scalar(node, name)):
            break
        node = _only_input(inputs)
    return tuple(divisors)


def _reduces_a_scalar(node: Any, name: str) -> bool:
    """``mean()`` or ``sum()`` of what is a scalar already."""
    sizes = getattr(node, "_saved_self_sym_sizes", None)
    return name.startswith(("MeanBackward", "SumBackward")) and sizes == ()


def _constant(node: Any, inputs: Any) -> float | None:
    """The number that a division or multiplication with one variable operand takes."""
    if sum(function is not None for function, _ in inputs) != 1:
        return None
    for name in ("_saved_other", "_saved_self"):
        other: Any = getattr(node, name, None)
        if isinstance(other, (int, float)):
            return float(other) or None
        if getattr(other, "ndim", None) == 0 and other.device.type == "cpu":
            return float(other) or None
    return None


def _only_input(inputs: Any) -> Any:
    found = [function for function, _ in inputs if function is not None]
    return found[0] if len(found) == 1 else None
