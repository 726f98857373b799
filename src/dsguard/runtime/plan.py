"""What ``guard`` was asked to do, after its arguments were understood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dsguard.runtime.contracts import asked_by
from dsguard.runtime.expectation import Asked, Expectation, Expected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dsguard.facts.contract import Contract
    from dsguard.model.source import Location
    from dsguard.runtime.reporting import Notebook
    from dsguard.runtime.rule import GuardRule
    from dsguard.runtime.sink import Sink


@dataclass(frozen=True)
class Plan:
    """The arguments of :func:`dsguard.guard`, and the line that called it."""

    expect: Expected
    contract: Contract | None
    rules: tuple[GuardRule[Any], ...]
    notebook: Notebook
    compare_ranks: bool
    every: int | None
    balance_every: int | None
    sinks: Sequence[Sink]
    optimizer: Any
    dataloader: Any
    attached_at: Location

    def expectation(self, data_parallel_size: int) -> Expectation:
        """Everything that was asked for.

        What the caller expects wins over the contract; what a trainer asks for does not, since a
        script may have given it other values than the launch.

        Raises:
            TypeError, ValueError: as :meth:`Expectation.read`.
        """
        expected = Expectation.read(self.expect, self.attached_at, data_parallel_size)
        if self.contract is None:
            return expected
        contracted = asked_by(self.contract)
        if isinstance(self.expect, Asked):
            return Expectation({**expected.asked, **contracted})
        return Expectation({**contracted, **expected.asked})
