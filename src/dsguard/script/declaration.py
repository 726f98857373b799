"""One declared argument of a script, and what can be said of its default."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from dsguard.model.source import Location


class Constant(Struct, frozen=True):
    """A value that the text fixes, such as ``8`` or ``[0.9, 0.999]``."""

    value: Any


class Unreadable(Struct, frozen=True):
    """A value that the text does not fix; ``reason`` is a clause without a full stop."""

    reason: str


class FromArgument(Struct, frozen=True):
    """The value of the script's own argument ``name``, as in ``args.batch_size``."""

    name: str


Default: TypeAlias = Constant | Unreadable | None
"""The value an argument has when it is not given; None where nothing gives it one."""


class Takes(str, Enum):
    """How many values follow a flag on the command line."""

    NOTHING = "nothing"
    OPTIONAL = "optional"
    ONE = "one"
    MANY = "many"


class Declaration(Struct, frozen=True):
    """One argument as the script declares it.

    ``name`` is what the script calls the value (argparse's ``dest``). ``flags`` are the
    spellings on the command line; an argument without flags is positional or, where it takes
    nothing, a value that only ``set_defaults`` gives. ``alone`` is the value of a flag that
    stands without one (argparse's ``const``); flags in ``negated`` mean its opposite.
    ``type_name`` is the conversion as the script names it, None where it names none.
    ``location`` is the call or the dataclass field.
    """

    name: str
    flags: tuple[str, ...]
    default: Default
    location: Location
    type_name: str | None = None
    takes: Takes = Takes.ONE
    alone: Default = None
    negated: tuple[str, ...] = ()
    choices: tuple[Any, ...] | None = None
    required: bool = False

    @property
    def is_switch(self) -> bool:
        """Whether the flag may stand alone, as ``--bf16`` does."""
        return self.takes is Takes.NOTHING or (
            self.takes is Takes.OPTIONAL and self.alone is not None
        )

    def standing_alone(self, flag: str) -> Default:
        """The value that ``flag`` gives without a value of its own; None where it needs one."""
        if flag in self.negated and isinstance(self.alone, Constant):
            return Constant(not self.alone.value)
        return self.alone
