"""What names can stand for in a training loop, while the script is followed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from dsguard.script.loop.description import (
    Block,
    Condition,
    Context,
    Counted,
    Engine,
    FromConfig,
    FromEngine,
    Given,
    Loader,
    Whose,
)

if TYPE_CHECKING:
    import ast
    from collections.abc import Mapping

    from dsguard.model.source import Location
    from dsguard.script.declaration import Constant, FromArgument
    from dsguard.script.objects import Value


class Made(Struct, eq=False):
    """What a call of a library gives: ``name`` is the dotted name of what was called.

    ``keywords`` and ``positional`` are the values that it was given, ``texts`` how they are
    written. ``loader`` is set for a DataLoader, ``is_prepared`` once ``accelerator.prepare`` got
    it. ``by_rank`` says that one rank's part was asked for.
    """

    name: str
    location: Location
    positional: tuple[Value, ...] = ()
    keywords: Mapping[str, Value] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    loader: Loader | None = None
    is_prepared: bool = False
    by_rank: bool = False

    @property
    def last(self) -> str:
        """The name without its module."""
        return self.name.rpartition(".")[2]


class Dict(Struct, eq=False):
    """A dict written in the script, changed as the statements behind it do.

    ``file`` is the name of the file that it was loaded from, None for one that the script writes
    itself; ``nested`` are then changes below its top level. ``lost`` says why its content is not
    known any more. ``kept`` is True once a name or attribute holds it, from where other code may
    change it.
    """

    node: ast.Dict | ast.Call
    location: Location
    blocks: tuple[Block, ...]
    entries: dict[str, Entry] = field(default_factory=dict)
    file: Constant | FromArgument | None = None
    nested: dict[tuple[str, ...], Entry] = field(default_factory=dict)
    lost: str = ""
    kept: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether all that it holds stands in the script."""
        return not self.lost and self.file is None


class Opened(Struct, frozen=True):
    """A file that the script opens, or its text: ``name`` is a constant or an argument."""

    name: Constant | FromArgument


class Entry(Struct, frozen=True):
    """One value of a :class:`Dict` with its places.

    ``perhaps`` says that a run may leave the key out.
    """

    value: Value
    key_location: Location
    location: Location
    text: str
    perhaps: bool = False


class EngineValue(Struct, frozen=True, eq=False):
    """The engine itself."""

    engine: Engine


class ModuleValue(Struct, frozen=True):
    """``engine.module``, or the model that the engine was made from."""

    engine: Engine


class Role(Struct, frozen=True):
    """The optimizer, scheduler or loader of an engine: ``what`` names which."""

    engine: Engine
    what: str
    whose: Whose = Whose.RETURNED


class Accelerator(Struct, frozen=True):
    """An ``accelerate.Accelerator``."""

    made: Made


class Derived(Struct, frozen=True):
    """Something computed from the outputs of engines, such as the loss.

    ``divisions`` are what it was divided by, with the blocks around each division. ``method`` is
    the attribute of it that was asked for last, for where that is called.
    """

    engines: frozenset[Engine]
    divisions: tuple[tuple[Given, tuple[Block, ...]], ...] = ()
    is_sum: bool = False
    method: str = ""


class Batch(Struct, frozen=True):
    """What a loader yields, or something made of it."""

    loader: Loader | None


class Turns(Struct, frozen=True):
    """Something to loop over that yields a loader's batches; ``counted`` as ``enumerate`` does."""

    loader: Loader | None
    counted: bool = False
    is_prepared: bool = False


class Rank(Struct, frozen=True):
    """The number of a process: ``torch.distributed.get_rank()``, ``args.local_rank``."""


class Remainder(Struct, frozen=True):
    """``counter % amount``."""

    amount: Given


class Reciprocal(Struct, frozen=True):
    """``1 / amount``."""

    amount: Given


class Test(Struct, frozen=True):
    """A condition that is not yet decided; all of ``conditions`` have to hold."""

    conditions: tuple[Condition, ...]


class Call(Struct, frozen=True):
    """A method of one of these values, not yet called."""

    receiver: Any
    name: str


class Manager(Struct, frozen=True):
    """What a ``with`` statement enters."""

    context: Context


Tracked = (
    EngineValue
    | ModuleValue
    | Role
    | Accelerator
    | Derived
    | Batch
    | Turns
    | Rank
    | Remainder
    | Reciprocal
    | Test
    | Call
    | Manager
    | Made
    | Dict
    | FromEngine
    | FromConfig
    | Counted
    | Opened
)
"""Every value of a training loop."""

FOLLOWED = (EngineValue, ModuleValue, Role, Accelerator, Derived, Batch, Turns, Made, Dict, Call)
"""What makes the call of a function worth following with the values that it is given."""


def is_followed(value: Any) -> bool:
    """Whether a function that gets this value is followed with it."""
    members = getattr(value, "members", None)
    if isinstance(members, tuple):
        return any(is_followed(member) for member in members)
    return isinstance(value, FOLLOWED)
