"""Loops over dicts that are written in the script: ``for config in (train, evaluation):``."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from dsguard.script.loop.dicts import DICT_READS
from dsguard.script.loop.values import Dict

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dsguard.script.loop.description import Block
    from dsguard.script.module import LocalModule

_ONE_OF_SEVERAL = "it is another dict in every turn of a loop"


class DictTurn(Struct, frozen=True):
    """The dicts that a loop goes through, and what its target stands for meanwhile.

    Which of them a statement of the body has changed is not followed: a change loses them all.
    """

    target: ast.Name
    body: list[ast.stmt]
    members: tuple[Dict, ...]
    stand_in: Dict

    @classmethod
    def of(
        cls, node: ast.stmt, over: Any, module: LocalModule, blocks: Iterable[Block]
    ) -> DictTurn | None:
        """The turns of a loop; None where it does not go through known dicts one by one."""
        if not isinstance(node, (ast.For, ast.AsyncFor)) or not isinstance(node.target, ast.Name):
            return None
        passed = getattr(over, "members", None)
        members = [m for m in passed if isinstance(m, Dict)] if isinstance(passed, tuple) else []
        if not members:
            return None
        where = module.locate(node.target)
        stand_in = Dict(members[0].node, where, tuple(blocks), lost=_ONE_OF_SEVERAL)
        return cls(node.target, node.body, tuple(members), stand_in)

    def end(self) -> None:
        """Note behind the body what it did to the dicts."""
        own = self.stand_in
        is_same = own.lost == _ONE_OF_SEVERAL and not own.entries
        if is_same and not _changes_part(self.body, self.target.id):
            return
        for member in self.members:
            member.lost = "a loop changes it"


def _changes_part(body: list[ast.stmt], name: str) -> bool:
    """Whether statements write below a key, as ``name["optimizer"]["params"] = …`` does."""
    for node in (found for statement in body for found in ast.walk(statement)):
        if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            part: ast.expr = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in DICT_READS:
                continue
            part = node.func.value
        else:
            continue
        while isinstance(part, ast.Subscript):
            part = part.value
        if isinstance(part, ast.Name) and part.id == name:
            return True
    return False
