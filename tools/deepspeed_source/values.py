"""What names stand for while DeepSpeed's source is followed."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from deepspeed_source.sources import Module


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Any = _Unknown()


@dataclass(frozen=True)
class Part:
    """The config, or what stands at a place in it; several places where a name may mean either."""

    paths: tuple[str, ...]

    def child(self, key: str) -> Part:
        """What stands under a key."""
        return Part(tuple(f"{path}.{key}" if path else key for path in self.paths))


@dataclass(frozen=True)
class Items:
    """``part.items()``."""

    part: Part


@dataclass(frozen=True)
class AnyKey:
    """The name of a loop over the keys of a part."""

    part: Part


@dataclass(frozen=True, eq=False)
class Class:
    """A class of the package."""

    module: Module
    node: ast.ClassDef


@dataclass(frozen=True, eq=False)
class Function:
    """A function of the package; ``owner`` is what its first argument is bound to."""

    module: Module
    node: ast.FunctionDef
    owner: Object | Class | None = None


@dataclass(eq=False)
class Object:
    """An instance of a class of the package."""

    kind: Class
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """An attribute of a part of the config or of a constant, such as ``get``."""

    of: Any
    name: str


@dataclass
class Scope:
    """The names of a running function; ``branches`` counts the conditions it stands under."""

    module: Module
    names: dict[str, Any] = field(default_factory=dict)
    branches: int = 0
    returned: list[Any] = field(default_factory=list)


def either(values: Sequence[Any]) -> Any:
    """One value for several that a name may have: parts of the config win, then what is known."""
    parts = [value for value in values if isinstance(value, Part)]
    if parts:
        return Part(tuple(dict.fromkeys(path for part in parts for path in part.paths)))
    known = [value for value in values if value is not UNKNOWN]
    return known[0] if known else UNKNOWN


def carries(values: Sequence[Any]) -> bool:
    """Whether a part of the config is among values, or inside one of them."""
    return any(
        isinstance(value, Part)
        or (isinstance(value, dict) and carries(list(value.values())))
        or (isinstance(value, list) and carries(value))
        for value in values
    )
