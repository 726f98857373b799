"""What the script makes itself and hands to ``deepspeed.initialize``: there no block counts.

Source: ``_configure_optimizer`` and ``_configure_lr_scheduler`` in deepspeed/runtime/engine.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.frontends.base import FrontEnd, FrontEndName
from dsguard.model.fact import Candidate, Conflict, Fact, FactName, Known, Unknown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dsguard.script.script import Script

_DECIDES: dict[str, tuple[FactName, ...]] = {
    "optimizer": ("optimizer", "learning_rate"),
    "lr_scheduler": ("scheduler", "warmup_steps", "total_steps"),
}


def client_facts(
    script: Script | None, front_end: FrontEnd | None, facts: Mapping[FactName, Fact]
) -> dict[FactName, Fact]:
    """The facts that an optimizer or a scheduler of the script takes from the config."""
    engines = script.loop.engines if script is not None else ()
    plain = front_end is not None and front_end.name is FrontEndName.PLAIN
    if not plain or len(engines) != 1:
        return {}
    from dsguard.script.loop.description import Maker

    (engine,) = engines
    if engine.maker is not Maker.DEEPSPEED:
        return {}
    taken: dict[FactName, Fact] = {}
    for argument, names in _DECIDES.items():
        if argument not in engine.passed:
            continue
        what = engine.made_by.get(argument, f"its own {argument}")
        for name in names:
            fact = facts[name]
            losers = fact.candidates if isinstance(fact, Conflict) else fact.ignored
            if isinstance(fact, Known):
                losers = (Candidate(fact.value, fact.origin), *losers)
            taken[name] = Unknown(f"the script passes {what} to deepspeed.initialize", losers)
    return taken
