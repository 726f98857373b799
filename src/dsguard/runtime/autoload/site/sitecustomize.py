"""Loaded by Python at start, where ``dsguard run --guard`` has put this folder on ``PYTHONPATH``.

Does nothing until DeepSpeed is imported, and imports the standard library only until an engine is
made. Another ``sitecustomize`` that this one hides is loaded all the same.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.machinery
import importlib.util
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120


class _WaitForDeepSpeed:
    """Finds no module itself; sees to it that ``deepspeed`` is told apart when it is loaded.

    A spec that was asked for need not be loaded: accelerate and transformers ask for it to learn
    whether DeepSpeed is installed. It is waited for until it has run.
    """

    def __init__(self) -> None:
        self._asking = threading.local()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The spec of ``deepspeed`` with a loader that also wraps ``initialize``."""
        if name != "deepspeed" or getattr(self._asking, "others", False):
            return None
        self._asking.others = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking.others = False
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                if module.__name__ == name and self in sys.meta_path:  # loaders may be shared
                    sys.meta_path.remove(self)
                    _guard_engines(module)

            with contextlib.suppress(AttributeError):  # one that takes none: imported unguarded
                spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def _guard_engines(deepspeed: ModuleType) -> None:
    initialize = getattr(deepspeed, "initialize", None)
    if initialize is None:
        return

    @functools.wraps(initialize)
    def guarded(*args: Any, **kwargs: Any) -> Any:
        made = initialize(*args, **kwargs)
        try:
            from dsguard import guard

            guard(made[0])
        except Exception as error:  # the training goes on without a guard
            with contextlib.suppress(Exception):  # a stream that is closed
                print(f"dsguard run --guard: no guard ({error})", file=sys.stderr)
        return made

    deepspeed.initialize = guarded  # type: ignore[attr-defined]


def _load_hidden() -> None:
    """The ``sitecustomize`` that Python would have loaded without this folder."""
    path = [folder for folder in sys.path if os.path.abspath(folder) != _HERE]  # noqa: PTH100
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", path)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


sys.meta_path.insert(0, _WaitForDeepSpeed())
_load_hidden()
