"""The moments of a run at which rules are asked, and what can be seen at each.

Adapters make them; rules read them. Counts are those of this rank. After the first clean
windows an ordinary forward, backward pass or step is told in a sample of windows only: one
with a batch of the engine's size, within the accumulation, or with one backward pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dsguard.facts.contract import Contract
    from dsguard.runtime.balance import Balance
    from dsguard.runtime.run import Run
    from dsguard.runtime.windows import Window


@dataclass(slots=True)
class Moment:
    """Something happened in the run."""

    run: Run


@dataclass(slots=True)
class Attached(Moment):
    """The guard was put on an engine; nothing has run under it yet."""


@dataclass(slots=True)
class RanksCompared(Moment):
    """Every rank told what it is about to do.

    ``apart`` maps what they do not agree on to what each rank told; ``missing`` are the ranks
    that had told nothing when ``seconds`` were over.
    """

    apart: Mapping[str, Mapping[int, Any]]
    missing: tuple[int, ...]
    seconds: float


@dataclass(slots=True)
class CountsCompared(Moment):
    """Every rank told what it has counted; ``apart`` is what they do not agree on, by rank."""

    apart: Mapping[str, Mapping[int, int]]


@dataclass(slots=True)
class BalanceMeasured(Moment):
    """Every rank told how many tokens it had in each of the last optimizer steps."""

    balance: Balance


@dataclass(slots=True)
class Forward(Moment):
    """A training forward is about to run. ``size`` is its batch, None where unknown.

    ``keywords``: whether the batch was given by keyword, as Hugging Face models take it.
    """

    size: int | None
    keywords: bool


@dataclass(slots=True)
class EvaluationForward(Moment):
    """A forward in evaluation mode is about to run."""


@dataclass(slots=True)
class Backward(Moment):
    """A backward pass is about to run; it is counted already.

    ``loss`` is the tensor, None where the pass did not go through the engine. ``divided``
    says whether the engine divides this loss by the accumulation.
    """

    loss: Any
    divided: bool

    @property
    def through_engine(self) -> bool:
        """Whether it was started by ``engine.backward``."""
        return self.loss is not None


@dataclass(slots=True)
class LossWeight(Moment):
    """The gradient that reached the model's own loss.

    ``weight`` is what the loss of one micro-batch counts in the update, loss scale taken out:
    1 / accumulation where all is well.
    """

    weight: float


@dataclass(slots=True)
class StepCalled(Moment):
    """``engine.step()`` was called and has done nothing yet; without an engine, the optimizer's.

    ``unseen``: the type of an output of the model since the last step that shows no tensor a
    backward pass could start from. ``around``: steps in a row, this one included, that found
    gradients although nothing went through the model.
    """

    unseen: str = ""
    around: int = 0


@dataclass(slots=True)
class OptimizerStepped(Moment):
    """The optimizer has stepped, or has skipped the step because of an overflow."""

    window: Window


@dataclass(slots=True)
class SteppedAround(Moment):
    """An optimizer stepped outside the engine; ``what`` is the call, such as ``SGD.step()``."""

    what: str
    wrapper: bool


@dataclass(slots=True)
class GradientsZeroed(Moment):
    """Somebody cleared gradients while a window was open.

    ``what`` is the call; ``lossy`` whether gradients of the window were really lost;
    ``pending`` how many micro-batches they come from, 0 where these are still counted.
    """

    what: str
    lossy: bool
    pending: int = 0


@dataclass(slots=True)
class SchedulerMoved(Moment):
    """The learning-rate scheduler moved ``times`` steps without the engine."""

    times: int


@dataclass(slots=True)
class Resized(Moment):
    """The batch was changed while a window was open; ``what`` is the call."""

    what: str
    before: int
    after: int


@dataclass(slots=True)
class Saving(Moment):
    """A checkpoint is about to be written."""


@dataclass(slots=True)
class Loaded(Moment):
    """A checkpoint was read.

    ``pending`` micro-batches had been accumulated before; ``residue`` of a window the engine
    still counts, because it keeps its micro-step counter.
    """

    pending: int
    residue: int


@dataclass(slots=True)
class Resumed(Moment):
    """A checkpoint was read of which it is known what it was trained with.

    ``pending`` micro-batches were accumulated when it was written.
    """

    contract: Contract
    pending: int


@dataclass(slots=True)
class EpochEnded(Moment):
    """The loader has come to its end, or is started anew."""


@dataclass(slots=True)
class ParametersWatched(Moment):
    """Parameters were compared with an earlier copy.

    ``unmoved_steps``: applied optimizer steps since the last change of any of them.
    """

    unmoved_steps: int
    low_precision: bool


@dataclass(slots=True)
class Closed(Moment):
    """The run, or the guard's part of it, has come to its end."""
