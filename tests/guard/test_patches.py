"""Wrappers come off without a trace, in any order, and keep nothing alive."""

from __future__ import annotations

import gc
import inspect
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from dsguard.runtime.patches import Patches


class Engine:
    def __init__(self) -> None:
        self.calls: list[str] = []

    def step(self, scale: float = 1.0) -> str:
        """Step."""
        self.calls.append(f"step {scale}")
        return "stepped"


def noting(log: list[str], name: str) -> Callable[..., Any]:
    def around(original: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        log.append(name)
        return original(*args, **kwargs)

    return around


def test_a_wrapper_runs_and_comes_off() -> None:
    engine, log, patches = Engine(), [], Patches()
    patches.wrap(engine, "step", noting(log, "guard"))
    assert engine.step(scale=2.0) == "stepped"
    assert (engine.calls, log) == (["step 2.0"], ["guard"])
    assert engine.step.__name__ == "step"
    assert engine.step.__doc__ == "Step."
    assert list(inspect.signature(engine.step).parameters) == ["scale"]
    patches.remove()
    patches.remove()
    assert "step" not in vars(engine)
    engine.step()
    assert log == ["guard"]


def test_an_attribute_that_was_there_is_restored() -> None:
    engine, log, patches = Engine(), [], Patches()
    own = engine.step
    engine.step = own  # type: ignore[method-assign]
    patches.wrap(engine, "step", noting(log, "guard"))
    engine.step()
    patches.remove()
    assert vars(engine)["step"] is own
    assert log == ["guard"]


def test_a_wrapper_under_another_becomes_a_call_through() -> None:
    engine, log, patches = Engine(), [], Patches()
    patches.wrap(engine, "step", noting(log, "guard"))
    below = engine.step
    engine.step = lambda: (log.append("profiler"), below())[1]  # type: ignore[method-assign]
    engine.step()
    patches.remove()
    assert engine.step() == "stepped"
    assert log == ["profiler", "guard", "profiler"]
    assert len(engine.calls) == 2


def test_two_sets_on_one_method_come_off_in_any_order() -> None:
    engine, log = Engine(), []
    first, second = Patches(), Patches()
    first.wrap(engine, "step", noting(log, "first"))
    second.wrap(engine, "step", noting(log, "second"))
    first.remove()
    engine.step()
    assert log == ["second"]
    second.remove()
    engine.step()
    assert log == ["second"]


def test_exceptions_of_the_engine_pass() -> None:
    class Broken:
        def step(self) -> None:
            raise KeyError(0)

    engine, patches = Broken(), Patches()
    patches.wrap(engine, "step", noting([], "guard"))
    with pytest.raises(KeyError):
        engine.step()


def test_nothing_is_kept_alive() -> None:
    engine, patches = Engine(), Patches()
    patches.wrap(engine, "step", noting([], "guard"))
    gone = weakref.ref(engine)
    del engine
    gc.collect()
    assert gone() is None
    patches.remove()


def test_a_method_that_is_not_there() -> None:
    with pytest.raises(AttributeError):
        Patches().wrap(Engine(), "backward", noting([], "guard"))
