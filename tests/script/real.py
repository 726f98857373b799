"""What the real parsers make of the fixture scripts, run up to the moment of parsing."""

from __future__ import annotations

import argparse
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

SCRIPTS = Path(__file__).parent / "scripts"

# Imported by fixture scripts and of no use to their parsers.
_STAND_INS = ("torch", "deepspeed", "accelerate")


class _Stop(BaseException):
    """The parser is complete."""


class _StandIn(ModuleType):
    """A module in which every name is something that can be called."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "add_config_arguments":
            return lambda parser: parser
        return mock.MagicMock(name=name)


def argparse_parsers(script: str, parses: int = 1, stand_ins: bool = True) -> list[Any]:
    """The real parsers of a script, in the order in which they get the command line.

    The script runs up to its parsing number ``parses``. With ``stand_ins``, heavy packages are
    replaced by modules that do nothing.
    """
    seen: list[argparse.ArgumentParser] = []

    def parse_known_args(
        self: argparse.ArgumentParser, args: Any = None, namespace: Any = None
    ) -> Any:
        seen.append(self)
        if len(seen) >= parses:
            raise _Stop
        return real(self, [], namespace)

    real = argparse.ArgumentParser.parse_known_args
    with mock.patch.object(argparse.ArgumentParser, "parse_known_args", parse_known_args):
        _run(script, stand_ins)
    return seen


def real_default(parser: argparse.ArgumentParser, action: argparse.Action) -> Any:
    """The default of an action as the namespace gets it."""
    default = action.default
    if default is argparse.SUPPRESS:
        return None
    if isinstance(default, str):
        return parser._get_value(action, default)  # the conversion of defaults has no public name
    return default


def real_command(script: str) -> Any:
    """The click or typer command of a script."""
    found: list[Any] = []

    def note(command: Any) -> None:
        found.append(command)
        raise _Stop

    import click
    import typer
    from typer.main import get_command

    def run_typer(function: Any) -> None:
        app = typer.Typer(add_completion=False)
        app.command()(function)
        note(get_command(app))

    with (
        mock.patch.object(typer, "run", run_typer),
        mock.patch.object(typer.Typer, "__call__", lambda app, *a, **k: note(get_command(app))),
        mock.patch.object(click.Command, "__call__", lambda command, *a, **k: note(command)),
    ):
        _run(script, stand_ins=False)
    return found[0]


def _run(script: str, stand_ins: bool) -> None:
    path = SCRIPTS / script
    with (
        _modules_beside(path.parent),
        _replaced(stand_ins),
        mock.patch.object(sys, "argv", [str(path)]),
    ):
        try:
            runpy.run_path(str(path), run_name="__main__")
        except _Stop:
            return
    raise AssertionError(f"{script} never parsed its command line")


@contextmanager
def _modules_beside(folder: Path) -> Iterator[None]:
    """Imports come from the script's folder first, and are forgotten afterwards."""
    before = set(sys.modules)
    with mock.patch.object(sys, "path", [str(folder), *sys.path]):
        try:
            yield
        finally:
            for name in set(sys.modules) - before:
                file = getattr(sys.modules[name], "__file__", None)
                if file and Path(file).is_relative_to(SCRIPTS):
                    del sys.modules[name]


@contextmanager
def _replaced(stand_ins: bool) -> Iterator[None]:
    if not stand_ins:
        yield
        return
    names = {name: _StandIn(name) for name in _STAND_INS if name not in sys.modules}
    with mock.patch.dict(sys.modules, names):
        yield
