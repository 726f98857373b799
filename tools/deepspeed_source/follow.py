"""Follows DeepSpeed's config object through the source that reads it.

A small interpreter: it runs every branch of every function that is handed the config or a part of
it, knows constants and parts of the config, and takes everything else for unknown.
"""

from __future__ import annotations

import ast
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from deepspeed_source.models import Models
from deepspeed_source.sources import Module, Sources
from deepspeed_source.values import (
    UNKNOWN,
    AnyKey,
    Class,
    Function,
    Items,
    Method,
    Object,
    Part,
    Scope,
    carries,
    either,
)

NO_DEFAULT: Any = object()
"""Marks a key that is only asked for, or read without a default."""

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
}

_SAME = frozenset({"copy", "deepcopy", "dict", "list", "tuple", "sorted", "set"})
"""Functions whose result is read like their argument."""


class Reader:
    """Follows the config through a package and notes every key that is asked for.

    ``reads`` maps dotted paths to the defaults they are read with, and ``models`` to the
    pydantic classes that blocks are handed to, which ``declared`` can read.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self.reads: dict[str, list[Any]] = {}
        self.models: dict[str, Class] = {}
        self.declared = Models(self)
        self._running: list[Any] = []
        self._done: dict[Any, Any] = {}

    def start(self, module_name: str, name: str, parts: dict[str, str]) -> None:
        """Call a function or class, if the release has it, with parts of the config."""
        module = self._sources.module(module_name)
        first, *rest = name.split(".")
        if module is None or first not in module.definitions:
            return
        callee = self.resolve(module, first)
        for attribute in rest:
            callee = self._attribute(callee, attribute)
        self._call(callee, [], {key: Part((path,)) for key, path in parts.items()}, [])

    def scan(self, module_name: str, path: str) -> None:
        """Note what a module reads from any attribute called like the path."""
        module = self._sources.module(module_name)
        for body in module.definitions.values() if module else ():
            for node in ast.walk(body):
                asked = None
                if isinstance(node, ast.Subscript):
                    holder, asked = node.value, node.slice
                elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                    holder = node.func.value if node.func.attr == "get" else node
                    asked = node.args[0] if node.args else None
                if (
                    isinstance(asked, ast.Constant)
                    and isinstance(asked.value, str)
                    and isinstance(holder, ast.Attribute)
                    and holder.attr == path
                ):
                    self._read(Part((path,)).child(asked.value))

    def table(self, name: str) -> list[str]:
        """The keys of a dictionary of the module of DeepSpeedConfig."""
        module = self._sources.module("deepspeed.runtime.config")
        value = self.resolve(module, name) if module else UNKNOWN
        return list(value) if isinstance(value, dict) else []

    def _read(self, part: Part, default: Any = NO_DEFAULT) -> Part:
        for path in part.paths:
            defaults = self.reads.setdefault(path, [])
            if default is not NO_DEFAULT and default not in defaults:
                defaults.append(default)
        return part

    def _check(self, part: Any, kind: Class) -> None:
        """Note that a model is made of a part of the config, or of several by the field."""
        if isinstance(part, dict):
            for name, setting in self.declared.settings(kind).items():
                for model in setting.models if isinstance(part.get(name), Part) else ():
                    self._check(part[name], model)
        elif isinstance(part, Part):
            for path in part.paths:
                self._read(part)
                self.models[path] = kind
                for name, setting in self.declared.settings(kind).items():
                    for model in setting.models:
                        self._check(Part((path,)).child(name), model)

    # Names

    def resolve(self, module: Module, name: str) -> Any:
        """What a name means at the top level of a module."""
        key = (module.name, name)
        if key not in self._done:
            self._done[key] = UNKNOWN  # while it is looked up, it cannot depend on itself
            self._done[key] = self._look_up(module, name)
        return self._done[key]

    def _look_up(self, module: Module, name: str) -> Any:
        if name in module.definitions:
            node = module.definitions[name]
            if isinstance(node, ast.ClassDef):
                return Class(module, node)
            assert isinstance(node, ast.FunctionDef)
            return Function(module, node)
        if name in module.values:
            return self.value(module.values[name], Scope(module))
        if name in module.imports:
            return self._imported(*module.imports[name])
        for star in module.stars:
            other = self._sources.module(star)
            found = self.resolve(other, name) if other else UNKNOWN
            if found is not UNKNOWN:
                return found
        return UNKNOWN

    def _imported(self, base: str, name: str | None) -> Any:
        if name is None:
            return self._sources.module(base) or (sys if base == "sys" else UNKNOWN)
        module = self._sources.module(base)
        found = self.resolve(module, name) if module else UNKNOWN
        return found if found is not UNKNOWN else self._sources.module(f"{base}.{name}") or UNKNOWN

    def _attribute(self, of: Any, name: str) -> Any:
        if isinstance(of, Module):
            return self.resolve(of, name)
        if of is sys:
            return getattr(sys, name)
        if isinstance(of, Object):
            if name in of.attributes:
                return of.attributes[name]
            return self._method(of.kind, name, of)
        if isinstance(of, Class):
            for node in of.node.body:
                if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name:
                    return self.value(node.value, Scope(of.module))
            return self._method(of, name, of)
        return UNKNOWN if of is UNKNOWN else Method(of, name)

    def _method(self, kind: Class, name: str, owner: Object | Class) -> Any:
        for ancestor in self.ancestors(kind):
            for node in ancestor.node.body:
                if isinstance(node, ast.FunctionDef) and node.name == name:
                    return Function(ancestor.module, node, owner)
        return UNKNOWN

    def ancestors(self, kind: Class) -> Iterator[Class]:
        """A class and those it is made from, the nearest first."""
        yield kind
        for base in kind.node.bases:
            found = self.value(base, Scope(kind.module))
            if isinstance(found, Class):
                yield from self.ancestors(found)

    # Expressions

    def value(self, node: ast.expr | None, scope: Scope) -> Any:
        """What an expression gives; keys that it asks for are noted."""
        if node is None:
            return None
        handler = getattr(self, f"_of_{type(node).__name__.lower()}", None)
        if handler is not None:
            return handler(node, scope)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, scope)
        return UNKNOWN

    def _of_constant(self, node: ast.Constant, scope: Scope) -> Any:
        return node.value

    def _of_name(self, node: ast.Name, scope: Scope) -> Any:
        if node.id in scope.names:
            return scope.names[node.id]
        return self.resolve(scope.module, node.id)

    def _of_attribute(self, node: ast.Attribute, scope: Scope) -> Any:
        return self._attribute(self.value(node.value, scope), node.attr)

    def _of_list(self, node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> Any:
        return [self.value(item, scope) for item in node.elts]

    _of_tuple = _of_set = _of_list

    def _of_dict(self, node: ast.Dict, scope: Scope) -> Any:
        made = {}
        for key, value in zip(node.keys, node.values, strict=True):
            given = self.value(value, scope)
            name = self.value(key, scope)
            if isinstance(name, str):
                made[name] = given
        return made

    def _of_dictcomp(self, node: ast.DictComp, scope: Scope) -> Any:
        (generator,) = node.generators
        made = {}
        for _ in self._walk(generator.target, self.value(generator.iter, scope), scope):
            key, value = self.value(node.key, scope), self.value(node.value, scope)
            if isinstance(key, str):
                made[key] = value
        return made

    def _of_listcomp(
        self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, scope: Scope
    ) -> Any:
        for generator in node.generators:
            for _ in self._walk(generator.target, self.value(generator.iter, scope), scope):
                self.value(node.elt, scope)
        return UNKNOWN

    _of_generatorexp = _of_setcomp = _of_listcomp

    def _of_subscript(self, node: ast.Subscript, scope: Scope) -> Any:
        of, key = self.value(node.value, scope), self.value(node.slice, scope)
        if isinstance(of, Part):
            if isinstance(key, str):
                return self._read(of.child(key)) if isinstance(node.ctx, ast.Load) else UNKNOWN
            return of.child("*") if isinstance(key, AnyKey) else UNKNOWN
        try:
            return of[key] if isinstance(of, dict | list) else UNKNOWN
        except (KeyError, IndexError, TypeError):
            return UNKNOWN

    def _of_compare(self, node: ast.Compare, scope: Scope) -> Any:
        left = self.value(node.left, scope)
        for comparison, right in zip(node.ops, node.comparators, strict=True):
            of = self.value(right, scope)
            is_in = isinstance(comparison, ast.In | ast.NotIn)
            if is_in and isinstance(of, Part) and isinstance(left, str):
                self._read(of.child(left))
        return UNKNOWN

    def _of_boolop(self, node: ast.BoolOp, scope: Scope) -> Any:
        return either([self.value(value, scope) for value in node.values])

    def _of_ifexp(self, node: ast.IfExp, scope: Scope) -> Any:
        self.value(node.test, scope)
        return either([self.value(node.body, scope), self.value(node.orelse, scope)])

    def _of_binop(self, node: ast.BinOp, scope: Scope) -> Any:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        plain = isinstance(left, int | float | str) and isinstance(right, int | float | str)
        return _OPERATORS[type(node.op)](left, right) if plain else UNKNOWN

    def _of_unaryop(self, node: ast.UnaryOp, scope: Scope) -> Any:
        value = self.value(node.operand, scope)
        negated = isinstance(node.op, ast.USub) and isinstance(value, int | float)
        return -value if negated else UNKNOWN

    # Calls

    def _of_call(self, node: ast.Call, scope: Scope) -> Any:
        callee = self.value(node.func, scope)
        given = [self.value(argument, scope) for argument in node.args]
        named = {k.arg: self.value(k.value, scope) for k in node.keywords if k.arg}
        spread = [self.value(k.value, scope) for k in node.keywords if not k.arg]
        name = getattr(node.func, "id", None) or getattr(node.func, "attr", "")
        if callee is UNKNOWN and name in _SAME and len(given) == 1:
            return given[0]
        if callee is UNKNOWN and name == "int" and isinstance(given[0], int | float):
            return int(given[0])
        return self._call(callee, given, named, spread)

    def _call(self, callee: Any, given: list[Any], named: dict[str, Any], spread: list[Any]) -> Any:
        if isinstance(callee, Method):
            return self._builtin(callee, given)
        if isinstance(callee, Class):
            return self._make(callee, given, named, spread)
        if isinstance(callee, Function):
            return self._run(callee, given, named)
        return UNKNOWN

    def _builtin(self, method: Method, given: list[Any]) -> Any:
        of, name = method.of, method.name
        if isinstance(of, Part):
            if name in ("get", "pop", "setdefault") and given and isinstance(given[0], str):
                default = given[1] if len(given) > 1 else None
                part = of.child(given[0])
                if name == "get" and not isinstance(default, Part):
                    return self._read(part, default)
                return self._read(part)
            return Items(of) if name == "items" else of
        if isinstance(of, dict) and name in ("items", "keys", "values"):
            return [list(pair) for pair in of.items()] if name == "items" else list(of)
        if isinstance(of, str) and name in ("lower", "upper"):
            return getattr(of, name)()
        return UNKNOWN

    def _make(self, kind: Class, given: list[Any], named: dict[str, Any], spread: list[Any]) -> Any:
        if self.declared.is_model(kind):
            for part in spread:
                self._check(part, kind)
            return UNKNOWN
        if any(getattr(base, "id", "") == "int" for base in kind.node.bases):
            return int(given[0]) if given and isinstance(given[0], int | float) else UNKNOWN
        made = Object(kind)
        if kind.node.name.endswith("Engine") or not carries([*given, *named.values()]):
            return made
        start = self._method(kind, "__init__", made)
        if isinstance(start, Function):
            self._run(start, given, named)
        return made

    def _run(self, function: Function, given: list[Any], named: dict[str, Any]) -> Any:
        owner = function.owner
        state = list(owner.attributes.values()) if isinstance(owner, Object) else []
        key = (function.node, repr(given), repr(named), id(owner))
        if not carries([*given, *named.values(), *state]) or key in self._running:
            return UNKNOWN
        if key in self._done:
            return self._done[key]
        scope = Scope(function.module, self._arguments(function, given, named))
        self._running.append(key)
        self.run(function.node.body, scope)
        self._running.pop()
        result = either(scope.returned)
        if isinstance(result, Part):
            for other in scope.returned:
                if isinstance(other, bool | int | float | str) and len(result.paths) == 1:
                    self._read(result, other)  # a function that gives the default itself
        self._done[key] = result
        return result

    def _arguments(
        self, function: Function, given: list[Any], named: dict[str, Any]
    ) -> dict[str, Any]:
        signature = function.node.args
        names = [argument.arg for argument in (*signature.posonlyargs, *signature.args)]
        decorators = {getattr(d, "id", "") for d in function.node.decorator_list}
        bound: dict[str, Any] = dict.fromkeys(names, UNKNOWN)
        first = len(names) - len(signature.defaults)
        for name, default in zip(names[first:], signature.defaults, strict=True):
            bound[name] = self.value(default, Scope(function.module))
        if function.owner is not None and "staticmethod" not in decorators and names:
            bound[names.pop(0)] = function.owner
        return bound | dict(zip(names, given, strict=False)) | named

    # Statements

    def run(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        """Run statements, all branches of them."""
        for node in body:
            if isinstance(node, ast.Assign):
                value = self.value(node.value, scope)
                for target in node.targets:
                    self._assign(target, value, scope)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                self._assign(node.target, self.value(node.value, scope), scope)
            elif isinstance(node, ast.Return):
                scope.returned.append(self.value(node.value, scope))
            elif isinstance(node, ast.Import | ast.ImportFrom):
                imported: dict[str, tuple[str, str | None]] = {}
                scope.module.add_import(node, imported)
                scope.names |= {name: self._imported(*of) for name, of in imported.items()}
            elif isinstance(node, ast.FunctionDef):
                scope.names[node.name] = Function(scope.module, node)
            elif isinstance(node, ast.For):
                for _ in self._walk(node.target, self.value(node.iter, scope), scope):
                    self._branch(node.body, scope)
            else:
                self._other(node, scope)

    def _other(self, node: ast.stmt, scope: Scope) -> None:
        """A statement that only matters for the expressions and statements inside it."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, scope)
            elif isinstance(child, ast.withitem):
                self.value(child.context_expr, scope)
        for name in ("body", "handlers", "orelse", "finalbody"):
            inner = getattr(node, name, [])
            for handler in inner if name == "handlers" else ():
                self._branch(handler.body, scope)
            if name != "handlers":
                self._branch(inner, scope)

    def _branch(self, body: Sequence[ast.stmt], scope: Scope) -> None:
        scope.branches += 1
        self.run(body, scope)
        scope.branches -= 1

    def _walk(self, target: ast.expr, over: Any, scope: Scope) -> Iterator[None]:
        """Bind the names of a loop to each value it may take."""
        if isinstance(over, Items):
            over = [[AnyKey(over.part), over.part.child("*")]]
        elif isinstance(over, Part):
            over = [AnyKey(over)]
        for item in over if isinstance(over, list) else [UNKNOWN]:
            self._assign(target, item, Scope(scope.module, scope.names))
            yield

    def _assign(self, target: ast.expr, value: Any, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            before = scope.names.get(target.id)
            if scope.branches and isinstance(before, Part):
                value = either([before, value])
            scope.names[target.id] = value
        elif isinstance(target, ast.Attribute):
            of = self.value(target.value, scope)
            if isinstance(of, Object):
                kept = either([of.attributes.get(target.attr, UNKNOWN), value])
                of.attributes[target.attr] = kept if isinstance(kept, Part) else value
        elif isinstance(target, ast.Tuple | ast.List):
            values = value if isinstance(value, list) else []
            for index, part in enumerate(target.elts):
                fits = len(values) == len(target.elts)
                self._assign(part, values[index] if fits else UNKNOWN, scope)
        elif isinstance(target, ast.Subscript):
            of, key = self.value(target.value, scope), self.value(target.slice, scope)
            if isinstance(of, dict) and isinstance(key, AnyKey):
                for name, default in of.items():  # defaults that the config's own keys replace
                    self._read(key.part.child(name), default)
