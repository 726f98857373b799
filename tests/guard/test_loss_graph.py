"""What a loss was divided by, read from its graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dsguard.runtime.loss_graph import constant_divisors, mark_output

torch = pytest.importorskip("torch")


def loss() -> Any:
    return (torch.ones(3, requires_grad=True) * 2).mean()


@pytest.mark.parametrize(
    ("divided", "divisors"),
    [
        (lambda x: x, ()),
        (lambda x: x / 4, (4.0,)),
        (lambda x: x * 0.25, (4.0,)),
        (lambda x: 0.25 * x, (4.0,)),
        (lambda x: x / torch.tensor(4.0), (4.0,)),
        (lambda x: x * torch.tensor(0.25), (4.0,)),
        (lambda x: (x / 2) / 3, (3.0, 2.0)),
        (lambda x: (x / 4).clone().view(1).squeeze(), (4.0,)),
        (lambda x: (x / 4).mean(), (4.0,)),
        (lambda x: (x / 4).double(), (4.0,)),
        (lambda x: x / 4 + torch.zeros((), requires_grad=True), ()),
        (lambda x: x + 1, ()),
        (lambda x: x * x, ()),
        (lambda x: x * 0, ()),
        (lambda x: x / torch.ones((), requires_grad=True), ()),
        (lambda x: x.detach() / 4, ()),
    ],
)
def test_divisors(divided: Callable[[Any], Any], divisors: tuple[float, ...]) -> None:
    assert constant_divisors(divided(loss())) == pytest.approx(divisors)


def test_divisions_inside_a_model_are_its_own() -> None:
    output = loss() / 4
    mark_output(output)
    assert constant_divisors(output) == ()
    assert constant_divisors(output / 2) == (2.0,)
    again = loss() / 4
    mark_output(again)
    again *= 0.5
    assert constant_divisors(again) == (2.0,)


def test_things_without_a_graph() -> None:
    assert constant_divisors(None) == ()
    assert constant_divisors(3.0) == ()
    assert constant_divisors(torch.ones(())) == ()


def test_a_long_chain_is_not_followed_for_ever() -> None:
    value = loss()
    for _ in range(100):
        value = value / 2
    assert len(constant_divisors(value)) <= 8
