"""What an expression of the script stands for."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from dsguard.script import constants
from dsguard.script.declaration import Constant, FromArgument, Unreadable
from dsguard.script.loop import operators
from dsguard.script.loop.dicts import written_dict
from dsguard.script.loop.methods import Methods, item
from dsguard.script.loop.operators import boolean, compare, conditions, negated
from dsguard.script.loop.values import Batch, Derived, Dict, Rank, Remainder, Test
from dsguard.script.module import LocalModule
from dsguard.script.objects import (
    COMPUTED,
    LONGEST_NAME,
    App,
    Class,
    External,
    Function,
    Instance,
    Items,
    Method,
    Namespace,
    Parser,
    Value,
    truth,
)
from dsguard.script.scope import Scope

if TYPE_CHECKING:
    from dsguard.script.loop.notes import Notes

CallReader: TypeAlias = Callable[[ast.Call, Value, Scope], Value]
LoadedModules: TypeAlias = Callable[[str], "LocalModule | None"]

_DEEPEST = 60
_MOST_MEMBERS = 1000
_BUILTINS = frozenset(dir(builtins))
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Expressions:
    """Evaluates expressions in a scope.

    ``call`` decides what a call does; every call of an expression is handed to it in the
    order of evaluation. ``loaded`` gives a local module that was imported, by its name.
    ``notes`` collects what is done with engines.
    """

    def __init__(self, call: CallReader, loaded: LoadedModules, notes: Notes) -> None:
        self._call = call
        self._loaded = loaded
        self._notes = notes
        self._methods = Methods(notes)
        self._depth = 0
        self._bodies: dict[ast.ClassDef, dict[str, list[ast.stmt]]] = {}

    def evaluate(self, node: ast.expr, scope: Scope) -> Value:
        """What the expression stands for; Unreadable where only a run could tell."""
        if self._depth >= _DEEPEST:
            return Unreadable("the expression is nested too deeply")
        self._depth += 1
        try:
            return self._evaluate(node, scope)
        finally:
            self._depth -= 1

    def evaluate_all(self, nodes: Iterable[ast.expr], scope: Scope) -> list[Value]:
        """The values of several expressions, in order."""
        return [self.evaluate(node, scope) for node in nodes]

    def attribute(self, value: Value, name: str) -> Value:
        """What ``value.name`` stands for."""
        if isinstance(value, External):
            if len(value.name) > LONGEST_NAME:
                return COMPUTED
            path = f"{value.name}.{name}"
            return self._loaded(path) or External(path)
        if isinstance(value, LocalModule):
            found = value.scope.find(name) or self._loaded(f"{value.name}.{name}")
            return found or Unreadable(f"{value.name} does not define {name}")
        if isinstance(value, Namespace):
            return FromArgument(name)
        if isinstance(value, Instance):
            own = value.attributes.get(name)
            if own is None:
                own = self._member(value.of, name, value)
            if isinstance(own, Unreadable):
                return self._methods.attribute(value, name) or own
            return own
        if isinstance(value, Class):
            return self._member(value, name, value)
        if isinstance(value, Parser):
            member = self._member(value.of, name, value) if value.of else None
            return member if isinstance(member, Function) else Method(value, name)
        if isinstance(value, App):
            return Method(value, name)
        tracked: Value | None = self._methods.attribute(value, name)
        if tracked is not None:
            return tracked
        return Unreadable(f"{name} is an attribute of something computed")

    def _member(self, of: Class, name: str, bound: Value) -> Value:
        """An attribute as the class and its bases define it."""
        for base in of.lineage():
            if isinstance(base, External):
                break
            if isinstance(base, Class) and name in (body := self._names_of(base)):
                return self._class_attribute(base, body[name], name, bound)
        return Unreadable(f"{name} is not set where the class {of.node.name} is written")

    def _names_of(self, of: Class) -> dict[str, list[ast.stmt]]:
        """The statements of a class body by name, put together once."""
        if of.node not in self._bodies:
            self._bodies[of.node] = _class_names(of.node)
        return self._bodies[of.node]

    def _class_attribute(
        self, of: Class, statements: list[ast.stmt], name: str, bound: Value
    ) -> Value:
        statement = statements[-1]
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            kinds = {getattr(d, "id", "") for d in statement.decorator_list}
            if "property" in kinds:
                return Unreadable(f"{name} is a property")
            receiver = None if "staticmethod" in kinds else bound
            if receiver is of and "classmethod" not in kinds:
                receiver = None
            return Function(statement, of.scope, receiver)
        module = of.scope.module
        if len(statements) > 1 or name in module.stored_attributes:
            return Unreadable(f"{name} is set in more than one place")
        if any(isinstance(b, External) and b.library == "enum" for b in of.lineage()):
            is_plain = of.derives_from("builtins.str", "builtins.int", "enum.StrEnum")
            if not is_plain:
                return Unreadable(f"{name} is a member of an Enum")
        value = getattr(statement, "value", None)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and value is not None:
            return self._set_in_class(of, name, value)
        return Unreadable(f"{name} has no value in the class {of.node.name}")

    def _set_in_class(self, of: Class, name: str, node: ast.expr) -> Value:
        """What a class body sets a name to, which Python evaluates once, too."""
        if name not in of.attributes:
            of.attributes[name] = Unreadable(f"{name} is set to something made of it")
            value = self.evaluate(node, of.scope)
            if isinstance(value, Dict):
                value.kept = True
            of.attributes[name] = value
        return of.attributes[name]

    def _evaluate(self, node: ast.expr, scope: Scope) -> Value:
        if isinstance(node, ast.Constant):
            return Constant(node.value)
        if isinstance(node, ast.Name):
            return self._name(node.id, scope)
        if isinstance(node, ast.Attribute):
            owner = self.evaluate(node.value, scope)
            test = self._methods.test(owner, node.attr, node, scope.module)
            return test or self.attribute(owner, node.attr)
        if isinstance(node, ast.Call):
            return self._call(node, self.evaluate(node.func, scope), scope)
        if isinstance(node, (ast.Tuple, ast.List)):
            return self._items(node, scope)
        if isinstance(node, ast.Dict):
            return self._dict(node, scope)
        if isinstance(node, ast.BinOp):
            return self._binary(node, scope)
        if isinstance(node, ast.UnaryOp):
            operand = self.evaluate(node.operand, scope)
            if isinstance(node.op, ast.Not) and isinstance(operand, (Test, Remainder, Rank)):
                found = conditions(operand, node.operand, scope.module)
                return Test(negated(found, node, scope.module))
            result = (
                constants.unary(node.op, operand.value) if isinstance(operand, Constant) else None
            )
            return result or COMPUTED
        if isinstance(node, ast.BoolOp):
            return self._boolean(node, scope)
        if isinstance(node, ast.Compare):
            return self._compare(node, scope)
        if isinstance(node, ast.IfExp):
            return self._conditional(node, scope)
        if isinstance(node, ast.JoinedStr):
            return self._formatted(node, scope)
        if isinstance(node, ast.NamedExpr):
            value = self.evaluate(node.value, scope)
            scope.bind(node.target.id, value)
            return value
        if isinstance(node, ast.Await):
            return self.evaluate(node.value, scope)
        if isinstance(node, ast.Subscript):
            value = self.evaluate(node.value, scope)
            key = self.evaluate(node.slice, scope)
            if isinstance(value, Namespace):
                return value
            return item(value, key) or COMPUTED
        if isinstance(node, ast.Lambda):
            return COMPUTED
        return self._parts(node, scope)

    def _name(self, name: str, scope: Scope) -> Value:
        value = scope.find(name)
        if isinstance(value, Constant) and isinstance(value.value, (list, dict)):
            return Unreadable(f"{name} may change after it is written")
        if value is not None:
            return value
        if name in _BUILTINS:
            return External(f"builtins.{name}")
        return Unreadable(f"{name} is not defined where it could be read")

    def _items(self, node: ast.Tuple | ast.List, scope: Scope) -> Value:
        members = self.evaluate_all(node.elts, scope)
        if any(isinstance(element, ast.Starred) for element in node.elts) or not _few(members):
            return COMPUTED
        if all(isinstance(member, Constant) for member in members):
            values = [m.value for m in members if isinstance(m, Constant)]
            return Constant(tuple(values) if isinstance(node, ast.Tuple) else values)
        return Items(tuple(members))

    def _dict(self, node: ast.Dict, scope: Scope) -> Value:
        """A dict, such as a DeepSpeed config or the ``metadata=`` of a dataclass field."""
        keys = [self.evaluate(k, scope) if k is not None else COMPUTED for k in node.keys]
        values = self.evaluate_all(node.values, scope)
        return written_dict(node, keys, values, scope.module, self._notes.blocks)

    def _binary(self, node: ast.BinOp, scope: Scope) -> Value:
        left, right = self.evaluate(node.left, scope), self.evaluate(node.right, scope)
        if isinstance(left, Constant) and isinstance(right, Constant):
            return constants.binary(node.op, left.value, right.value) or COMPUTED
        return self.combined(node.op, left, right, (node.left, node.right), scope) or COMPUTED

    def combined(
        self,
        op: ast.operator,
        left: Value,
        right: Value,
        nodes: tuple[ast.AST, ast.AST],
        scope: Scope,
    ) -> Value | None:
        """``left op right`` of a loss, a counter or a batch; None for anything else."""
        made: Value | None = operators.binary(
            op, left, right, nodes, scope.module, self._notes.blocks
        )
        return made

    def _boolean(self, node: ast.BoolOp, scope: Scope) -> Value:
        values = self.evaluate_all(node.values, scope)
        test = boolean(node.op, values, node.values, scope.module)
        if test is not None:
            return test
        decides = isinstance(node.op, ast.Or)
        for value in values[:-1]:
            known = truth(value)
            if known is None:
                return COMPUTED
            if known is decides:
                return value
        return values[-1]

    def _compare(self, node: ast.Compare, scope: Scope) -> Value:
        left = self.evaluate(node.left, scope)
        rights = self.evaluate_all(node.comparators, scope)
        if len(rights) != 1:
            return COMPUTED
        op, right = node.ops[0], rights[0]
        test = compare(node, left, right, scope.module)
        if test is not None:
            return test
        if isinstance(op, (ast.Is, ast.IsNot)) and right == Constant(None):
            if isinstance(left, (Constant, Parser, Function, Class, Instance)):
                return Constant((left == right) is isinstance(op, ast.Is))
        elif isinstance(op, (ast.Eq, ast.NotEq)) and (
            isinstance(left, Constant) and isinstance(right, Constant)
        ):
            return Constant((left == right) is isinstance(op, ast.Eq))
        return COMPUTED

    def _conditional(self, node: ast.IfExp, scope: Scope) -> Value:
        known = truth(self.evaluate(node.test, scope))
        if known is not None:
            return self.evaluate(node.body if known else node.orelse, scope)
        one, other = self.evaluate(node.body, scope), self.evaluate(node.orelse, scope)
        return one if one == other else COMPUTED

    def _formatted(self, node: ast.JoinedStr, scope: Scope) -> Value:
        parts: list[object] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = self.evaluate(part.value, scope)
                plain = part.conversion == -1 and part.format_spec is None
                if not (plain and isinstance(value, Constant)):
                    return COMPUTED
                parts.append(value.value)
            elif isinstance(part, ast.Constant):
                parts.append(part.value)
        return constants.formatted(parts) or COMPUTED

    def _parts(self, node: ast.expr, scope: Scope) -> Value:
        """Any other expression: the calls within it happen, its value is not followed."""
        flowing: list[Value] = []
        if isinstance(node, _COMPREHENSIONS):
            scope = Scope(scope.module, scope)
            for generator in node.generators:
                turn: Value = Unreadable("it changes with every turn of a loop")
                source = self.evaluate(generator.iter, scope)
                if isinstance(source, (Batch, Derived)):
                    turn = source
                    flowing.append(source)
                for target in ast.walk(generator.target):
                    if isinstance(target, ast.Name):
                        scope.bind(target.id, turn)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.evaluate(child, scope)
            elif isinstance(child, ast.comprehension):
                self.evaluate_all(child.ifs, scope)
        return flowing[0] if flowing else COMPUTED


def _few(members: Iterable[object]) -> bool:
    """Whether a nest of tuples and lists is small; ``s = (s, s)`` doubles it line by line.

    Values are compared, which takes as long as there are members.
    """
    pending, count = list(members), 0
    while pending and count <= _MOST_MEMBERS:
        count += 1
        value = pending.pop()
        if isinstance(value, Items):
            pending.extend(value.members)
        elif isinstance(value, Constant):
            pending.append(value.value)
        elif isinstance(value, (tuple, list)):
            pending.extend(value)
    return count <= _MOST_MEMBERS


def _class_names(node: ast.ClassDef) -> dict[str, list[ast.stmt]]:
    """The statements of a class body that give each name a value."""
    names: dict[str, list[ast.stmt]] = {}
    for statement in node.body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.setdefault(statement.name, []).append(statement)
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                if isinstance(target, ast.Name):
                    names.setdefault(target.id, []).append(statement)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            names.setdefault(statement.target.id, []).append(statement)
    return names
