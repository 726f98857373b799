"""The base of all config blocks, and how their keys are declared.

DeepSpeed reads its config in two ways. Some blocks it hands to pydantic models of its own:
those check types and refuse unknown keys (:class:`CheckedBlock`). The others it reads key by key
with ``dict.get``: there an unknown key is ignored and nearly every value is passed on
unchecked (:class:`UncheckedBlock`).

The classes written down in the modules of the blocks hold the keys of all releases;
:func:`~dsguard.schema.releases.as_of` gives a block as one release had it. They only declare:
:mod:`~dsguard.schema.shape` reads a declaration when somebody asks for its key, and
:mod:`~dsguard.schema.checked` validates a block by its declarations.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Set
from enum import Enum
from functools import cache
from types import SimpleNamespace
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Struct
from packaging.version import Version

from dsguard.model.finding import Consequence
from dsguard.schema.history import NEWEST_KNOWN, OLDEST_KNOWN, SAME, History, Was, numbered
from dsguard.schema.problem import Place, Problem

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class UnknownKeys(str, Enum):
    """What DeepSpeed does with a key it does not know in a block.

    ``free``: the block's content is handed on as it is, so no key is unknown to DeepSpeed.
    """

    REFUSED = "refused"
    IGNORED = "ignored"
    FREE = "free"


class Block:
    """A block of the config.

    A class declares the keys of a block, each with its type, DeepSpeed's default and its
    documentation; :func:`key` adds the key's history. An object of the class is a block of some
    config: its attributes are the values that DeepSpeed reads, or the defaults.
    :func:`~dsguard.schema.shape.made` makes one.

    Annotations are evaluated where they stand, except those that name a module which is imported
    only for configs that have the block: these are text (:meth:`Key.annotation`).
    """

    unknown_keys: ClassVar[UnknownKeys]

    release: ClassVar[Version] = NEWEST_KNOWN
    """The release that the class describes."""

    with_history: ClassVar[type[Block] | None] = None
    """The class that holds the keys of all releases; None where this is the one."""

    def __init__(self, given: Mapping[str, Any], default: Callable[[str], Any]) -> None:
        self.__dict__.update(given)
        self.written: Set[str] = given.keys()
        """The attributes whose value the config gives."""
        self.default = default
        """What DeepSpeed uses for an attribute that the config does not give."""

    @classmethod
    def is_since(cls, release: str) -> bool:
        """Whether the class describes this release or a newer one."""
        return cls.release >= numbered(release)

    @classmethod
    def unread(cls, given: dict[str, Any]) -> frozenset[str]:
        """Keys that nobody looks at, because of other values in a block read key by key."""
        return frozenset()


class CheckedBlock(Block):
    """A block that DeepSpeed hands to a pydantic model of its own.

    Types are checked with pydantic's lax coercions, unknown keys are refused, and two things
    happen before: every value that is exactly the string ``"auto"`` is dropped, so that the default
    counts, and a key named ``strict`` is taken as an argument of the model (when true,
    ``"auto"`` is kept). Source: ``DeepSpeedConfigModel`` in deepspeed/runtime/config_utils.py.
    """

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.REFUSED

    checked_since: ClassVar[Version] = OLDEST_KNOWN
    """The first release that had a model for the block; older ones read it key by key."""

    @classmethod
    def is_checked(cls) -> bool:
        """Whether the release that the class describes has a model for the block."""
        return cls.release >= cls.checked_since

    @classmethod
    def arguments(cls, given: Any) -> Any:
        """What DeepSpeed's model gets to see of an object; anything else is returned as it is."""
        if not isinstance(given, dict):
            return given
        keeps_auto = given.get("strict", False)
        return {
            key: value
            for key, value in given.items()
            if key != "strict" and (keeps_auto or value != "auto" or key == "replace_method")
        }

    def combinations(self, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """Values of this block that are fine alone and do not go together.

        ``given`` is the block as written, with the spellings that were used, and ``at`` its place.
        """
        return iter(())


class UncheckedBlock(Block):
    """A block that DeepSpeed reads key by key, passing values on as they are.

    The annotations say what the readers further down need. A value that already stops
    DeepSpeed while it reads the config is described by :class:`Takes`.
    """

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.IGNORED

    passes_on: ClassVar[bool] = False
    """Whether a key without a field reaches a constructor as an argument."""

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """What has to be judged by more than one value; see :class:`CheckedBlock`."""
        return iter(())


class Limit(Struct, frozen=True):
    """Marks a number that has to keep to a limit."""

    sign: Literal["gt", "ge", "lt", "le"]
    number: float


class Takes(Struct, frozen=True):
    """Marks a field of an unchecked block whose value DeepSpeed does look at.

    ``test`` is true for every value it reads without an error; ``expected`` says the same in
    words, completing "must be ...". Given in ``Annotated``.
    """

    test: Callable[[Any], bool]
    expected: str


class Holds(Struct, frozen=True):
    """Marks a field of a checked block whose object DeepSpeed reads later as another block."""

    block: type[UncheckedBlock]


class Before(Struct, frozen=True):
    """Marks a field of a checked block whose value goes through a function first.

    It returns what is checked then, or raises ValueError for a value of a wrong type and
    :class:`OutOfRangeError` for any other it refuses.
    """

    function: Callable[[Any], Any]


class After(Struct, frozen=True):
    """Marks a field of a checked block whose value goes through a function once it is checked."""

    function: Callable[[Any], Any]


class OutOfRangeError(ValueError):
    """A value of a good type that is refused."""


class Key:
    """The declaration of one key; :func:`key` makes it.

    On an object it stands for the default, unless the object has a value of that name.
    """

    __slots__ = ("alias", "attribute", "default", "doc", "history", "limits", "owner")

    owner: type[Block]
    attribute: str

    def __init__(
        self,
        default: Any,
        doc: str,
        history: History,
        limits: tuple[Limit, ...],
        alias: str | None,
    ) -> None:
        self.default = default
        self.doc = doc
        self.history = history
        self.limits = limits
        self.alias = alias

    def __set_name__(self, owner: type[Block], name: str) -> None:
        self.owner, self.attribute = owner, name

    def __get__(self, block: Block | None, owner: type[Block]) -> Any:
        return self if block is None else block.default(self.attribute)

    @property
    def spellings(self) -> tuple[str, ...]:
        """All spellings of the key, the documented one first."""
        return (self.alias, self.attribute) if self.alias else (self.attribute,)

    def annotation(self, release: Version) -> tuple[Any, tuple[Any, ...]]:
        """The type of the key in a release, and the marks on it."""
        form, limits = self.history.form(release), self.limits
        if form is not None and form.type is not SAME:
            written, limits = form.type, ()
        else:
            written = self.owner.__annotations__[self.attribute]
        if isinstance(written, str):  # it names modules that are imported by looking it up
            alone = SimpleNamespace(__annotations__={self.attribute: written})
            names = vars(sys.modules[self.owner.__module__])
            written = get_type_hints(alone, names, include_extras=True)[self.attribute]
        if get_origin(written) is Annotated:
            written, *marks = get_args(written)
            return written, (*marks, *limits)
        return written, limits

    def default_in(self, release: Version) -> Any:
        """What a release uses when the key is absent; {} where that is an empty block."""
        form = self.history.form(release)
        return self.default if form is None or form.default is SAME else form.default


def cached(function: FunctionT) -> FunctionT:
    """``functools.cache`` for functions of a block; mypy takes no class for hashable."""
    return cast(FunctionT, cache(function))


@cached
def keys_of(block: type[Block]) -> dict[str, Key]:
    """The declarations of a block and its bases by attribute, those of all releases."""
    return {
        name: value
        for base in reversed(block.__mro__)
        for name, value in vars(base).items()
        if isinstance(value, Key)
    }


def key(
    default: Any,
    doc: str,
    *,
    since: str = "0.9.0",
    removed: str | None = None,
    refused_when_gone: bool = False,
    deprecated: str | None = None,
    replaced_by: str | None = None,
    was: tuple[Was, ...] = (),
    alias: str | None = None,
    wrong: Consequence | None = None,
    outdated: Consequence | None = None,
    expected: str | None = None,
    gt: float | None = None,
    ge: float | None = None,
    lt: float | None = None,
    le: float | None = None,
) -> Any:
    """A key of a block.

    Args:
        default: what DeepSpeed uses when the key is absent; {} for a block that is empty.
        doc: what the key means, with its unit.
        since: the first release that reads the key (0.9.0: that one or an older one).
        removed: the first release that no longer reads it, for a key that is gone.
        refused_when_gone: whether its mere presence stops these releases, whatever the value and
            whatever the block does with unknown keys.
        deprecated: the first release that warns about it or treats it as an old form.
        replaced_by: the dotted path or the words to use instead.
        was: how older releases differed, oldest first.
        alias: the documented spelling, where the field has two.
        wrong: what a value of another type leads to in a block that does not check types;
            without it a string for a true/false setting differs and anything else is late.
        outdated: what using a deprecated key leads to; without it the key alone is no problem.
        expected: the accepted values in words, where the annotation does not say them all.
        gt: a number must be above this.
        ge: a number must be at least this.
        lt: a number must be below this.
        le: a number must be at most this.
    """
    history = History(
        since=numbered(since),
        removed=numbered(removed) if removed else None,
        refused_when_gone=refused_when_gone,
        deprecated=numbered(deprecated) if deprecated else None,
        replaced_by=replaced_by,
        wrong=wrong,
        outdated=outdated,
        expected=expected,
        was=was,
    )
    limits: list[Limit] = []
    if gt is not None:
        limits.append(Limit("gt", gt))
    if ge is not None:
        limits.append(Limit("ge", ge))
    if lt is not None:
        limits.append(Limit("lt", lt))
    if le is not None:
        limits.append(Limit("le", le))
    return Key(default, doc, history, tuple(limits), alias)
