"""The typer and click scripts, compared with the real commands."""

from __future__ import annotations

import enum
from typing import Any

import click
import pytest

from dsguard.script.declaration import Takes, Unreadable
from dsguard.script.lookup import expand
from dsguard.script.script import ParserKind
from tests.script.reading import load, read, reason
from tests.script.real import real_command


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("typer_app.py", ParserKind.TYPER),
        ("typer_run.py", ParserKind.TYPER),
        ("click_command.py", ParserKind.CLICK),
    ],
)
def test_every_parameter_is_read(name: str, kind: ParserKind) -> None:
    command = real_command(name)
    script = load(name)
    assert script.parser is kind
    assert script.gaps == ()
    assert [d.name for d in script.arguments] == [p.name for p in command.params]
    for declaration, parameter in zip(script.arguments, command.params, strict=True):
        is_option = parameter.param_type_name == "option"
        secondary = list(getattr(parameter, "secondary_opts", ()))
        assert list(declaration.flags) == ([*parameter.opts, *secondary] if is_option else [])
        assert list(declaration.negated) == (secondary if is_option else [])
        assert not isinstance(declaration.default, Unreadable), declaration
        known = declaration.default.value if declaration.default else None
        assert known == default_of(command, parameter), declaration.name
        assert declaration.required == bool(parameter.required), declaration.name
        if is_option:
            is_switch = parameter.is_flag or getattr(parameter, "count", False)
            assert declaration.is_switch == is_switch, declaration.name
            assert (declaration.takes is Takes.MANY) == (parameter.nargs != 1)
    assert expand(script, "--batch-siz") is None


def default_of(command: Any, parameter: Any) -> Any:
    """The default as the function gets it; None where there is none."""
    context = click.Context(command) if isinstance(command, click.Command) else None
    default = parameter.get_default(context) if context else parameter.default
    if isinstance(default, enum.Enum) and not isinstance(default, str):
        return None  # click's mark for a default that is not set
    if context and default is not None:
        return parameter.type_cast_value(context, default)
    return default


def test_an_option_from_the_environment_is_not_known() -> None:
    script = read("""
        import click
        @click.command()
        @click.option("--lr", default=1, envvar="LR")
        def main(lr): ...
        """)
    assert reason(script, "lr") == "an environment variable may set it"


def test_options_of_a_decorator_of_its_own_are_a_gap() -> None:
    script = read("""
        import click
        from shared import common_options
        @click.command()
        @common_options
        @click.option("--lr", default=1)
        def main(lr): ...
        """)
    assert [d.name for d in script.arguments] == ["lr"]
    assert [g.reason for g in script.gaps] == ["a decorator may add options"]


@pytest.mark.parametrize("name", ["click_group.py"])
def test_several_commands_are_left_alone(name: str) -> None:
    script = load(name)
    assert script.parser is ParserKind.CLICK
    assert script.arguments == ()
    assert [g.reason for g in script.gaps] == ["the script has subcommands"]


def test_a_typer_app_with_two_commands_is_left_alone() -> None:
    script = read("""
        import typer
        app = typer.Typer()
        @app.command()
        def train(batch: int = 8): ...
        @app.command()
        def test(batch: int = 1): ...
        app()
        """)
    assert script.parser is ParserKind.TYPER
    assert script.arguments == ()
    assert len(script.gaps) == 1
