"""The arguments of one parser, found by flag and by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dsguard.script.declaration import Declaration, Default


class Declarations:
    """Declarations in the order in which they were made."""

    def __init__(self) -> None:
        self._all: dict[int, Declaration] = {}
        self._flags: dict[str, int] = {}
        self._names: dict[str, list[int]] = {}
        self._next = 0

    def __iter__(self) -> Iterator[Declaration]:
        return iter(self._all.values())

    def __len__(self) -> int:
        return len(self._all)

    def add(self, declaration: Declaration) -> None:
        """Put one at the end; its flags now mean it."""
        self._all[self._next] = declaration
        self._names.setdefault(declaration.name, []).append(self._next)
        self._flags.update(dict.fromkeys(declaration.flags, self._next))
        self._next += 1

    def extend(self, declarations: Iterable[Declaration]) -> None:
        """Put several at the end."""
        for declaration in declarations:
            self.add(declaration)

    def named(self, name: str) -> list[Declaration]:
        """All of one name."""
        return [self._all[at] for at in self._names.get(name, ()) if at in self._all]

    def taken(self, flags: Iterable[str]) -> list[str]:
        """The flags that are declared already."""
        return [flag for flag in flags if flag in self._flags]

    def drop(self, name: str, condition: Callable[[Declaration], bool]) -> None:
        """Forget those of one name that fulfil a condition."""
        for at in self._names.get(name, ()):
            if at in self._all and condition(self._all[at]):
                del self._all[at]

    def drop_flag(self, flag: str) -> None:
        """Take a flag away; an argument that has no other is forgotten."""
        at = self._flags.pop(flag)
        rest = tuple(other for other in self._all[at].flags if other != flag)
        if rest:
            self._all[at] = replace(self._all[at], flags=rest)
        else:
            del self._all[at]

    def set_default(
        self, default: Callable[[Declaration], Default], name: str | None = None
    ) -> None:
        """Give those of one name, or all, another default."""
        for at in self._names.get(name, ()) if name is not None else list(self._all):
            if at in self._all:
                self._all[at] = replace(self._all[at], default=default(self._all[at]))

    def set_default_of_flag(self, flag: str, default: Default) -> None:
        """Give the argument of a flag another default."""
        at = self._flags[flag]
        self._all[at] = replace(self._all[at], default=default)
