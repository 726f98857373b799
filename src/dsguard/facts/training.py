"""Facts about precision, ZeRO, optimizer and schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from packaging.version import Version

from dsguard.facts.values import as_switch, block, has, is_number, lacks, unread, written
from dsguard.frontends.base import AUTO, THROUGH_ACCELERATE, FrontEnd, FrontEndName
from dsguard.model.fact import (
    Candidate,
    Conflict,
    Fact,
    FactName,
    Known,
    Origin,
    OriginKind,
    Unknown,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from dsguard.frontends.requests import Requests
    from dsguard.model.tree import Document

    Settle: TypeAlias = Callable[[str], Fact | None]

CLIPS_BY_DEFAULT_SINCE = Version("0.19.3")
"""From this release an absent gradient_clipping means 1.0; before, 0.0 (off)."""

_NAMES: tuple[FactName, ...] = (
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
)


def training_facts(
    document: Document | None,
    requests: Requests,
    front_end: FrontEnd | None,
    target: Version,
    settle: Settle,
    unread: str,
) -> dict[FactName, Fact]:
    """Everything of the config that is not batch arithmetic or a degree of parallelism.

    ``unread`` is the reason why there is no document.
    """
    if document is None:
        return {name: Unknown(unread) for name in _NAMES}
    deepspeed = Origin(OriginKind.DEFAULT, whose=f"DeepSpeed {target}")
    return {
        "gradient_clipping": _clipping(requests, settle, target, deepspeed),
        "precision": _precision(document, requests, front_end, deepspeed),
        "zero_stage": _zero_stage(document, front_end, deepspeed),
        "offload_optimizer": _offload(document, front_end, "offload_optimizer", deepspeed),
        "offload_param": _offload(document, front_end, "offload_param", deepspeed),
        "optimizer": _type(document, front_end, "optimizer"),
        "learning_rate": _learning_rate(document, requests, front_end, settle),
        "scheduler": _type(document, front_end, "scheduler"),
        "warmup_steps": _scheduled(document, front_end, settle, "warmup_num_steps"),
        "total_steps": _scheduled(document, front_end, settle, "total_num_steps"),
    }


def _clipping(requests: Requests, settle: Settle, target: Version, deepspeed: Origin) -> Fact:
    fact = settle("gradient_clipping")
    if fact is not None:
        return fact
    request = requests.get("gradient_clipping")
    default = 1.0 if target >= CLIPS_BY_DEFAULT_SINCE else 0.0
    lost = request is not None and request.value != default
    return Known(default, deepspeed, (request.candidate,) if request and lost else ())


def _precision(
    document: Document,
    requests: Requests,
    front_end: FrontEnd | None,
    deepspeed: Origin,
) -> Fact:
    on: list[Candidate] = []
    asked_for: list[Candidate] = []
    through_accelerate = front_end is not None and front_end.name in THROUGH_ACCELERATE
    lightning = front_end is not None and front_end.name is FrontEndName.LIGHTNING
    for name, other in (("fp16", "bf16"), ("bf16", "fp16")):
        switch = requests.switch(name)
        if switch is not None:
            asked_for.append(Candidate(name, switch.origin))
        if (through_accelerate or lightning) and lacks(document, name):
            # Accelerate's plugin puts in the block that is absent, on where it is asked for; the
            # old name bfloat16 counts no more beside it. Lightning's strategy adds the block.
            if switch is not None:
                on.append(Candidate(name, switch.origin))
            if switch is not None or through_accelerate:
                continue
        key = name
        if name == "bf16" and not has(document, "bf16") and has(document, "bfloat16"):
            key = "bfloat16"
        lost = unread(document, f"{name}.enabled", f"{key}.enabled")
        if lost is not None:
            return lost
        enabled = written(document, f"{key}.enabled")
        if enabled is None:
            continue
        if enabled.value == AUTO:
            if front_end is None or front_end.fills(f"{key}.enabled"):
                # TrainingArguments fill it from either of two switches.
                request = switch or requests.switch(f"{name}_full_eval")
                if request is not None:
                    on.append(Candidate(name, request.origin))
                elif requests.on_or_off(name) is None and requests.switch(other) is None:
                    # No trainer takes both: the other one being on settles this one.
                    return Unknown(f'{key}.enabled is "auto": a trainer fills it')
            continue
        enables = as_switch(enabled.value)
        if enables is None:
            return Unknown(f"{key}.enabled is neither true nor false")
        if enables:
            on.append(Candidate(name, enabled.origin))
    if len(on) == 2:
        return Conflict(tuple(on))
    if on:
        losers = tuple(c for c in asked_for if c.value != on[0].value)
        return Known(on[0].value, on[0].origin, losers)
    if lightning and requests.precision() is None:
        return Unknown("the Lightning Trainer's precision decides")
    for name in ("fp16", "bf16") if through_accelerate else ():
        reason = requests.undecided(name) if lacks(document, name) else None
        if reason is not None:
            return Unknown(reason)
    return Known("fp32", deepspeed, tuple(asked_for))


def _zero_stage(document: Document, front_end: FrontEnd | None, deepspeed: Origin) -> Fact:
    lost = unread(document, "zero_optimization.stage")
    if lost is not None:
        return lost
    whole = written(document, "zero_optimization")
    if whole is not None and isinstance(whole.value, bool):
        return Known(int(whole.value), whole.origin)
    stage = written(document, "zero_optimization.stage")
    if stage is None:
        return Known(0, deepspeed)
    if stage.value == AUTO:
        if front_end is None or front_end.fills("zero_optimization.stage"):
            return Unknown('zero_optimization.stage is "auto": a trainer fills it')
        return Known(0, deepspeed, (stage,))
    try:
        value = int(stage.value)
    except (TypeError, ValueError):
        return Unknown("zero_optimization.stage is not a number in the config")
    return Known(value, stage.origin)


def _offload(document: Document, front_end: FrontEnd | None, name: str, deepspeed: Origin) -> Fact:
    old = {"offload_optimizer": "cpu_offload", "offload_param": "cpu_offload_param"}[name]
    deprecated = written(document, f"zero_optimization.{old}")
    if deprecated is not None and as_switch(deprecated.value):
        return Known("cpu", deprecated.origin)
    for key in (f"zero_optimization.{name}.device", f"zero_optimization.{old}"):
        lost = unread(document, key)
        if lost is not None:
            return lost
    device = written(document, f"zero_optimization.{name}.device")
    if device is None:
        return Known("none", deepspeed)
    if device.value == AUTO:
        if front_end is None or front_end.fills(f"zero_optimization.{name}.device"):
            return Unknown(f'zero_optimization.{name}.device is "auto": a trainer fills it')
        return Known("none", deepspeed, (device,))
    return Known(device.value, device.origin)


def _is_trainer(front_end: FrontEnd | None) -> bool:
    return front_end is not None and front_end.name is FrontEndName.TRANSFORMERS


def _type(document: Document, front_end: FrontEnd | None, name: str) -> Fact:
    kind = written(document, f"{name}.type")
    lost = unread(document, f"{name}.type")
    if lost is not None:
        return lost
    if kind is None:
        owner = "HF Trainer makes its own" if _is_trainer(front_end) else "the script may pass one"
        return Unknown(f"the config names no {name}; {owner}")
    return Known(kind.value, kind.origin)


def _learning_rate(
    document: Document, requests: Requests, front_end: FrontEnd | None, settle: Settle
) -> Fact:
    request = requests.get("optimizer.params.lr")
    lost = unread(document, "optimizer.type")
    if lost is not None:
        return Unknown(lost.reason, (request.candidate,) if request else ())
    kind = written(document, "optimizer.type")
    if kind is None:
        if not _is_trainer(front_end):
            return Unknown(
                "the config names no optimizer; the script decides",
                (request.candidate,) if request else (),
            )
        if request is not None:
            return Known(request.value, request.origin)
        return Unknown("TrainingArguments (learning_rate) decides")
    fact = settle("optimizer.params.lr")
    if fact is not None:
        return fact
    losers = (request.candidate,) if request else ()
    if kind.value in ("Adam", "AdamW"):
        return Known(1e-3, Origin(OriginKind.DEFAULT, whose=kind.value), losers)
    return Unknown(f"optimizer.params.lr is absent: {kind.value}'s own default counts", losers)


def _scheduled(
    document: Document, front_end: FrontEnd | None, settle: Settle, parameter: str
) -> Fact:
    lost = unread(document, "scheduler.type")
    if lost is not None:
        return lost
    if not block(document, "scheduler") or written(document, "scheduler.type") is None:
        owner = "HF Trainer" if _is_trainer(front_end) else "the script"
        return Unknown(f"the config names no scheduler; {owner} decides")
    fact = settle(f"scheduler.params.{parameter}")
    if fact is None:
        return Unknown(f"scheduler.params.{parameter} is not in the config")
    if isinstance(fact, Known) and not is_number(fact.value):
        return Unknown(f"scheduler.params.{parameter} is not a number in the config")
    return fact
