"""What a rule can ask about the run: the engine as it is now, what was asked for, the counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from dsguard.model.fact import FactName, Known, Origin, OriginKind
from dsguard.model.finding import Because
from dsguard.runtime.ordinary import Ordinary
from dsguard.runtime.place import here

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dsguard.facts.contract import Contract
    from dsguard.facts.known_bugs import BugFact
    from dsguard.model.source import Location
    from dsguard.runtime.balance import Balance
    from dsguard.runtime.expectation import Expectation
    from dsguard.runtime.windows import Windows
    from dsguard.runtime.wording import Words


class Boundary(Enum):
    """Who decides where a window ends.

    ``ENGINE``: DeepSpeed counts calls of ``step()``. ``MANUAL``: the script says it through
    ``set_gradient_accumulation_boundary``. ``CALLER``: every ``step()`` is one
    (``managed_gradient_accumulation`` false, and loops without DeepSpeed).
    """

    ENGINE = "engine"
    MANUAL = "manual"
    CALLER = "caller"


class Engine(Protocol):
    """A live engine, seen through what its release can do. Nothing is cached that may change."""

    kind: str
    """What it is called, such as ``DeepSpeedEngine``."""

    zero_stage: int
    """0 where nothing is partitioned, or where it is no DeepSpeed engine."""

    words: Words
    """How messages name what the script calls."""

    def accumulation(self) -> int:
        """Micro-batches in one optimizer step, as the engine counts now; 1 where nobody does."""

    def micro_batch(self) -> int | None:
        """Samples in one micro-batch on this rank, None where nobody said."""

    def at_boundary(self) -> bool:
        """Under a manual boundary: whether the script has said that this is one."""

    def facts(self) -> Mapping[FactName, Known]:
        """What the engine runs with, and who told it so."""

    def keeps_last_backward_only(self) -> bool:
        """Whether several backward passes in one ``step()`` leave only the last gradient."""

    def needs_engine_forward(self) -> str:
        """What goes wrong with a forward around the engine; empty where nothing does."""

    def needs_engine_backward(self) -> str:
        """What goes wrong with ``loss.backward()``; empty where the release supports it."""

    def needs_boundary_in_backward(self) -> str:
        """What goes wrong where the last backward of a window was told of no boundary.

        Empty where nothing does.
        """

    def release(self) -> str:
        """The release of the library that runs, such as ``0.19.8``; empty where it says none."""

    def bug_facts(self) -> Mapping[BugFact, Any]:
        """What the table of known bugs may ask, less what this run has done so far."""

    def leftover_auto(self) -> tuple[str, ...]:
        """Config keys (dotted) that a front end should have filled and that still say ``auto``."""

    def loader_length(self) -> int | None:
        """Batches in one pass over the engine's or the script's own loader, where known."""

    def needs_synchronised_step(self) -> str:
        """What a step on gradients does that were not synchronised; empty where nothing wrong."""

    def foreign_optimizer(self) -> str:
        """The optimizer's type, where it holds no parameter of the model; else empty."""

    def synchronisation_unseen(self) -> str:
        """Why it cannot be seen whether gradients are synchronised; empty where it can."""


@dataclass(slots=True)
class Run:
    """The state that rules read."""

    engine: Engine
    expected: Expectation
    attached_at: Location
    ordinary: Ordinary = field(default_factory=Ordinary)
    """What is counted on the spot."""
    contract: Contract | None = None
    """What was checked before the launch, where it was."""
    boundary: Boundary = Boundary.ENGINE
    """Who decided where the window ends, when the last micro-batch or step was seen."""
    reduced: bool = True
    """Whether the engine took the last backward pass for the last of its window."""
    through_engine: bool = True
    """Whether the last backward pass was started by ``engine.backward``."""
    resized: bool = False
    """Whether the script has changed the batch since the last optimizer step."""
    interrupted: bool = False
    """Whether a backward pass or step of the open window has raised.

    What the engine has done of it nobody knows: nothing is judged until the next optimizer step.
    """
    probing: bool = True
    balance: Balance | None = None
    """How even the ranks' work was when it was compared last."""
    said: set[str] = field(default_factory=set)
    """Slugs of the rules that have found something, so that a consequence of it is not told."""

    @property
    def windows(self) -> Windows:
        """The counts, what was counted on the spot included."""
        return self.ordinary.windows()

    def accumulation(self) -> int:
        """Micro-batches in one optimizer step: as asked for, else as the engine counts."""
        asked = self.expected.asked.get("gradient_accumulation_steps")
        return int(asked.value) if asked is not None else self.engine.accumulation()

    def asked(self, name: FactName) -> tuple[Because, ...]:
        """Who asked for this, as a reason; empty where nobody did."""
        asked = self.expected.asked.get(name)
        return (Because.of(name, asked),) if asked is not None else ()

    def engine_says(self, name: FactName) -> tuple[Because, ...]:
        """What the engine runs with, as a reason; empty where it does not say."""
        known = self.engine.facts().get(name)
        return (Because.of(name, known),) if known is not None else ()

    def here(self) -> Location:
        """The line of the training script that is running."""
        return here()


def said_by(argument: str) -> Origin:
    """The origin of a value that the engine's own config or a call of the script gives."""
    return Origin(OriginKind.CONFIG, argument=argument)
