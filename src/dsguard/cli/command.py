"""Commands that start without pydantic.

Since 0.29 typer makes a pydantic adapter for every parameter, also for one that nobody gives, so
that a cold start would import pydantic for that alone. A parameter whose value needs no conversion
is taken as it is here; all others go to typer. Older releases convert by themselves, without
pydantic, and are left alone.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from typer.core import TyperCommand, TyperGroup

_CONVERT = object()


class Command(TyperCommand):
    """One command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, ``--help`` among them."""
        return _quick(super().get_params(ctx))


class Group(TyperGroup):
    """The program, or a command of commands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, ``--help`` among them."""
        return _quick(super().get_params(ctx))


def _quick(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        described = getattr(parameter, "type_descriptor", None)
        if described is not None and "process_value" not in vars(parameter):
            parameter.process_value = _process(parameter, described.annotation)
    return parameters


def _process(parameter: Any, wanted: Any) -> Any:
    convert = parameter.process_value
    several = parameter.multiple or parameter.nargs == -1

    def process_value(context: Any, value: Any) -> Any:
        taken = _as_it_is(value, wanted, several)
        if taken is _CONVERT or (parameter.required and parameter.value_is_missing(taken)):
            return convert(context, value)
        call = parameter.callback
        return taken if call is None else call(context, parameter, taken)

    return process_value


def _as_it_is(value: Any, wanted: Any, several: bool) -> Any:
    if value is None:
        return () if several else None
    if type(value) is wanted and issubclass(wanted, str | int | Enum):
        return value
    if several and wanted == list[str] and all(type(one) is str for one in value):
        return list(value)
    return _CONVERT
