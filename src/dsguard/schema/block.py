"""The base of all models of config blocks, and how their fields are declared.

DeepSpeed reads its config in two ways. Some blocks it hands to pydantic models of its own:
those check types and refuse unknown keys (:class:`CheckedBlock`). The others it reads key by key
with ``dict.get``: there an unknown key is ignored and nearly every value is passed on
unchecked (:class:`UncheckedBlock`).

The classes written down here and in the modules of the blocks hold the keys of all releases;
:func:`~dsguard.schema.releases.as_of` gives a block as one release had it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

from packaging.version import Version
from pydantic import BaseModel, ConfigDict, Field, model_validator

from dsguard.model.finding import Consequence
from dsguard.schema.history import NEWEST_KNOWN, OLDEST_KNOWN, History, Was
from dsguard.schema.problem import Place, Problem


class UnknownKeys(str, Enum):
    """What DeepSpeed does with a key it does not know in a block.

    ``free``: the block's content is handed on as it is, so no key is unknown to DeepSpeed.
    """

    REFUSED = "refused"
    IGNORED = "ignored"
    FREE = "free"


class Block(BaseModel):
    """A block of the config.

    Every field has DeepSpeed's default and documentation of its own; :func:`key` adds its
    history. Models are built on first use. Modules of blocks do without postponed
    annotations, which pydantic would have to evaluate one by one whenever dsguard starts.
    """

    model_config = ConfigDict(
        populate_by_name=True,
        use_enum_values=True,
        protected_namespaces=(),
        defer_build=True,
    )

    unknown_keys: ClassVar[UnknownKeys]

    release: ClassVar[Version] = NEWEST_KNOWN
    """The release that the class describes."""

    with_history: ClassVar[type[Block] | None] = None
    """The class that holds the keys of all releases; None where this is the one."""

    @classmethod
    def is_since(cls, release: str) -> bool:
        """Whether the class describes this release or a newer one."""
        return cls.release >= Version(release)

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

    model_config = ConfigDict(extra="forbid")

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

    @model_validator(mode="before")
    @classmethod
    def _take_arguments(cls, given: Any) -> Any:
        return cls.arguments(given)

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

    model_config = ConfigDict(extra="allow")

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.IGNORED

    passes_on: ClassVar[bool] = False
    """Whether a key without a field reaches a constructor as an argument."""

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """What has to be judged by more than one value; see :class:`CheckedBlock`."""
        return iter(())


@dataclass(frozen=True)
class Takes:
    """Marks a field of an unchecked block whose value DeepSpeed does look at.

    ``test`` is true for every value it reads without an error; ``expected`` says the same in
    words, completing "must be ...". Given in ``Annotated``.
    """

    test: Callable[[Any], bool]
    expected: str


@dataclass(frozen=True)
class Holds:
    """Marks a field of a checked block whose object DeepSpeed reads later as another block."""

    block: type[UncheckedBlock]


def key(
    default: Any,
    doc: str,
    *,
    since: str = str(OLDEST_KNOWN),
    removed: str | None = None,
    refused_when_gone: bool = False,
    deprecated: str | None = None,
    replaced_by: str | None = None,
    was: tuple[Was, ...] = (),
    alias: str | None = None,
    wrong: Consequence | None = None,
    outdated: Consequence | None = None,
    expected: str | None = None,
    **constraints: Any,
) -> Any:
    """A field of a block.

    Args:
        default: what DeepSpeed uses when the key is absent; a class of a block for one that is
            empty.
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
        **constraints: pydantic's ``gt``, ``ge``, ``lt`` and ``le``.
    """
    history = History(
        since=Version(since),
        removed=Version(removed) if removed else None,
        refused_when_gone=refused_when_gone,
        deprecated=Version(deprecated) if deprecated else None,
        replaced_by=replaced_by,
        wrong=wrong,
        outdated=outdated,
        expected=expected,
        was=was,
    )
    if isinstance(default, type):
        constraints["default_factory"] = default
    else:
        constraints["default"] = default
    return Field(alias=alias, description=doc, json_schema_extra=history, **constraints)
