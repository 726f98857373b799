"""Wrapping methods of one object, and undoing it without a trace.

A wrapper is an instance attribute over the method of the class. It holds its owner weakly, so
that no engine is kept alive by being watched. One that another wrapper has come on top of
cannot be taken out any more: it becomes a plain call-through.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from contextlib import suppress
from types import MethodType
from typing import Any, TypeAlias

Original: TypeAlias = Callable[..., Any]
Around: TypeAlias = Callable[..., Any]
"""Called as ``around(original, *args, **kwargs)``; it must call ``original`` exactly once."""

_ABSENT = object()


class Patches:
    """The wrappers of one guard."""

    def __init__(self) -> None:
        self._made: list[_Patch] = []

    def wrap(self, owner: object, name: str, around: Around) -> None:
        """Put ``around`` over ``owner.name``.

        Raises:
            AttributeError: the owner has no such method.
            TypeError: the owner takes no instance attributes.
        """
        self._made.append(_Patch(owner, name, around))

    def remove(self) -> None:
        """Restore every method, last wrapped first. Calling it again does nothing."""
        while self._made:
            self._made.pop().remove()


class _Patch:
    def __init__(self, owner: object, name: str, around: Around) -> None:
        self._owner = weakref.ref(owner)
        self._name = name
        self._before = vars(owner).get(name, _ABSENT)
        self._around: Around | None = around
        if self._before is _ABSENT:
            wrapped = getattr(type(owner), name)
            wrapper = self._over_method(wrapped)
        else:
            wrapped = self._before
            wrapper = self._over_attribute(wrapped)
        wrapper.__name__ = wrapper.__qualname__ = name
        wrapper.__doc__ = wrapped.__doc__
        with suppress(TypeError, ValueError):
            # Callers look at the arguments that a model takes.
            wrapper.__dict__["__signature__"] = inspect.signature(getattr(owner, name))
        self._wrapper = wrapper
        setattr(owner, name, wrapper)

    # Two of them: the calls they make are on the way of every micro-batch.

    def _over_method(self, function: Callable[..., Any]) -> Any:
        owner = self._owner

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            original = MethodType(function, owner())
            around = self._around
            if around is None:
                return original(*args, **kwargs)
            return around(original, *args, **kwargs)

        return wrapper

    def _over_attribute(self, original: Original) -> Any:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            around = self._around
            if around is None:
                return original(*args, **kwargs)
            return around(original, *args, **kwargs)

        return wrapper

    def remove(self) -> None:
        self._around = None
        owner = self._owner()
        if owner is None or vars(owner).get(self._name) is not self._wrapper:
            return
        if self._before is _ABSENT:
            delattr(owner, self._name)
        else:
            setattr(owner, self._name, self._before)
