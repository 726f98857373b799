"""A model under DDP or FSDP and its optimizer, as rules see them: no config, only a loop."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from dsguard.model.fact import FactName, Known, Origin, OriginKind
from dsguard.runtime.engines.gradient_sync import GradientSync, world_size
from dsguard.runtime.engines.script import parameters_of
from dsguard.runtime.run import said_by
from dsguard.runtime.wording import LOOP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dsguard.facts.known_bugs import BugFact
    from dsguard.runtime.expectation import Expectation


class DataParallelView:
    """Implements :class:`dsguard.runtime.run.Engine` for a loop without DeepSpeed."""

    zero_stage = 0
    words = LOOP

    def __init__(
        self, model: Any, optimizer: Any, syncs: tuple[GradientSync, ...], expected: Expectation
    ) -> None:
        self._model = weakref.ref(model)
        self._optimizer = weakref.ref(optimizer)
        self._accumulation = _asked(expected, "gradient_accumulation_steps")
        self._micro_batch = _asked(expected, "micro_batch_size")
        self.kind = type(model).__name__
        self.syncs = syncs
        self.ranks = data_parallel_size(syncs)

    @property
    def model(self) -> Any:
        """The live model.

        Raises:
            ReferenceError: it is gone.
        """
        return _alive(self._model, "model")

    @property
    def optimizer(self) -> Any:
        """The live optimizer.

        Raises:
            ReferenceError: it is gone.
        """
        return _alive(self._optimizer, "optimizer")

    def expected_accumulation(self) -> int | None:
        """What was asked for; the loop itself says it nowhere."""
        return self._accumulation

    def accumulation(self) -> int:
        """What was asked for, else 1: nobody counts."""
        return self._accumulation or 1

    def micro_batch(self) -> int | None:
        """What was asked for."""
        return self._micro_batch

    def at_boundary(self) -> bool:
        """No loop says so."""
        return False

    def facts(self) -> Mapping[FactName, Known]:
        """The ranks there are, and the samples of one step by what was asked for."""
        ranks = said_by("the process group")
        facts: dict[FactName, Known] = {
            "world_size": Known(world_size(), ranks),
            "data_parallel_size": Known(self.ranks, ranks),
        }
        micro, steps = self.micro_batch(), self.expected_accumulation()
        if micro is not None and steps is not None:
            formula = f"{micro} x {steps} x {self.ranks} ranks"
            facts["train_batch_size"] = Known(
                micro * steps * self.ranks, Origin(OriginKind.DERIVED, formula=formula)
            )
        return facts

    def keeps_last_backward_only(self) -> bool:
        """Gradients add up."""
        return False

    def needs_engine_forward(self) -> str:
        """What a forward around the model costs; see :class:`Engine`."""
        names = " and ".join(sync.name for sync in self.syncs if sync.harm)
        return f"{names} synchronises only what went through it" if names else ""

    def needs_engine_backward(self) -> str:
        """``loss.backward()`` is the way here."""
        return ""

    def needs_boundary_in_backward(self) -> str:
        """There is no boundary to declare."""
        return ""

    def release(self) -> str:
        """The table of known bugs is about DeepSpeed."""
        return ""

    def bug_facts(self) -> Mapping[BugFact, Any]:
        """As :meth:`release`."""
        return {}

    def leftover_auto(self) -> tuple[str, ...]:
        """There is no config."""
        return ()

    def loader_length(self) -> int | None:
        """The script's loader is not the model's."""
        return None

    def needs_synchronised_step(self) -> str:
        """What a step on this rank's own gradients does; see :class:`Engine`."""
        return "; ".join(sync.harm for sync in self.syncs if sync.harm)

    def synchronisation_unseen(self) -> str:
        """Why it is not known whether gradients are synchronised; see :class:`Engine`."""
        return "; ".join(
            f"{sync.name} has no {sync.missing}" for sync in self.syncs if sync.missing
        )

    def foreign_optimizer(self) -> str:
        """Which optimizer holds none of the model's parameters; see :class:`Engine`."""
        of_model = {id(parameter) for parameter in self.model.parameters()}
        if any(id(parameter) in of_model for parameter in parameters_of(self.optimizer)):
            return ""
        return type(self.optimizer).__name__

    def keeps_gradients(self) -> bool:
        """Whether all gradients of a window lie in ``parameter.grad``, synchronised or not."""
        return all(sync.keeps_gradients for sync in self.syncs)


def data_parallel_size(syncs: tuple[GradientSync, ...]) -> int:
    """Ranks that consume different samples."""
    return max((sync.ranks for sync in syncs), default=1)


def _alive(reference: weakref.ReferenceType[Any], what: str) -> Any:
    found = reference()
    if found is None:
        raise ReferenceError(f"the {what} is gone")
    return found


def _asked(expected: Expectation, name: FactName) -> int | None:
    asked = expected.asked.get(name)
    return int(asked.value) if asked is not None else None
