"""Functions that are called as soon as a gradient reaches a node."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from dsguard.runtime.outputs import GradientCalls

torch = pytest.importorskip("torch")


class _Doubled(torch.autograd.Function):  # type: ignore[misc]
    """Two outputs from one node that is written in Python."""

    @staticmethod
    def forward(context: Any, x: Any) -> Any:
        return x * 2, x * 3

    @staticmethod
    def backward(context: Any, *gradients: Any) -> Any:
        first, second = gradients
        return first * 2 + second * 3


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    "outputs",
    [lambda x: (x * 2, x * 3), lambda x: x.chunk(2), _Doubled.apply],
    ids=["two nodes", "two outputs of a node", "a node in Python"],
)
def test_each_pass_is_seen_whichever_output_it_enters(
    outputs: Callable[[Any], Any], place: int
) -> None:
    called: list[Any] = []
    out = outputs(torch.ones(4, requires_grad=True))
    GradientCalls().call({tensor.grad_fn for tensor in out}, called.append)
    assert not called
    for passes in (1, 2):
        out[place].sum().backward(retain_graph=True)
        assert len(called) == passes


def test_each_node_calls_its_own() -> None:
    calls, called = GradientCalls(), []
    first, second = (torch.ones(2, requires_grad=True) * 2 for _ in range(2))
    for name, tensor in (("first", first), ("second", second)):
        calls.call([tensor.grad_fn], lambda gradient, name=name: called.append(name))
    second.sum().backward()
    first.sum().backward()
    assert called == ["second", "first"]


def test_a_hook_ends_with_the_graph() -> None:
    calls = GradientCalls()

    def hook(gradient: Any) -> None:
        raise AssertionError

    kept = weakref.ref(hook)
    tensor = torch.ones(2, requires_grad=True) * 2
    calls.call([tensor.grad_fn], hook)
    del hook
    gc.collect()
    assert kept() is not None
    del tensor
    gc.collect()
    assert kept() is None


def test_a_node_without_dicts_of_hooks() -> None:
    class Node:
        def __init__(self) -> None:
            self.hooks: list[Any] = []

        def register_prehook(self, hook: Any) -> None:
            self.hooks.append(hook)

    node = Node()
    GradientCalls().call([node], print)
    assert node.hooks == [print]
