"""Follows a script statement by statement, as Python would run it, without running it.

Calls of the script's own functions are followed to a small depth with the values they are
given; both branches of a condition that cannot be told are followed, and what they declare
is in doubt.
"""

from __future__ import annotations

import ast
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dsguard.script import constants
from dsguard.script.arguments import Arguments
from dsguard.script.calls import Calls
from dsguard.script.declaration import Constant, Unreadable
from dsguard.script.expressions import Expressions
from dsguard.script.imports import Imports, ModuleFinder
from dsguard.script.loop.blocks import (
    branch_of,
    branches_of,
    loop_of,
    manager_of,
    skipped,
    turn_of,
)
from dsguard.script.loop.description import Block, Does, FromConfig
from dsguard.script.loop.dict_turn import DictTurn
from dsguard.script.loop.dicts import store, store_below
from dsguard.script.loop.naming import name_engine
from dsguard.script.loop.values import (
    Batch,
    Derived,
    Dict,
    EngineValue,
    Made,
    ModuleValue,
    Opened,
    Test,
    Turns,
    is_followed,
)
from dsguard.script.objects import (
    COMPUTED,
    Class,
    External,
    Function,
    Instance,
    Namespace,
    Parser,
    Value,
    holds_parser,
    members_of,
    truth,
)
from dsguard.script.scope import Part, Scope, stored_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dsguard.script.module import LocalModule
    from dsguard.script.reading import Reading

_MOST_STATEMENTS = 300_000
_DEEPEST_CALL = 8
_DEEPEST_BLOCK = 60
_MOST_SKIPS = 100
"""How many ``if x: return`` of one block are told apart; further ones are one that says nothing."""
_MOST_CALLS = 40
"""How often one function is followed with values of its own."""

_PARSER_WORDS = (
    r"ArgumentParser|TrlParser|add_argument|set_defaults|parse_(?:(?!parse_)\w)*args|add_config_arguments"
    r"|(?:Arguments|Config)\("
)
_TRAINING_WORDS = r"deepspeed|[aA]ccelerat"
_CONDITION = "it is declared only under a condition"
_TRY = (ast.Try, getattr(ast, "TryStar", ast.Try))
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Interpreter:
    """Follows one script and fills a :class:`Reading`."""

    def __init__(self, reading: Reading, find_module: ModuleFinder | None) -> None:
        self.reading = reading
        self._imports = Imports(find_module, self.follow)
        self.calls = Calls(self)
        self.expressions = Expressions(self.calls.read, self._imports.loaded, reading.loop)
        self._results: dict[tuple[ast.AST, bool], Value] = {}
        self._visited: set[ast.AST] = set()
        self._made: set[ast.AST] = set()
        self._calls: dict[ast.AST, int] = {}
        self._concerned: dict[ast.AST, bool] = {}
        self._stack: list[ast.AST] = []
        self._returns: list[list[Value]] = []
        self._blocks = 0
        self._statements = 0

    def local_modules(self) -> list[LocalModule]:
        """The modules of the user's own that the script imports."""
        return self._imports.local()

    def follow(self, module: LocalModule) -> None:
        """Run a module's own statements, once."""
        if not module.followed:
            module.followed = True
            self._block(module.tree.body, module.scope)

    def follow_rest(self, module: LocalModule) -> None:
        """Run the functions that nothing in sight calls, on arguments that are not known."""
        self.reading.reached = False
        self._follow_classes(module)
        for node in module.functions:
            if node not in self._visited:
                self.call_function(Function(node, module.scope), Arguments(starred=True))
        self.reading.reached = True

    def _follow_classes(self, module: LocalModule) -> None:
        """Run the methods of classes that train and that nothing in sight makes an object of."""
        for of in [value for value in module.scope.names.values() if isinstance(value, Class)]:
            if of.node in self._made or of.scope.module is not module:
                continue
            if not re.search(_TRAINING_WORDS, module.places.text(of.node)):
                continue
            made = self.create(of, Arguments())
            for statement in of.node.body:
                if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    continue
                if statement not in self._visited:
                    method = Function(statement, of.scope, made)
                    self.call_function(method, Arguments(starred=True))

    # Calls of the script's own functions and classes.

    def call_function(self, function: Function, arguments: Arguments) -> Value:
        """Follow a call of a function of the script and give what it returns.

        A function that has nothing to do with parsers, and is given none, is followed once.
        """
        node, module = function.node, function.scope.module
        is_told = any(
            holds_parser(v) or is_followed(v) or isinstance(v, Namespace) for v in arguments.all
        ) or (
            isinstance(function.bound, (Parser, Instance))
            or (arguments.given and self._concerns(node, module))
        )
        key = (node, arguments.given)
        if not is_told and key in self._results:
            return self._results[key]
        self._calls[node] = self._calls.get(node, 0) + 1
        if (
            node in self._stack
            or len(self._stack) >= _DEEPEST_CALL
            or self._calls[node] > _MOST_CALLS
        ):
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
        self._made.add(of.node)
        constructor = self.expressions.attribute(made, "__init__")
        if isinstance(constructor, Function):
            self.call_function(constructor, arguments)
        elif arguments.given and isinstance(made, Instance):
            return COMPUTED  # its attributes are what is passed, not what the class says
        return made

    def _concerns(self, node: ast.AST, module: LocalModule) -> bool:
        """Whether the text of a function has to do with parsers at all."""
        if node not in self._concerned:
            self._concerned[node] = bool(re.search(_PARSER_WORDS, module.places.text(node)))
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
        around = self.reading.loop.blocks
        depth = len(around)
        skips = 0
        try:
            for statement in statements:
                self._statements += 1
                if self._statements > _MOST_STATEMENTS or self._blocks > _DEEPEST_BLOCK:
                    self.reading.gap("there is more code than is followed", scope.module, statement)
                    return
                if isinstance(statement, ast.If):
                    rest = self._if(statement, scope)
                    if _may_leave(statement):
                        self.reading.doubt = self.reading.doubt or _CONDITION
                    if rest is not None:
                        skips += 1
                        if skips > _MOST_SKIPS:
                            around[-1] = branch_of(statement, scope.module, object())
                        else:
                            around.append(rest)
                else:
                    self._statement(statement, scope)
        finally:
            self._blocks -= 1
            del around[depth:]
            self.reading.doubt = before

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        if isinstance(node, ast.Expr):
            self.expressions.evaluate(node.value, scope)
        elif isinstance(node, ast.Assign):
            value = self.expressions.evaluate(node.value, scope)
            name_engine(value, node, scope.module)
            for target in node.targets:
                self._assign(target, value, scope, node.value)
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
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            self._loop(node, scope)
        elif isinstance(node, (ast.With, ast.AsyncWith)):
            managers = []
            for item in node.items:
                entered = self.expressions.evaluate(item.context_expr, scope)
                managers.append(manager_of(entered, item.context_expr, scope.module))
                if item.optional_vars is not None:
                    inside = entered if isinstance(entered, Opened) else COMPUTED
                    self._assign(item.optional_vars, inside, scope)
            with self.reading.loop.inside(*managers):
                self._block(node.body, scope)
        elif isinstance(node, _TRY):
            self._try(node, scope)
        elif isinstance(node, ast.Match):
            self.expressions.evaluate(node.subject, scope)
            cases = [case.body for case in node.cases]
            self._forget([s for body in cases for s in body], scope)
            for name in stored_names([node]):
                scope.bind(name, COMPUTED)
            split = object()
            blocks = [branch_of(case.pattern, scope.module, split) for case in node.cases]
            blocks.append(branch_of(node, scope.module, split))
            self._branches([*cases, []], blocks, scope)
        elif isinstance(node, ast.Return):
            value = Constant(None)
            result = self.expressions.evaluate(node.value, scope) if node.value else value
            if self._returns:
                self._returns[-1].append(result)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                self._assign(target, COMPUTED, scope)
                if isinstance(target, ast.Subscript):
                    self._lose(target.value, scope, "a part of it is deleted")
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self.expressions.evaluate(child, scope)

    def _define_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        function = Function(node, scope)
        if not node.decorator_list:
            scope.bind(node.name, function)
            return
        from dsguard.script.decorators import read_command

        scope.bind(node.name, read_command(function, self.expressions, self.reading))

    def _assign(
        self, target: ast.expr, value: Value, scope: Scope, node: ast.AST | None = None
    ) -> None:
        """Give a target its value; ``node`` is the expression that the value was."""
        if isinstance(value, Dict):
            value.kept = True
        if isinstance(target, ast.Name):
            scope.bind(target.id, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            members = _unpacked(value, target)
            for element, member in zip(target.elts, members, strict=True):
                if isinstance(element, ast.Starred):
                    element, member = element.value, COMPUTED
                self._assign(element, member, scope)
        elif isinstance(target, ast.Attribute):
            owner = self.expressions.evaluate(target.value, scope)
            if isinstance(owner, Instance):
                # Other methods may change a plain value; a parser stays what it is.
                plain = isinstance(value, Constant)
                owner.attributes[target.attr] = COMPUTED if plain else value
            elif isinstance(owner, Namespace) and isinstance(value, Dict):
                self.reading.loop.hold(target.attr, value)
            elif isinstance(value, EngineValue) and not isinstance(owner, ModuleValue):
                self.reading.loop.act(Does.ESCAPE, value.engine, target, scope.module)
        elif isinstance(target, ast.Subscript):
            owner = self.expressions.evaluate(target.value, scope)
            key = self.expressions.evaluate(target.slice, scope)
            where = (node or target, scope.module, self.reading.loop.blocks)
            if isinstance(owner, Dict):
                store(owner, key, value, *where)
            elif isinstance(owner, FromConfig):
                store_below(owner, key, value, *where)
            elif (name := scope.argument_of(target.value)) is not None:
                self.reading.loop.lose_held("it is changed as part of the arguments", name)
            elif not isinstance(owner, (Constant, External, Made)):
                self.reading.loop.write_unseen(target, scope.module)

    def _lose(self, node: ast.expr, scope: Scope, reason: str) -> None:
        owner = self.expressions.evaluate(node, scope)
        if isinstance(owner, FromConfig):
            owner = owner.of
        if isinstance(owner, Dict):
            owner.lost = reason

    def _changed(self, node: ast.AugAssign, scope: Scope) -> Value:
        change = self.expressions.evaluate(node.value, scope)
        if isinstance(node.target, ast.Name):
            value = scope.find(node.target.id)
            if isinstance(value, Constant) and isinstance(change, Constant):
                return constants.binary(node.op, value.value, change.value) or COMPUTED
            if isinstance(value, Dict):
                value.lost = "it is changed in place"
                return value
            if value is not None:
                nodes = (node.target, node.value)
                combined = self.expressions.combined(node.op, value, change, nodes, scope)
                return combined or COMPUTED
        elif isinstance(node.target, ast.Subscript):
            self._lose(node.target.value, scope, "it is changed in place")
        return COMPUTED

    def _if(self, node: ast.If, scope: Scope) -> Block | None:
        """A chain of conditions, read without going one level deeper for every ``elif``.

        Returns:
            What stands around the rest of the block, where a branch may skip it.
        """
        bodies: list[list[ast.stmt]] = []
        tests: list[tuple[ast.expr, Value]] = []
        rest: list[ast.stmt] = [node]
        while len(rest) == 1 and isinstance(link := rest[0], ast.If):
            value = self.expressions.evaluate(link.test, scope)
            known = truth(value)
            if known is not False:
                bodies.append(link.body)
                tests.append((link.test, value))
            if known is True:
                break
            rest = link.orelse
        else:
            bodies.append(rest)
        if len(bodies) == 1:
            self._block(bodies[0], scope)
            return None
        blocks = branches_of(tests, scope.module)
        self._branches(bodies, blocks[: len(bodies)], scope)
        return skipped(node, blocks)

    def _branches(self, bodies: list[list[ast.stmt]], blocks: list[Block], scope: Scope) -> None:
        """Follow every branch from the same start; what they leave differently is not known."""
        with self._in_doubt(_CONDITION):
            scope.join(self._outcomes([(body, None) for body in bodies], blocks, scope))

    def _outcomes(
        self,
        branches: Sequence[tuple[list[ast.stmt], str | None]],
        blocks: Sequence[Block],
        scope: Scope,
    ) -> list[Part]:
        """What the branches that go on leave of the names that they store.

        A branch is its statements and the name of the error that it handles.
        """
        stores = [dict.fromkeys(stored_names(body)) for body, _ in branches]
        outcomes: list[Part] = []
        for (body, error), own, block in zip(branches, stores, blocks, strict=True):
            if "*" in own:  # an import of all that a module holds may bind any name
                own = {name: None for names in stores for name in names}
            before = scope.part([*own, error] if error else own)
            if error:
                scope.bind(error, COMPUTED)
            with self.reading.loop.inside(block):
                self._block(body, scope)
            if not (body and isinstance(body[-1], _ENDS)):
                outcomes.append(scope.part(before))
            scope.restore(before)
        return outcomes

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, scope: Scope) -> None:
        over = self.expressions.evaluate(
            node.test if isinstance(node, ast.While) else node.iter, scope
        )
        if not isinstance(node, ast.While):
            self._assign_turn(node.target, over, scope)
        turn = DictTurn.of(node, over, scope.module, self.reading.loop.blocks)
        if turn is not None:
            self._assign(turn.target, turn.stand_in, scope)
        self._forget(node.body, scope)
        block = loop_of(node, over, scope.module)
        with self._in_doubt("it is declared in a loop"), self.reading.loop.inside(block):
            self._block(node.body, scope)
        if turn is not None:
            turn.end()
        self._forget(node.body, scope)
        self._block(node.orelse, scope)

    def _assign_turn(self, target: ast.expr, over: Value, scope: Scope) -> None:
        """Bind what a loop yields: the batches of a loader, or nothing that is known."""
        batch: Value = turn_of(over) or COMPUTED
        if isinstance(over, Turns) and over.counted and isinstance(target, ast.Tuple):
            for element, value in zip(target.elts, (COMPUTED, batch), strict=False):
                self._assign(element, value, scope)
        else:
            self._assign(target, batch, scope)

    def _try(self, node: ast.Try, scope: Scope) -> None:
        """The body counts; what a handler leaves otherwise is not known afterwards."""
        tried = dict.fromkeys(stored_names([*node.body, *node.orelse]))
        if "*" in tried:
            stored = stored_names([s for handler in node.handlers for s in handler.body])
            tried |= dict.fromkeys(stored)
        before = scope.part(tried)
        self._block(node.body, scope)
        self._block(node.orelse, scope)
        outcome = scope.part(tried)
        scope.restore(before)
        self._forget(node.body, scope)
        with self._in_doubt("it is declared only after an error"):
            handlers = [(handler.body, handler.name) for handler in node.handlers]
            blocks = [branch_of(handler, scope.module, node) for handler in node.handlers]
            scope.join([outcome, *self._outcomes(handlers, blocks, scope)])
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
    tests = [value for value in returned if isinstance(value, Test)]
    if len(tests) == 1 and all(isinstance(v, (Test, Constant)) for v in returned):
        return tests[0]
    told = {id(v): v for v in returned if isinstance(v, (Parser, Namespace))}
    return next(iter(told.values())) if len(told) == 1 else COMPUTED


def _unpacked(value: Value, target: ast.Tuple | ast.List) -> list[Value]:
    """What each element of a target gets."""
    members = members_of(value)
    stars = [i for i, element in enumerate(target.elts) if isinstance(element, ast.Starred)]
    if isinstance(value, (Namespace, Batch, Derived)):
        return [value] * len(target.elts)
    if members is not None and len(members) == len(target.elts):
        return list(members)
    if members is not None and len(stars) == 1 and len(members) >= len(target.elts) - 1:
        before, after = stars[0], len(target.elts) - stars[0] - 1
        last = members[len(members) - after :] if after else ()
        return [*members[:before], COMPUTED, *last]
    return [COMPUTED] * len(target.elts)


def _may_leave(node: ast.If) -> bool:
    """Whether a branch ends the block around it in a run that goes on."""
    rest: list[ast.stmt] = [node]
    while len(rest) == 1 and isinstance(rest[0], ast.If):
        body = rest[0].body
        if body and isinstance(body[-1], (ast.Return, ast.Continue, ast.Break)):
            return True
        rest = rest[0].orelse
    return bool(rest) and isinstance(rest[-1], (ast.Return, ast.Continue, ast.Break))
