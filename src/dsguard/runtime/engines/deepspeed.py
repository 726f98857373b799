"""Putting a guard on a DeepSpeed engine."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from dsguard.runtime.engines.deepspeed_gauges import DeepSpeedGauges
from dsguard.runtime.engines.deepspeed_hooks import DeepSpeedHooks
from dsguard.runtime.engines.deepspeed_view import DeepSpeedView
from dsguard.runtime.engines.script import length_of
from dsguard.runtime.fingerprint import Fingerprint
from dsguard.runtime.session import Guard, start

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dsguard.runtime.engines.tap import Tap
    from dsguard.runtime.plan import Plan

_METHODS = ("_take_model_step", "gradient_accumulation_steps", "zero_optimization_stage")


def recognises(engine: Any) -> bool:
    """Whether it trains as DeepSpeed's engine does (an inference engine does not)."""
    return all(hasattr(type(engine), name) for name in _METHODS)


def attach(engine: Any, plan: Plan) -> Guard:
    """Hook a guard onto the engine and ask the rules of the moment of attaching."""
    view = DeepSpeedView(engine)
    gauges = DeepSpeedGauges(view)
    expected = plan.expectation(view.data_parallel_size())

    def hooks(tap: Tap) -> None:
        if not view.judgeable:
            return
        tap.fingerprint = Fingerprint(engine.module.parameters(), _values, tap.later)
        DeepSpeedHooks(engine, view, tap)

    return start(
        engine,
        view,
        expected,
        plan,
        hooks=hooks,
        learning_rate=gauges.learning_rate,
        gauges=gauges,
        data_parallel_size=view.data_parallel_size(),
        told=lambda: _told(view, gauges, plan.dataloader),
    )


def _values(parameter: Any) -> Any:
    """The tensor that holds this rank's share of a parameter: ``ds_tensor`` under ZeRO-3."""
    return getattr(parameter, "ds_tensor", parameter)


def _told(view: DeepSpeedView, gauges: DeepSpeedGauges, dataloader: Any) -> Mapping[str, Any]:
    """What this rank is about to do, for the others to compare."""
    told: dict[str, Any] = {name: known.value for name, known in view.facts().items()}
    told["learning_rate"] = gauges.learning_rate()
    length = length_of(dataloader)
    told["dataloader_length"] = view.loader_length() if length is None else length
    for key, block in view.config_blocks().items():
        text = json.dumps(block, sort_keys=True, default=str)
        told[f"config: {key}"] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return told
