"""Integer arithmetic as ``$((...))`` does it, where every operand is known.

Source: Bash Reference Manual, section 6.5. Assignments, comparisons and bit operations are not
evaluated.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_TOKEN = re.compile(r"\s*(?:(0[xX][0-9a-fA-F]+|\d+)|([A-Za-z_]\w*)|(\*\*|[-+*/%()]))", re.ASCII)
_LIMIT = 1 << 62
_MOST_TOKENS = 200
_HIGHEST_POWER = 64


class UncertainError(ValueError):
    """The value of an expression cannot be known."""


def evaluate(expression: str, lookup: Callable[[str], str | None]) -> int | None:
    """The value of an expression; None where it cannot be known.

    ``lookup`` gives the text of a variable, None where that is not known.
    """
    try:
        evaluation = _Evaluation(_tokens(expression), lookup)
        value = evaluation.sum() if evaluation.tokens else 0
        return value if evaluation.at == len(evaluation.tokens) else None
    except UncertainError:
        return None


def _tokens(expression: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    expression = expression.rstrip()
    while at < len(expression):
        found = _TOKEN.match(expression, at)
        if found is None or len(tokens) >= _MOST_TOKENS or len(found[0]) > _MOST_TOKENS:
            raise UncertainError
        tokens.append(found[0].strip())
        at = found.end()
    return tokens


class _Evaluation:
    def __init__(self, tokens: list[str], lookup: Callable[[str], str | None]) -> None:
        self.tokens = tokens
        self.lookup = lookup
        self.at = 0

    def _accept(self, *operators: str) -> str:
        token = self.tokens[self.at] if self.at < len(self.tokens) else ""
        if token not in operators:
            return ""
        self.at += 1
        return token

    def sum(self) -> int:
        value = self._product()
        while operator := self._accept("+", "-"):
            right = self._product()
            value = _bounded(value + right if operator == "+" else value - right)
        return value

    def _product(self) -> int:
        value = self._power()
        while operator := self._accept("*", "/", "%"):
            value = _bounded(_multiply(operator, value, self._power()))
        return value

    def _power(self) -> int:
        base = self._operand()
        if not self._accept("**"):
            return base
        exponent = self._power()
        if not 0 <= exponent <= _HIGHEST_POWER:
            raise UncertainError
        return _bounded(base**exponent)

    def _operand(self) -> int:
        if sign := self._accept("+", "-"):
            return -self._operand() if sign == "-" else self._operand()
        if self._accept("("):
            value = self.sum()
            if not self._accept(")"):
                raise UncertainError
            return value
        if self.at >= len(self.tokens):
            raise UncertainError
        token = self.tokens[self.at]
        self.at += 1
        if token[0].isdecimal():
            return _integer(token)
        text = self.lookup(token) if token.isidentifier() else None
        if text is None:
            raise UncertainError
        return _integer(text.strip())


def _integer(text: str) -> int:
    """An integer as a shell writes it: ``0x`` is hexadecimal, a leading ``0`` octal."""
    if len(text) > 20 or not re.fullmatch(r"[-+]?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)", text):
        raise UncertainError
    digits = text.lstrip("-+")
    base = 16 if digits[:2].lower() == "0x" else 8 if digits[0] == "0" else 10
    return _bounded(int(text, base))


def _multiply(operator: str, left: int, right: int) -> int:
    if operator == "*":
        return left * right
    if right == 0:
        raise UncertainError
    quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
    return quotient if operator == "/" else left - quotient * right


def _bounded(value: int) -> int:
    if abs(value) > _LIMIT:
        raise UncertainError
    return value
