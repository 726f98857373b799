"""What the script calls its engines."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from dsguard.script.loop.values import EngineValue

if TYPE_CHECKING:
    from dsguard.script.module import LocalModule


def name_engine(value: Any, node: ast.Assign, module: LocalModule) -> None:
    """Note the names that a statement gives an engine and what comes with it."""
    members = getattr(value, "members", None)
    first = members[0] if isinstance(members, tuple) and members else value
    if not isinstance(first, EngineValue) or not isinstance(node.value, ast.Call):
        return
    engine = first.engine
    if engine.location != module.locate(node.value):
        return
    target = node.targets[0]
    if isinstance(target, (ast.Tuple, ast.List)) and first is not value:
        engine.targets = tuple(module.places.excerpt(element) for element in target.elts)
        engine.targets_location = module.locate(target)
        if target.elts:
            engine.name = engine.targets[0]
    elif isinstance(target, (ast.Name, ast.Attribute)) and first is value:
        engine.name = module.places.excerpt(target)
