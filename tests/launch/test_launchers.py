"""The tables that name modules: what they name exists, and nothing is left out."""

from __future__ import annotations

import inspect
import pkgutil

import pytest

from dsguard.launch import jobs, launchers
from dsguard.launch.jobs import find
from dsguard.launch.launchers import launcher_of_file, launcher_of_program, reader_of

HELPERS = {"accelerate_options", "tasks", "variables"}
"""Modules beside the launchers that read none themselves."""
NO_FRAMEWORKS = {"alone", "attach", "find", "framework", "job", "keys", "load", "accelerate"}
"""Modules beside the frameworks; Accelerate's file belongs to a launcher."""


def test_every_launcher_is_called_by_some_name() -> None:
    modules = {module.name for module in pkgutil.iter_modules(launchers.__path__)} - HELPERS
    assert {*launchers._PROGRAMS.values(), "python"} == modules
    assert set(launchers._MODULES.values()) <= modules
    for module in modules:
        assert list(inspect.signature(reader_of(module)).parameters) == ["call"]


@pytest.mark.parametrize(
    ("name", "launcher"),
    [
        *launchers._PROGRAMS.items(),
        *((name, "python") for name in ("python", "python3.11", "pypy3", "pythonw", "python3.exe")),
        *((name, None) for name in ("python-config", "pythonista", "bash", "torchrun.py", "")),
    ],
)
def test_a_program_is_known_by_its_whole_name(name: str, launcher: str | None) -> None:
    assert launcher_of_program(name) == launcher


def test_only_programs_in_python_are_run_by_python() -> None:
    assert launcher_of_file("torchrun") == "torchrun"
    assert launcher_of_file("ds") == "deepspeed"
    assert launcher_of_file("srun") is None
    assert launcher_of_file("train.py") is None


def test_every_framework_is_looked_for() -> None:
    modules = {module.name for module in pkgutil.iter_modules(jobs.__path__)} - NO_FRAMEWORKS
    assert set(find.FRAMEWORKS) == modules
    assert {*find._BY_PACKAGE.values(), *find._BY_PATH.values()} <= modules
    for name in modules:
        assert find.framework(name).NAME
