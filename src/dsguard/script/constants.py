"""Arithmetic on constants, with limits: no text of a script makes dsguard compute for long."""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any

from dsguard.script.declaration import Constant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_MOST_BITS = 4096
_MOST_CHARACTERS = 10_000

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"int": int, "float": float, "bool": bool}


def binary(op: ast.operator, left: Any, right: Any) -> Constant | None:
    """``left op right`` of numbers, or ``+`` of two strings; None where it is not computed."""
    if isinstance(left, str) and isinstance(right, str) and isinstance(op, ast.Add):
        return Constant(left + right) if len(left) + len(right) < _MOST_CHARACTERS else None
    compute = _BINARY.get(type(op))
    if compute is None or not (_is_number(left) and _is_number(right)):
        return None
    if _bits(left) > _MOST_BITS or _bits(right) > _MOST_BITS:
        return None
    if isinstance(op, ast.Pow) and (abs(right) > _MOST_BITS or _bits(left) * right > _MOST_BITS):
        return None
    if isinstance(op, ast.LShift) and right > _MOST_BITS:
        return None
    return _real(lambda: compute(left, right))


def unary(op: ast.unaryop, operand: Any) -> Constant | None:
    """``-x``, ``+x``, ``~x`` of a number and ``not x``; None where it is not computed."""
    if isinstance(op, ast.Not):
        return Constant(not operand)
    compute = _UNARY.get(type(op))
    return _real(lambda: compute(operand)) if compute and _is_number(operand) else None


def formatted(parts: Iterable[object]) -> Constant | None:
    """The parts of an f-string as one text; None where one of them is no string or number."""
    text = ""
    for part in parts:
        if not (_is_number(part) or isinstance(part, str)):
            return None
        if isinstance(part, int) and _bits(part) > _MOST_BITS:
            return None
        text += str(part)
        if len(text) >= _MOST_CHARACTERS:
            return None
    return Constant(text)


def converted(type_name: str, value: Any) -> Constant | None:
    """``int(value)``, ``float(value)``, ``bool(value)`` or ``str(value)`` of a plain value."""
    if not (_is_number(value) or isinstance(value, str)):
        return None
    if type_name == "str":
        return Constant(value) if isinstance(value, str) else None
    convert = _CONVERSIONS.get(type_name)
    return _real(lambda: convert(value)) if convert else None


def _real(compute: Callable[[], Any]) -> Constant | None:
    try:
        value = compute()
    except (ArithmeticError, ValueError, TypeError):
        return None
    return Constant(value) if _is_number(value) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _bits(value: float) -> int:
    return value.bit_length() if isinstance(value, int) else 64
