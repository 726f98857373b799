"""Which loaders feed an engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.rules.script._loop import actions, innermost
from dsguard.script.loop.description import Does, Engine, Loader

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case


def training_loaders(case: Case, engine: Engine) -> Iterator[Loader]:
    """The loaders whose batches plainly go through the engine in a loop that trains."""
    trained = {innermost(action) for action in actions(case, Does.BACKWARD, engine=engine)}
    seen: set[Loader] = set()
    for action in actions(case, Does.FORWARD, engine=engine):
        loader = action.loader
        if loader is None or loader in seen or innermost(action) not in trained:
            continue
        seen.add(loader)
        yield loader
