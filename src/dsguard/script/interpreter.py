"""Follows a script statement by statement, as Python would run it, without running it.

Calls of the script's own functions are followed to a small depth with the values they are
given; both branches of a condition that cannot be told are followed, and what they declare
is in doubt.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dsguard.script import constants
from dsguard.script.arguments import Arguments
from dsguard.script.calls import Calls
from dsguard.script.declaration import Constant, Unreadable
from dsguard.script.decorators import read_command
from dsguard.script.expressions import Expressions
from dsguard.script.imports import Imports, ModuleFinder
from dsguard.script.module import LocalModule
from dsguard.script.objects import (
    COMPUTED,
    Class,
    Function,
    Instance,
    Namespace,
    Parser,
    Value,
    holds_parser,
    members_of,
    truth,
)
from dsguard.script.reading import Reading
from dsguard.script.scope import Names, Scope, merged, stored_names

_MOST_STATEMENTS = 300_000
_DEEPEST_CALL = 8
_DEEPEST_BLOCK = 60

_PARSER_WORDS = re.compile(
    r"ArgumentParser|TrlParser|add_argument|set_defaults|parse_\w*args|add_config_arguments"
    r"|(?:Arguments|Config)\("
)
_CONDITION = "it is declared only under a condition"
_TRY = (ast.Try, getattr(ast, "TryStar", ast.Try))
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Interpreter:
    """Follows one script and fills a :class:`Reading`."""

    def __init__(self, reading: Reading, find_module: ModuleFinder | None) -> None:
        self.reading = reading
        self._imports = Imports(find_module, self.follow)
        self.calls = Calls(self)
        self.expressions = Expressions(self.calls.read, self._imports.loaded)
        self._results: dict[tuple[ast.AST, bool], Value] = {}
        self._visited: set[ast.AST] = set()
        self._concerned: dict[ast.AST, bool] = {}
        self._stack: list[ast.AST] = []
        self._returns: list[list[Value]] = []
        self._blocks = 0
        self._statements = 0

    def follow(self, module: LocalModule) -> None:
        """Run a module's own statements, once."""
        if not module.followed:
            module.followed = True
            self._block(module.tree.body, module.scope)

    def follow_rest(self, module: LocalModule) -> None:
        """Run the functions that nothing in sight calls, on arguments that are not known."""
        self.reading.reached = False
        for node in module.functions:
            if node not in self._visited:
                self.call_function(Function(node, module.scope), Arguments(starred=True))
        self.reading.reached = True

    # Calls of the script's own functions and classes.

    def call_function(self, function: Function, arguments: Arguments) -> Value:
        """Follow a call of a function of the script and give what it returns.

        A function that has nothing to do with parsers, and is given none, is followed once.
        """
        node, module = function.node, function.scope.module
        is_told = any(holds_parser(value) for value in arguments.all) or (
            isinstance(function.bound, (Parser, Instance))
            or (arguments.given and self._concerns(node, module))
        )
        key = (node, arguments.given)
        if not is_told and key in self._results:
            return self._results[key]
        if node in self._stack or len(self._stack) >= _DEEPEST_CALL:
            if any(holds_parser(value) for value in arguments.all):
                self.reading.gap("calls are too deep to follow the parser", module, node)
            return COMPUTED
        scope = Scope(module, function.scope)
        if is_told or not arguments.given:
            self._bind_parameters(function, arguments, scope)
        self._bind_unknown(node, scope)
        self._visited.add(node)
        self._stack.append(node)
        self._returns.append([])
        try:
            self._block(node.body, scope)
        finally:
            self._stack.pop()
            returned = self._returns.pop()
        is_async = isinstance(node, ast.AsyncFunctionDef)
        result = COMPUTED if is_async else _returned_value(returned)
        if not is_told:
            self._results[key] = result
        return result

    def create(self, of: Class, arguments: Arguments) -> Value:
        """Follow the making of an object of a class of the script."""
        made = self.calls.new_parser_of(of) or Instance(of)
        constructor = self.expressions.attribute(made, "__init__")
        if isinstance(constructor, Function):
            self.call_function(constructor, arguments)
        elif arguments.given and isinstance(made, Instance):
            return COMPUTED  # its attributes are what is passed, not what the class says
        return made

    def _concerns(self, node: ast.AST, module: LocalModule) -> bool:
        """Whether the text of a function has to do with parsers at all."""
        if node not in self._concerned:
            self._concerned[node] = bool(_PARSER_WORDS.search(module.places.text(node)))
        return self._concerned[node]

    def _bind_parameters(self, function: Function, arguments: Arguments, scope: Scope) -> None:
        spec = function.node.args
        positional = [*spec.posonlyargs, *spec.args]
        if not arguments.starred:
            first = len(positional) - len(spec.defaults)
            defaults = [*spec.defaults, *spec.kw_defaults]
            for parameter, default in zip(
                [*positional[first:], *spec.kwonlyargs], defaults, strict=True
            ):
                if default is not None:
                    value = self.expressions.evaluate(default, function.scope)
                    scope.bind(parameter.arg, value)
        given = list(arguments.positional)
        if function.bound is not None:
            given.insert(0, function.bound)
        for parameter, value in zip(positional, given, strict=False):
            scope.bind(parameter.arg, value)
        for parameter in [*positional, *spec.kwonlyargs]:
            if parameter.arg in arguments.keywords:
                scope.bind(parameter.arg, arguments.keywords[parameter.arg])

    def _bind_unknown(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        """Give the parameters that are still without a value an unknown one."""
        spec = node.args
        rest = [parameter for parameter in (spec.vararg, spec.kwarg) if parameter is not None]
        for parameter in [*spec.posonlyargs, *spec.args, *spec.kwonlyargs, *rest]:
            scope.names.setdefault(parameter.arg, Unreadable("the caller decides it"))

    # Statements.

    def _block(self, statements: Sequence[ast.stmt], scope: Scope) -> None:
        self._blocks += 1
        before = self.reading.doubt
        try:
            for statement in statements:
                self._statements += 1
                if self._statements > _MOST_STATEMENTS or self._blocks > _DEEPEST_BLOCK:
                    self.reading.gap("there is more code than is followed", scope.module, statement)
                    return
                self._statement(statement, scope)
                if isinstance(statement, ast.If) and _may_leave(statement):
                    self.reading.doubt = self.reading.doubt or _CONDITION
        finally:
            self._blocks -= 1
            self.reading.doubt = before

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        if isinstance(node, ast.Expr):
            self.expressions.evaluate(node.value, scope)
        elif isinstance(node, ast.Assign):
            value = self.expressions.evaluate(node.value, scope)
            for target in node.targets:
                self._assign(target, value, scope)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self._assign(node.target, self.expressions.evaluate(node.value, scope), scope)
        elif isinstance(node, ast.AugAssign):
            self._assign(node.target, self._changed(node, scope), scope)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._define_function(node, scope)
        elif isinstance(node, ast.ClassDef):
            bases = tuple(self.expressions.evaluate_all(node.bases, scope))
            scope.bind(node.name, Class(node, scope, bases))
            self.calls.note_class(bases)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            self._imports.bind(node, scope)
        elif isinstance(node, ast.If):
            self._if(node, scope)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            self._loop(node, scope)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            for item in node.items:
                self.expressions.evaluate(item.context_expr, scope)
                if item.optional_vars is not None:
                    self._assign(item.optional_vars, COMPUTED, scope)
            self._block(node.body, scope)
        elif isinstance(node, _TRY):
            self._try(node, scope)
        elif isinstance(node, ast.Match):
            self.expressions.evaluate(node.subject, scope)
            cases = [case.body for case in node.cases]
            self._forget([s for body in cases for s in body], scope)
            for name in stored_names([node]):
                scope.bind(name, COMPUTED)
            self._branches([*cases, []], scope)
        elif isinstance(node, ast.Return):
            value = Constant(None)
            result = self.expressions.evaluate(node.value, scope) if node.value else value
            if self._returns:
                self._returns[-1].append(result)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                self._assign(target, COMPUTED, scope)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.expressions.evaluate(child, scope)

    def _define_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        function = Function(node, scope)
        scope.bind(node.name, read_command(function, self.expressions, self.reading))

    def _assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            scope.bind(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            members = members_of(value)
            is_matching = members is not None and len(members) == len(target.elts)
            for i, element in enumerate(target.elts):
                member: Value = COMPUTED
                if isinstance(value, Namespace):
                    member = value
                elif members is not None and is_matching:
                    member = members[i]
                if isinstance(element, ast.Starred):
                    element, member = element.value, COMPUTED
                self._assign(element, member, scope)
        elif isinstance(target, ast.Attribute):
            owner = self.expressions.evaluate(target.value, scope)
            if isinstance(owner, Instance):
                # Other methods may change a plain value; a parser stays what it is.
                plain = isinstance(value, Constant)
                owner.attributes[target.attr] = COMPUTED if plain else value
        elif isinstance(target, ast.Subscript):
            self.expressions.evaluate(target.slice, scope)

    def _changed(self, node: ast.AugAssign, scope: Scope) -> Value:
        change = self.expressions.evaluate(node.value, scope)
        if isinstance(node.target, ast.Name):
            value = scope.find(node.target.id)
            if isinstance(value, Constant) and isinstance(change, Constant):
                return constants.binary(node.op, value.value, change.value) or COMPUTED
        return COMPUTED

    def _if(self, node: ast.If, scope: Scope) -> None:
        """A chain of conditions, read without going one level deeper for every ``elif``."""
        bodies: list[list[ast.stmt]] = []
        rest: list[ast.stmt] = [node]
        while len(rest) == 1 and isinstance(link := rest[0], ast.If):
            known = truth(self.expressions.evaluate(link.test, scope))
            if known is not False:
                bodies.append(link.body)
            if known is True:
                break
            rest = link.orelse
        else:
            bodies.append(rest)
        if len(bodies) == 1:
            self._block(bodies[0], scope)
        else:
            self._branches(bodies, scope)

    def _branches(self, bodies: list[list[ast.stmt]], scope: Scope) -> None:
        """Follow every branch from the same start; what they leave differently is not known."""
        names = {name for body in bodies for name in stored_names(body)}
        before = _part(scope.names, names)
        outcomes: list[Names] = []
        with self._in_doubt(_CONDITION):
            for body in bodies:
                _restore(scope.names, names, before)
                self._block(body, scope)
                if not (body and isinstance(body[-1], _ENDS)):
                    outcomes.append(_part(scope.names, names))
        _restore(scope.names, names, merged(outcomes) if outcomes else before)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, scope: Scope) -> None:
        self.expressions.evaluate(node.test if isinstance(node, ast.While) else node.iter, scope)
        if not isinstance(node, ast.While):
            self._assign(node.target, COMPUTED, scope)
        self._forget(node.body, scope)
        with self._in_doubt("it is declared in a loop"):
            self._block(node.body, scope)
        self._forget(node.body, scope)
        self._block(node.orelse, scope)

    def _try(self, node: ast.Try, scope: Scope) -> None:
        """The body counts; what a handler leaves otherwise is not known afterwards."""
        bodies = [node.body, node.orelse, *(handler.body for handler in node.handlers)]
        names = {name for body in bodies for name in stored_names(body)}
        names |= {handler.name for handler in node.handlers if handler.name}
        before = _part(scope.names, names)
        self._block(node.body, scope)
        self._block(node.orelse, scope)
        outcomes = [_part(scope.names, names)]
        with self._in_doubt("it is declared only after an error"):
            for handler in node.handlers:
                _restore(scope.names, names, before)
                self._forget(node.body, scope)
                if handler.name:
                    scope.bind(handler.name, COMPUTED)
                self._block(handler.body, scope)
                if not (handler.body and isinstance(handler.body[-1], _ENDS)):
                    outcomes.append(_part(scope.names, names))
        _restore(scope.names, names, merged(outcomes))
        self._block(node.finalbody, scope)

    def _forget(self, statements: list[ast.stmt], scope: Scope) -> None:
        """Constants that statements may change are no longer known."""
        for name in stored_names(statements):
            if isinstance(scope.names.get(name), Constant):
                scope.bind(name, Unreadable(f"{name} is set in more than one place"))

    @contextmanager
    def _in_doubt(self, reason: str) -> Iterator[None]:
        before = self.reading.doubt
        self.reading.doubt = before or reason
        try:
            yield
        finally:
            self.reading.doubt = before


def _returned_value(returned: list[Value]) -> Value:
    if not returned:
        return Constant(None)
    first = returned[0]
    if all(value == first for value in returned):
        return first
    told = {id(v): v for v in returned if isinstance(v, (Parser, Namespace))}
    return next(iter(told.values())) if len(told) == 1 else COMPUTED


def _part(names: Names, of: set[str]) -> Names:
    return {name: names[name] for name in of if name in names}


def _restore(names: Names, of: set[str], values: Names) -> None:
    for name in of:
        names.pop(name, None)
    names.update(values)


def _may_leave(node: ast.If) -> bool:
    """Whether a branch ends the block around it in a run that goes on."""
    rest: list[ast.stmt] = [node]
    while len(rest) == 1 and isinstance(rest[0], ast.If):
        body = rest[0].body
        if body and isinstance(body[-1], (ast.Return, ast.Continue, ast.Break)):
            return True
        rest = rest[0].orelse
    return bool(rest) and isinstance(rest[-1], (ast.Return, ast.Continue, ast.Break))
