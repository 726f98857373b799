"""Facts: what will really run, and who said so.

A fact is :class:`Known`, :class:`Unknown` or a :class:`Conflict`. Arithmetic only ever
sees known facts; that is what keeps ``"auto"``, unset shell variables and unread scripts
out of the rules.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from msgspec import Struct

if TYPE_CHECKING:
    from dsguard.model.source import Location

FactName: TypeAlias = Literal[
    "deepspeed_version",
    "front_end",
    "launcher",
    "script",
    "config_file",
    "world_size",
    "data_parallel_size",
    "tensor_parallel_size",
    "pipeline_stages",
    "sequence_parallel_size",
    "train_batch_size",
    "micro_batch_size",
    "gradient_accumulation_steps",
    "samples_per_step",
    "gradient_clipping",
    "precision",
    "zero_stage",
    "offload_optimizer",
    "offload_param",
    "optimizer",
    "learning_rate",
    "scheduler",
    "warmup_steps",
    "total_steps",
]
"""The stable names of facts, in the order in which they are shown."""

FACT_NAMES: tuple[FactName, ...] = get_args(FactName)


class OriginKind(str, Enum):
    """Where a value comes from."""

    CONFIG = "config"
    LAUNCH = "launch"
    ENVIRONMENT = "environment"
    HOSTFILE = "hostfile"
    JOBFILE = "jobfile"
    SCRIPT = "script"
    OPTION = "option"
    DEFAULT = "default"
    DERIVED = "derived"


class Origin(Struct, frozen=True):
    """Who said a value.

    ``location`` is the place in the config, launch command, hostfile or job file.
    ``argument`` names the command-line argument, dsguard option or environment variable.
    ``whose`` says whose default it is. ``facts`` are the facts a derived value was
    computed from and ``formula`` how, with the numbers in it.
    """

    kind: OriginKind
    location: Location | None = None
    argument: str | None = None
    whose: str | None = None
    facts: tuple[FactName, ...] = ()
    formula: str = ""

    def describe(self) -> str:
        """The origin in a few words, as a message or a table cell shows it."""
        if self.kind is OriginKind.DEFAULT:
            return f"default of {self.whose}"
        if self.kind is OriginKind.DERIVED:
            return self.formula or "derived from " + ", ".join(self.facts)
        if self.argument:
            return self.argument
        if self.location is not None:
            line, column = self.location.source.position(self.location.span.start)
            return f"{self.location.source.name}:{line}:{column}"
        return str(self.kind.value)


class Candidate(Struct, frozen=True):
    """A value somebody gave, whether or not it counts."""

    value: Any
    origin: Origin


class Known(Struct, frozen=True):
    """The value that counts, its origin, and the values that lost against it."""

    value: Any
    origin: Origin
    ignored: tuple[Candidate, ...] = ()


class Unknown(Struct, frozen=True):
    """A value that cannot be known before launch, and why.

    ``reason`` is a clause without a full stop, such as ``no launch command was given``.
    """

    reason: str
    ignored: tuple[Candidate, ...] = ()


class Conflict(Struct, frozen=True):
    """Two or more values where the run stops instead of choosing one."""

    candidates: tuple[Candidate, ...]


Fact: TypeAlias = Known | Unknown | Conflict


class Facts(Mapping[FactName, Fact]):
    """All facts of one check, in the order of :data:`FACT_NAMES`."""

    def __init__(self, facts: Mapping[FactName, Fact]) -> None:
        missing = Unknown("dsguard does not resolve this fact for this input")
        self._facts: dict[FactName, Fact] = {name: facts.get(name, missing) for name in FACT_NAMES}

    def __getitem__(self, name: FactName) -> Fact:
        return self._facts[name]

    def __iter__(self) -> Iterator[FactName]:
        return iter(self._facts)

    def __len__(self) -> int:
        return len(self._facts)

    def known(self, name: FactName) -> Known:
        """A fact that a rule declared it needs.

        Raises:
            LookupError: the fact is not known; a rule that asks for it must name it in ``needs``.
        """
        fact = self._facts[name]
        if not isinstance(fact, Known):
            raise LookupError(f"the fact {name} is not known; name it in the rule's `needs`")
        return fact

    def value(self, name: FactName) -> Any:
        """The known value of a fact, or None where it is not known."""
        fact = self._facts[name]
        return fact.value if isinstance(fact, Known) else None
