"""One module of the script: the script itself or a local module it imports."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from msgspec import Struct

from dsguard.script.declaration import Constant
from dsguard.script.scope import Scope
from dsguard.script.syntax import Places, parse

if TYPE_CHECKING:
    from dsguard.model.source import Location, Source


class AttributeStore(Struct, frozen=True):
    """A place where an attribute of a named object gets a value."""

    owner: str
    name: str
    node: ast.AST


class LocalModule:
    """A module whose text is at hand.

    ``name`` is dotted, ``__main__`` for the script itself; ``depth`` counts imports from the
    script. ``functions``, ``imports`` and ``attribute_stores`` are all of them, at any depth;
    ``shared_names`` are those that functions change in a scope around them. ``scope`` holds
    its global names as far as the module has been followed.
    """

    def __init__(self, source: Source, name: str, depth: int) -> None:
        """Parse the text.

        Raises:
            UnreadableTextError: the text is no Python.
        """
        self.source = source
        self.name = name
        self.depth = depth
        self.tree = parse(source)
        self.places = Places(source)
        self.functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
        self.imports: list[ast.Import | ast.ImportFrom] = []
        self.attribute_stores: list[AttributeStore] = []
        shared: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.functions.append(node)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                self.imports.append(node)
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                shared.update(node.names)
            elif (store := attribute_store(node)) is not None:
                self.attribute_stores.append(store)
        self.shared_names = frozenset(shared)
        self.stored_attributes = frozenset(store.name for store in self.attribute_stores)
        self.followed = False
        self.scope = Scope(self)
        self.scope.bind("__name__", Constant(name))

    @property
    def is_script(self) -> bool:
        """Whether this is the script itself."""
        return self.depth == 0

    def locate(self, node: ast.AST) -> Location:
        """Where a node of this module stands."""
        return self.places.locate(node)

    def absolute(self, module: str | None, level: int) -> str | None:
        """The dotted name of a module in ``from … import``; relative names seen from here.

        A script that is run has no package, so its relative imports are taken from its folder,
        which is right when it is run as part of a package with ``-m``.
        """
        if not level:
            return module
        if self.is_script:
            return module if level == 1 else None
        parts = self.name.split(".")
        is_package = self.source.name.endswith("__init__.py")
        kept = len(parts) - level + is_package
        if kept < 0:
            return None
        return ".".join([*parts[:kept], *([module] if module else [])]) or None


def attribute_store(node: ast.AST) -> AttributeStore | None:
    """A node as ``owner.name = …`` or ``setattr(owner, "name", …)``, None where it is neither."""
    if isinstance(node, ast.Attribute):
        if not isinstance(node.ctx, ast.Load) and isinstance(node.value, ast.Name):
            return AttributeStore(node.value.id, node.attr, node)
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "setattr"
        and len(node.args) == 3
        and isinstance(owner := node.args[0], ast.Name)
        and isinstance(name := node.args[1], ast.Constant)
        and isinstance(name.value, str)
    ):
        return AttributeStore(owner.id, name.value, node)
    return None
