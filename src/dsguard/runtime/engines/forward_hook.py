"""A forward hook that neither ``torch.compile`` nor a copy of the module notices.

PyTorch keeps hooks in the module's own ``__dict__``: they are pickled and copied with it. And a
compiled module calls them with the compiler listening.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from dsguard.runtime.watch import Watch

Seen: TypeAlias = Callable[[Any, tuple[Any, ...], Mapping[str, Any], Any], None]
"""Is given a module, the arguments of its forward, by position and by name, and its output."""


class ForwardHook:
    """Hands forwards of one module to ``seen``, and keeps its faults away from them.

    A copy of it, also by pickle, does nothing and needs no dsguard to be loaded. Inside a
    graph that is traced it adds nothing, and so sees nothing; see :func:`hook_forwards`.
    """

    def __init__(self, seen: Seen, watch: Watch) -> None:
        import torch

        self._watch = watch
        self._seen = seen
        self._is_compiling = torch.compiler.is_compiling
        self._listens, self._hidden = _compiler(seen)

    def __call__(
        self, module: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any
    ) -> None:
        """What PyTorch calls after each forward.

        Raises:
            GuardViolation: as :meth:`dsguard.runtime.watch.Watch.failed`.
        """
        if self._is_compiling() or self._watch.stopped:
            return
        try:
            if self._listens():
                self._hidden(module, args, kwargs, output)
            else:
                self._seen(module, args, kwargs, output)
        except Exception as error:
            self._watch.failed("forward", error)

    def __reduce__(self) -> tuple[Any, ...]:
        # A function of the standard library that takes whatever comes and returns None.
        return getattr, (contextlib.nullcontext(), "__exit__")


def hook_forwards(module: Any, seen: Seen, watch: Watch) -> Any:
    """Call ``seen`` after each forward of the module; returns the handle that ends it.

    A module that is compiled itself, in any of the three ways, is seen as well: its hooks run
    outside its graph. One that lies inside a compiled module is not.
    """
    return module.register_forward_hook(ForwardHook(seen, watch), with_kwargs=True)


def _compiler(seen: Seen) -> tuple[Callable[[], Any], Seen]:
    """Whether the compiler listens to the calls that are made, and ``seen`` hidden from it."""
    # Making an optimizer has imported the compiler; where it is absent nothing is compiled.
    if "torch._dynamo" not in sys.modules:
        return _never, seen
    import torch
    from torch._C._dynamo import eval_frame as native
    from torch._dynamo import eval_frame

    skip = getattr(eval_frame, "skip_code", None)
    if skip is not None:
        # Without this the call itself is compiled, and then is_compiling() is true in it.
        skip(ForwardHook.__call__.__code__)
    hidden: Seen = torch.compiler.disable(seen)  # type: ignore[no-untyped-call]
    # Hiding costs more than looking; releases that cannot be asked are always hidden from.
    return getattr(native, "get_eval_frame_callback", _always), hidden


def _never() -> bool:
    return False


def _always() -> bool:
    return True
