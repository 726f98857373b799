"""The arguments of one call in the script."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from msgspec import Struct, field

from dsguard.script.loop.values import Dict
from dsguard.script.objects import COMPUTED, Items

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dsguard.script.expressions import Expressions
    from dsguard.script.objects import Value
    from dsguard.script.scope import Scope


class Arguments(Struct, frozen=True):
    """What is passed. ``starred`` says that ``*`` or ``**`` pass more than is known, out of
    the values in ``spread``. ``unpacked`` are known dicts behind ``**``; what they hold is among
    ``keywords``, too.
    """

    positional: tuple[Value, ...] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict)
    starred: bool = False
    spread: tuple[Value, ...] = ()
    unpacked: tuple[Dict, ...] = ()

    @classmethod
    def of(cls, node: ast.Call, expressions: Expressions, scope: Scope) -> Arguments:
        """Evaluate the arguments of a call; positional ones after a ``*`` are not placed."""
        positional: list[Value] = []
        starred = False
        spread: list[Value] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                starred = True
                value = expressions.evaluate(argument.value, scope)
                spread.append(value if isinstance(value, Items) else COMPUTED)
                continue
            value = expressions.evaluate(argument, scope)
            if not starred:
                positional.append(value)
        keywords: dict[str, Value] = {}
        unpacked: list[Dict] = []
        for keyword in node.keywords:
            value = expressions.evaluate(keyword.value, scope)
            if keyword.arg is None and isinstance(value, Dict) and value.is_whole:
                keywords |= {name: entry.value for name, entry in value.entries.items()}
                unpacked.append(value)
            elif keyword.arg is None:
                starred = True
                spread.append(value)
            else:
                keywords[keyword.arg] = value
        return cls(tuple(positional), keywords, starred, tuple(spread), tuple(unpacked))

    @property
    def all(self) -> tuple[Value, ...]:
        """Every value that is known to be passed."""
        return (*self.positional, *self.keywords.values(), *self.spread)

    @property
    def given(self) -> bool:
        """Whether anything is passed."""
        return self.starred or bool(self.positional or self.keywords)

    def first(self, keyword: str) -> Value | None:
        """The first positional value, or the one passed under this name."""
        return self.positional[0] if self.positional else self.keywords.get(keyword)
