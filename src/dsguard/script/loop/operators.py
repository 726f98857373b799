"""What operators make of the values of a loop: divisions of a loss, and conditions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from dsguard.script.declaration import Constant, FromArgument, Unreadable
from dsguard.script.loop.description import (
    Block,
    Condition,
    Counted,
    FromConfig,
    FromEngine,
    Given,
    Meaning,
)
from dsguard.script.loop.notes import given
from dsguard.script.loop.values import Batch, Derived, Made, Rank, Reciprocal, Remainder, Test

if TYPE_CHECKING:
    from dsguard.script.module import LocalModule

_RANK_NAMES = frozenset({"rank", "local_rank", "global_rank", "world_rank"})
_WITHOUT_RANKS = ("is_initialized", "is_available", "== -1")
"""What tests that only hold without several ranks are written with."""

_AMOUNTS = (Constant, FromArgument, FromEngine, FromConfig)


def binary(
    op: ast.operator,
    left: Any,
    right: Any,
    nodes: tuple[ast.AST, ast.AST],
    module: LocalModule,
    blocks: list[Block],
) -> Any:
    """``left op right`` where one side belongs to a loop; None where neither does."""
    if isinstance(op, ast.Mod) and not isinstance(left, (Constant, Derived)):
        return Remainder(given(right, nodes[1], module))
    if isinstance(left, Derived) or isinstance(right, Derived):
        return _of_loss(op, left, right, nodes, module, blocks)
    if isinstance(op, ast.Div) and left in (Constant(1), Constant(1.0)):
        return Reciprocal(given(right, nodes[1], module))
    for side in (left, right):
        if isinstance(side, Batch):
            return side
    if isinstance(op, ast.Mult) and isinstance(left, Counted):
        return left
    # A count that is divided may be put right by it.
    if isinstance(op, (ast.Mult, ast.Div, ast.FloorDiv)) and isinstance(right, Counted):
        return right
    return None


def _of_loss(
    op: ast.operator,
    left: Any,
    right: Any,
    nodes: tuple[ast.AST, ast.AST],
    module: LocalModule,
    blocks: list[Block],
) -> Derived:
    if isinstance(left, Derived) and isinstance(right, Derived):
        return Derived(left.engines | right.engines, is_sum=True)
    loss, other = (left, right) if isinstance(left, Derived) else (right, left)
    if isinstance(op, (ast.Div, ast.FloorDiv)) and loss is left:
        here = (given(other, nodes[1], module), tuple(blocks))
        return Derived(loss.engines, (*loss.divisions, here), loss.is_sum)
    if isinstance(op, ast.Mult):
        if isinstance(other, Reciprocal):
            return Derived(loss.engines, (*loss.divisions, (other.amount, tuple(blocks))))
        return loss
    if isinstance(op, (ast.Add, ast.Sub)):
        return Derived(loss.engines, is_sum=True)
    return Derived(loss.engines)


def compare(node: ast.Compare, left: Any, right: Any, module: LocalModule) -> Test | None:
    """One comparison as a condition; None where it is about nothing of a loop."""
    op = node.ops[0]
    where = (module.locate(node), module.places.excerpt(node))
    equal = isinstance(op, (ast.Eq, ast.Is))
    if isinstance(left, Remainder) or isinstance(right, Remainder):
        counter = left if isinstance(left, Remainder) else right
        if isinstance(op, (ast.Eq, ast.NotEq)):
            return Test((Condition(Meaning.EVERY_NTH, equal, *where, amount=counter.amount),))
        return None
    for side, other, place in ((left, right, node.left), (right, left, node.comparators[0])):
        if is_rank(side, place):
            holds = _first_rank(op, other)
            if holds is not None:
                return Test((Condition(Meaning.FIRST_RANK, holds, *where),))
    above = isinstance(op, ast.Gt) and right == Constant(1)
    if (above or (isinstance(op, ast.GtE) and right == Constant(2))) and isinstance(left, _AMOUNTS):
        amount = given(left, node.left, module)
        return Test((Condition(Meaning.ABOVE_ONE, True, *where, amount=amount),))
    return None


def is_rank(value: Any, node: ast.AST) -> bool:
    """Whether an expression is the number of this process."""
    if isinstance(value, Rank):
        return True
    if isinstance(value, FromArgument):
        return value.name in _RANK_NAMES
    if not isinstance(value, (Unreadable, Made)):
        return False
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    return name.lstrip("_").lower() in _RANK_NAMES


def _first_rank(op: ast.cmpop, other: Any) -> bool | None:
    if not isinstance(other, Constant):
        return None
    value = other.value
    if isinstance(op, (ast.Eq, ast.Is)) and value == 0:
        return True
    if isinstance(op, (ast.NotEq, ast.IsNot)) and value == 0:
        return False
    if isinstance(value, (tuple, list)) and sorted(map(str, value)) == ["-1", "0"]:
        return {ast.In: True, ast.NotIn: False}.get(type(op))
    if isinstance(value, int):
        if (isinstance(op, ast.LtE) and value == 0) or (isinstance(op, ast.Lt) and value == 1):
            return True
        if isinstance(op, ast.Gt) and value == 0:
            return False
    return None


def conditions(value: Any, node: ast.expr, module: LocalModule) -> tuple[Condition, ...]:
    """A test as conditions that all have to hold."""
    if isinstance(value, Test):
        return value.conditions
    where = (module.locate(node), module.places.excerpt(node))
    if isinstance(value, Remainder):
        return (Condition(Meaning.EVERY_NTH, False, *where, amount=value.amount),)
    if is_rank(value, node):
        return (Condition(Meaning.FIRST_RANK, False, *where),)
    return (Condition(Meaning.OTHER, True, *where),)


def negated(
    found: tuple[Condition, ...], node: ast.expr, module: LocalModule
) -> tuple[Condition, ...]:
    """The conditions of the branch that is taken where they do not hold."""
    if len(found) != 1:
        return (Condition(Meaning.OTHER, False, module.locate(node), module.places.excerpt(node)),)
    (one,) = found
    return (Condition(one.meaning, not one.holds, one.location, one.text, one.amount),)


def boolean(
    op: ast.boolop, values: list[Any], nodes: list[ast.expr], module: LocalModule
) -> Test | None:
    """``and`` and ``or`` of tests; None where none of them is about a loop."""
    if not any(isinstance(value, (Test, Remainder, Rank)) for value in values):
        return None
    each = [conditions(value, node, module) for value, node in zip(values, nodes, strict=True)]
    if isinstance(op, ast.And):
        return Test(tuple(one for found in each for one in found))
    # "every n-th time, or at the end" is every n-th time.
    for found in each:
        if len(found) == 1 and found[0].meaning is Meaning.EVERY_NTH and found[0].holds:
            return Test(found)
    distributed = [
        found
        for found in each
        if not any(mark in one.text for one in found for mark in _WITHOUT_RANKS)
    ]
    if len(distributed) == 1 and len(distributed[0]) == 1:
        (one,) = distributed[0]
        return Test((one,)) if one.meaning is Meaning.FIRST_RANK and one.holds else None
    return None


def is_above_one(blocks: tuple[Block, ...], amount: Given) -> bool:
    """Whether blocks are only there to leave out an amount of 1."""
    tests = [condition for block in blocks for condition in block.conditions]
    return all(
        test.meaning is Meaning.ABOVE_ONE
        and test.holds
        and test.amount is not None
        and (test.amount.value == amount.value or test.amount.text == amount.text)
        for test in tests
    )
