"""How pydantic 1 read values, as functions that values go through before pydantic 2 reads them.

DeepSpeed checked its blocks with pydantic 1 until 0.14.5 (through ``pydantic.v1`` where version 2
was installed) and with pydantic 2 from 0.15.0 on. The old one cut fractions off, took numbers for
text, any sequence of pairs for an object, and members of an enumeration only by their very value.
Source: pydantic/v1/validators.py.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from packaging.version import Version

from dsguard.schema.block import Block

PYDANTIC_2_SINCE = Version("0.15.0")
"""The first release of DeepSpeed whose models are written for pydantic 2."""


def reads_like_1(option: Any) -> Callable[[Any], Any] | None:
    """What has to happen to a value before pydantic 2 checks it for one type of an annotation."""
    if option is int:
        return _whole
    if option is str:
        return _text
    if option is dict or (isinstance(option, type) and issubclass(option, Block)):
        return _object
    if isinstance(option, type) and issubclass(option, Enum):
        return _Member(option)
    return None


def _whole(value: Any) -> Any:
    """``int()`` of anything, which truncates a fraction and refuses ``"5.0"``."""
    if value is None:
        return value  # an alternative of the annotation may take it
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError("not a whole number") from None


def _text(value: Any) -> Any:
    return str(value) if isinstance(value, int | float) else value


def _object(value: Any) -> Any:
    """``dict()`` of anything: nothing at all, or a list of pairs, makes an object too."""
    if value is None:
        return value
    try:
        return dict(value)
    except (TypeError, ValueError):
        return value


class _Member:
    """Refuses what is not equal to a member's value; pydantic 2 would convert text to numbers."""

    def __init__(self, enumeration: type[Enum]) -> None:
        self._values = [member.value for member in enumeration]

    def __call__(self, value: Any) -> Any:
        if value is not None and value not in self._values:
            raise ValueError("no member of the enumeration")
        return value
