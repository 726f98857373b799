"""Wrapping methods of one object, and undoing it without a trace.

A wrapper is an instance attribute over the method of the class. It holds its owner weakly, so
that no engine is kept alive by being watched. One that another wrapper has come on top of
cannot be taken out any more: it becomes a plain call-through.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from contextlib import suppress
from types import MethodType
from typing import Any, TypeAlias

Original: TypeAlias = Callable[..., Any]
Around: TypeAlias = Callable[..., Any]
"""Called as ``around(original, args, kwargs)``; it must call ``original`` exactly once."""

_ABSENT = object()


class Patch:
    """One method of one owner, and what stands over it."""

    def __init__(self, owner: object, name: str) -> None:
        self.owner: Callable[[], Any] = weakref.ref(owner)
        """Alive whenever its method is called."""
        self.on = True
        """Whether the wrapper is to do more than call ``function``."""
        self._name = name
        self._before = before = vars(owner).get(name, _ABSENT)
        self.function: Callable[..., Any]
        """What stood there before, called with the owner first."""
        if before is _ABSENT:
            self.function = getattr(type(owner), name)
        else:
            self.function = lambda owner, *args, **kwargs: before(*args, **kwargs)

    def put(self, wrapper: Any) -> None:
        """Set the wrapper as an attribute of the owner."""
        owner = self.owner()
        wrapped = getattr(owner, self._name)
        wrapper.__name__ = wrapper.__qualname__ = self._name
        wrapper.__doc__ = wrapped.__doc__
        with suppress(TypeError, ValueError):
            # Callers look at the arguments that a model takes.
            wrapper.__dict__["__signature__"] = inspect.signature(wrapped)
        self._wrapper = wrapper
        setattr(owner, self._name, wrapper)

    def remove(self) -> None:
        """Put back what was there, unless something else has come on top."""
        self.on = False
        owner = self.owner()
        if owner is None or vars(owner).get(self._name) is not self._wrapper:
            return
        if self._before is _ABSENT:
            delattr(owner, self._name)
        else:
            setattr(owner, self._name, self._before)


Make: TypeAlias = Callable[[Patch], Callable[..., Any]]
"""Makes a wrapper, which calls ``patch.function(patch.owner(), ...)`` exactly once."""


class Patches:
    """The wrappers of one guard."""

    def __init__(self) -> None:
        self._made: list[Patch] = []

    def wrap(self, owner: object, name: str, around: Around) -> None:
        """Put ``around`` over ``owner.name``.

        Raises:
            AttributeError: the owner has no such method.
            TypeError: the owner takes no instance attributes.
        """
        self.replace(owner, name, functools.partial(_wrapper, around))

    def replace(self, owner: object, name: str, make: Make) -> None:
        """As :meth:`wrap`, for what every micro-batch calls: the wrapper itself is made."""
        patch = Patch(owner, name)
        patch.put(make(patch))
        self._made.append(patch)

    def remove(self) -> None:
        """Restore every method, last wrapped first. Calling it again does nothing."""
        while self._made:
            self._made.pop().remove()


def _wrapper(around: Around, patch: Patch) -> Callable[..., Any]:
    function, owner = patch.function, patch.owner

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not patch.on:
            return function(owner(), *args, **kwargs)
        return around(MethodType(function, owner()), args, kwargs)

    return wrapper
