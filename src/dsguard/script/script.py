"""What dsguard knows of a training script without running it."""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import Struct, field

from dsguard.script.loop.description import Loop
from dsguard.script.processes import OwnRanks
from dsguard.script.training_arguments import (
    FRAMEWORK_CLASSES,
    TRAINING_ARGUMENTS_NAMES,
    TRAINING_ARGUMENTS_ON,
    framework_names,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dsguard.model.source import Location, Source
    from dsguard.script.declaration import Constant, Declaration, FromArgument, Unreadable


class ParserKind(str, Enum):
    """What turns the command line of a script into values.

    The arguments of the first four are read. The others are named only: they take their
    arguments from signatures, files or registries that dsguard does not follow.
    """

    ARGPARSE = "argparse"
    HF = "HfArgumentParser"
    TYPER = "typer"
    CLICK = "click"
    FIRE = "fire"
    TYRO = "tyro"
    JSONARGPARSE = "jsonargparse"
    ABSL = "absl"
    HYDRA = "hydra"
    CONFIGARGPARSE = "configargparse"
    SIMPLE_PARSING = "simple_parsing"
    TAP = "tap"


READABLE = (ParserKind.HF, ParserKind.ARGPARSE, ParserKind.TYPER, ParserKind.CLICK)
"""The kinds whose declarations are read, the most telling first."""


ABBREVIATING = frozenset({ParserKind.ARGPARSE, ParserKind.HF})
"""The kinds that may take the beginning of a flag for all of it."""
_HELP = ("-h", "--help")


class Gap(Struct, frozen=True):
    """A place where the script may declare more, or otherwise, than could be read.

    ``reason`` is a clause without a full stop.
    """

    reason: str
    location: Location


class SetupCall(Struct, frozen=True):
    """A call that sets a front end up, such as ``TrainingArguments(learning_rate=args.lr)``.

    ``class_name`` is the class as the script names it and ``framework`` the class of the library
    behind it: of transformers or TRL, or one of :data:`dsguard.script.setups.SETUP_CLASSES`.
    ``places`` say where each of ``keywords`` has its value. ``complete`` is False where ``**`` or
    positional values may set more than ``keywords`` say.
    """

    class_name: str
    framework: str
    keywords: Mapping[str, Constant | Unreadable | FromArgument]
    places: Mapping[str, Location]
    complete: bool
    location: Location


class Script(Struct, frozen=True, dict=True):
    """A training script, read.

    ``unreadable`` says why the text could not be read at all; everything else is empty then.
    ``imports`` holds every imported module with its parents (``a``, ``a.b``) and
    ``module.name`` for names imported from one. ``arguments`` are in the order of
    declaration; the first of two that share a name gives the default, as in argparse.
    ``framework`` names the class of transformers or TRL (``TrainingArguments``,
    ``SFTConfig``) whose further names the command line accepts too, with that class's
    defaults. ``config_flag`` is a flag that names a file with further defaults. ``hands_on_rest``
    says whether a parser leaves the arguments that it does not know to others
    (``parse_known_args``).
    ``reassigned`` maps attribute names to the first place where the script stores to such an
    attribute (``args.lr = …``): there the command line may not have the last word. ``replaced``
    are the fields that ``dataclasses.replace`` gives another value, ``"*"`` where they are not
    known. ``gaps`` say where the picture may be incomplete. ``loop`` is what it does with its
    engines, and ``ranks`` what in it has a say in how many processes there are.
    """

    source: Source
    imports: frozenset[str] = frozenset()
    parser: ParserKind | None = None
    arguments: tuple[Declaration, ...] = ()
    abbreviations: bool = False
    adds_deepspeed_arguments: bool = False
    hands_on_rest: bool = False
    framework: str | None = None
    config_flag: str | None = None
    setups: tuple[SetupCall, ...] = ()
    reassigned: Mapping[str, Location] = field(default_factory=dict)
    replaced: frozenset[str] = frozenset()
    gaps: tuple[Gap, ...] = ()
    loop: Loop = field(default_factory=Loop)
    ranks: OwnRanks = OwnRanks()
    unreadable: str | None = None

    @property
    def trains(self) -> bool:
        """Whether it makes an engine, or gives something a DeepSpeed config."""
        return bool(self.loop.engines or self.loop.configs)

    @property
    def training_arguments(self) -> tuple[SetupCall, ...]:
        """The calls of TrainingArguments classes."""
        return tuple(call for call in self.setups if call.framework in FRAMEWORK_CLASSES)

    @property
    def is_training_arguments(self) -> bool:
        """Whether the command line accepts every name of a TrainingArguments class."""
        return self.framework is not None

    @cached_property
    def flags(self) -> Mapping[str, str]:
        """Every flag that could be read, with the name of its argument."""
        return dict(self._flags())

    def _flags(self) -> Iterator[tuple[str, str]]:
        if self.parser in ABBREVIATING:
            yield from ((flag, "help") for flag in _HELP)
        for declaration in self.arguments:
            yield from ((flag, declaration.name) for flag in declaration.flags)
        if self.framework is None:
            return
        own = {declaration.name for declaration in self.arguments}
        for name in (framework_names(self.framework) or TRAINING_ARGUMENTS_NAMES) - own:
            for prefix in ("", "no_") if name in TRAINING_ARGUMENTS_ON else ("",):
                yield f"--{prefix}{name}", name
                yield "--" + f"{prefix}{name}".replace("_", "-"), name
