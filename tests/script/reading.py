"""Short ways to read scripts in tests."""

from __future__ import annotations

from textwrap import dedent

from dsguard.model.source import Source
from dsguard.script.declaration import Constant, Declaration, Unreadable
from dsguard.script.load import load_script
from dsguard.script.lookup import argument_value
from dsguard.script.read import read_script
from dsguard.script.script import Script
from tests.script.real import SCRIPTS


def read(text: str, **modules: str) -> Script:
    """Read a text as ``train.py``; keyword arguments are modules beside it (``a__b`` is a.b)."""
    sources = {
        name.replace("__", "."): Source(f"{name}.py", dedent(module))
        for name, module in modules.items()
    }
    return read_script(Source("train.py", dedent(text)), sources.get)


def load(name: str) -> Script:
    """Read one of the fixture scripts."""
    script = load_script(SCRIPTS / name, name)
    assert script is not None
    assert script.unreadable is None
    return script


def declaration(script: Script, name: str) -> Declaration:
    found = argument_value(script, name)
    assert found is not None, f"{name} is not declared: {[d.name for d in script.arguments]}"
    return found


def value(script: Script, name: str) -> object:
    """The default of an argument, which must be a constant or absent."""
    default = declaration(script, name).default
    assert not isinstance(default, Unreadable), default
    return default.value if isinstance(default, Constant) else None


def reason(script: Script, name: str) -> str:
    """Why the default of an argument is not known."""
    default = declaration(script, name).default
    assert isinstance(default, Unreadable), default
    return default.reason
