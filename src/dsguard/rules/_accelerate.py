"""Questions about what ``accelerator.backward`` does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.frontends.base import FrontEndName
from dsguard.script.declaration import Constant
from dsguard.script.loop.description import Does, Maker

if TYPE_CHECKING:
    from dsguard.facts.case import Case


def steps_the_engine(case: Case) -> bool:
    """Whether this release of Accelerate decides by itself when the engine steps."""
    front_end = case.front_end
    if front_end is None or front_end.name is not FrontEndName.ACCELERATE:
        return False
    # Imported where Accelerate reads the config: the rules of the batch are asked of every one.
    from dsguard.frontends.accelerate import Accelerate

    return isinstance(front_end, Accelerate) and front_end.steps_the_engine


def follows_the_loader(case: Case) -> bool:
    """Whether the end of a loader ends a window, as it does unless a plugin says otherwise."""
    calls = case.script.setups if case.script is not None else ()
    given = [
        call.keywords.get("sync_with_dataloader", Constant(True))
        for call in calls
        if call.framework == "GradientAccumulationPlugin"
    ]
    return all(value == Constant(True) for value in given)


def says_when(case: Case) -> bool:
    """Whether the script tells Accelerate which micro-batches end a window."""
    script = case.script
    if script is None or {"sync_gradients", "gradient_state"} & script.reassigned.keys():
        return True
    return any(action.does is Does.ACCUMULATE for action in script.loop.actions)


def counts_by_hand(case: Case) -> bool:
    """Whether backwards of Accelerate are counted by the script, where each of them is a step."""
    if not steps_the_engine(case) or case.script is None or says_when(case):
        return False
    return any(
        action.does is Does.BACKWARD and action.engine.maker is Maker.ACCELERATE
        for action in case.script.loop.actions
    )
