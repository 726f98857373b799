"""The table of a launcher's options.

One table serves both scanners: :mod:`~dsguard.launch.scan_argparse` for launchers that are
Python programs, :mod:`~dsguard.launch.scan_getopt` for C programs.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct
from msgspec.structs import replace
from packaging.version import Version

from dsguard.launch.arguments import flag_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Option(Struct, frozen=True):
    """One option of a launcher.

    ``names`` are its spellings, ``dest`` the name its parser stores it by. ``convert`` checks a
    value and raises ``ValueError``; it is None for a flag. ``optional`` values must be attached
    (``--flag=value``), a ``pair`` takes one more word. ``last`` ends the launcher's options: what
    follows belongs to the program. ``removed`` is the release that no longer has the option.
    """

    names: tuple[str, ...]
    dest: str
    convert: Callable[[str], object] | None = None
    choices: tuple[str, ...] = ()
    optional: bool = False
    pair: bool = False
    last: bool = False
    removed: str = ""


class OptionMaker(Protocol):
    """Makes an option from its spellings; ``dest`` where it is not the first long name."""

    def __call__(
        self, *names: str, dest: str = "", choices: Sequence[str] = (), removed: str = ""
    ) -> Option:
        """The option."""


def _maker(convert: Callable[[str], object] | None) -> OptionMaker:
    def make(*names: str, dest: str = "", choices: Sequence[str] = (), removed: str = "") -> Option:
        long = next((name for name in names if name.startswith("--")), names[0])
        return Option(
            names, dest or flag_name(long), convert, choices=tuple(choices), removed=removed
        )

    return make


flag = _maker(None)
text = _maker(str)
integer = _maker(int)
number = _maker(float)


def both_spellings(options: Sequence[Option]) -> tuple[Option, ...]:
    """The options with hyphens and underscores standing for each other in long names."""
    return tuple(
        replace(option, names=tuple(dict.fromkeys(_spellings(option.names)))) for option in options
    )


def _spellings(names: Sequence[str]) -> list[str]:
    long = [name[2:] for name in names if name.startswith("--")]
    return [
        *names,
        *("--" + name.replace("_", "-") for name in long),
        *("--" + name.replace("-", "_") for name in long),
    ]


def getopt(table: str, last: Sequence[str] = ()) -> OptionTable:
    """A table written as in ``getopt``: blank-separated entries of spellings joined by ``|``.

    An entry that ends in ``:`` takes a value, in ``::`` one that must be attached, in ``:+`` a
    value and another word. ``last`` names the options that end the options.
    """
    options = []
    for written in table.split():
        entry = written.removesuffix("+")
        names = tuple(entry.rstrip(":").split("|"))
        long = next((name for name in names if name.startswith("--")), names[0])
        convert = str if entry.endswith(":") else None
        options.append(
            Option(
                names,
                flag_name(long),
                convert,
                optional=entry.endswith("::"),
                pair=written.endswith("+"),
                last=any(name in last for name in names),
            )
        )
    return OptionTable(tuple(options))


class OptionTable(Struct, frozen=True, dict=True):
    """All options of one launcher; ``abbreviations`` says whether unique prefixes count."""

    options: tuple[Option, ...]
    abbreviations: bool = True

    @cached_property
    def by_name(self) -> dict[str, Option]:
        """The options by each of their names."""
        return {name: option for option in self.options for name in option.names}

    def of_release(self, release: Version | None) -> OptionTable:
        """The table of a release, which has the options removed later; None is the newest."""
        if release is None or not any(option.removed for option in self.options):
            return self
        options = tuple(
            replace(option, removed="")
            if option.removed and release < Version(option.removed)
            else option
            for option in self.options
        )
        return replace(self, options=options)
