"""The blocks that statements open around what follows in them."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from dsguard.script.loop.calls import turns
from dsguard.script.loop.description import Around, Block, Condition, Context
from dsguard.script.loop.operators import conditions, negated
from dsguard.script.loop.values import Batch, Manager

if TYPE_CHECKING:
    from dsguard.script.module import LocalModule

_LEAVES = (ast.Return, ast.Continue)


def branches_of(tests: list[tuple[ast.expr, Any]], module: LocalModule) -> list[Block]:
    """A block for each condition of an ``if`` … ``elif`` chain, and one for its ``else``."""
    split = object()
    before: tuple[Condition, ...] = ()
    blocks = []
    for node, value in tests:
        own = conditions(value, node, module)
        blocks.append(Block(Around.BRANCH, module.locate(node), (*before, *own), split))
        before = (*before, *negated(own, node, module))
    last = tests[-1][0]
    return [*blocks, Block(Around.BRANCH, module.locate(last), before, split)]


def branch_of(node: ast.AST, module: LocalModule, split: object) -> Block:
    """A branch whose condition says nothing, such as an ``except`` or a ``case``."""
    return Block(Around.BRANCH, module.locate(node), (), split)


def loop_of(node: ast.For | ast.AsyncFor | ast.While, over: Any, module: LocalModule) -> Block:
    """The block of a loop."""
    source = turns(over)
    return Block(
        Around.LOOP,
        module.locate(node),
        loader=source.loader if source is not None else None,
        is_prepared=source is not None and source.is_prepared,
        of_batch=isinstance(over, Batch),
    )


def turn_of(over: Any) -> Any:
    """What the target of a ``for`` over a loader stands for; None where it is no loader."""
    source = turns(over)
    return Batch(source.loader) if source is not None else None


def manager_of(value: Any, node: ast.expr, module: LocalModule) -> Block:
    """The block of a ``with``."""
    context = value.context if isinstance(value, Manager) else Context.OTHER
    return Block(Around.CONTEXT, module.locate(node), context=context)


def skipped(node: ast.If, blocks: list[Block]) -> Block | None:
    """What holds for the statements behind an ``if`` that may skip them; None where it may not.

    ``blocks`` are those of its branches, the ``else`` last.
    """
    if not leaves(node):
        return None
    first, last = blocks[0], blocks[-1]
    if len(blocks) == 2 and not node.orelse and isinstance(node.body[-1], _LEAVES):
        return Block(Around.BRANCH, last.location, last.conditions, object())
    if len(blocks) == 2 and node.orelse and isinstance(node.orelse[-1], _LEAVES):
        return Block(Around.BRANCH, first.location, first.conditions, object())
    return Block(Around.BRANCH, first.location, (), object())


def leaves(statement: ast.If) -> bool:
    """Whether a branch may skip what follows in the block, other than for good."""
    waiting: list[tuple[ast.AST, bool]] = [(child, False) for child in statement.body]
    waiting += [(child, False) for child in statement.orelse]
    while waiting:
        node, in_loop = waiting.pop()
        if isinstance(node, ast.Return) or (isinstance(node, ast.Continue) and not in_loop):
            return True
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        inner = in_loop or isinstance(node, (ast.For, ast.AsyncFor, ast.While))
        waiting += [
            (child, inner)
            for child in ast.iter_child_nodes(node)
            if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case))
        ]
    return False
