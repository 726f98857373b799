"""A config value that TrainingArguments contradicts; see training_argument_mismatch.md."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from dsguard.facts.values import block, is_number, unread, written
from dsguard.frontends.base import AUTO, FrontEndName
from dsguard.frontends.requests import Request
from dsguard.frontends.transformers import COMPARED
from dsguard.model.fact import Candidate, Known, Origin
from dsguard.model.finding import Because, Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import ReadBy
from dsguard.rules.frontend._trainer import (
    PRECISIONS,
    handed_on,
    launcher_option,
    own_switch,
    read_by,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.model.source import Location
    from dsguard.model.tree import Document

_SWITCHES = {"fp16.enabled": "fp16", "bf16.enabled": "bf16"}
_TOTAL = "train_batch_size"
_BETAS = "optimizer.params.betas"
_WARM_UP = "scheduler.params.warmup_num_steps"
_STEPS = "scheduler.params.total_num_steps"
_LAUNCHER_FILLS = ("gradient_accumulation_steps", "gradient_clipping")
"""Keys that ``accelerate launch`` has an option of the same name for."""

WARM_UP_IS_POSITIVE_SINCE = Version("0.19.6")
"""From this release DeepSpeed refuses a warm-up of 0, and transformers asks for 1 instead."""


@rule(
    code="DSG701",
    slug="training-argument-mismatch",
    summary="the config and TrainingArguments give different values",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="Trainer.train raises ValueError: Please correct the following DeepSpeed config values",
    when=(ReadBy(FrontEndName.TRANSFORMERS),),
)
def training_argument_mismatch(case: Case, report: Reporter) -> Iterator[Finding]:
    """Compare what the Trainer compares: only keys that the config has, and exactly."""
    document = read_by(case, FrontEndName.TRANSFORMERS)
    if document is None:
        return
    for key, argument in COMPARED.items():
        value = written(document, key)
        if value is None or value.value == AUTO or value.origin.location is None:
            continue
        if unread(document, key) is not None:
            continue
        request = _request(case, key, value)
        # Python's own == as in the Trainer: 1 is 1.0, and a string never equals a number.
        if request is None or value.value == request.value:
            continue
        yield report(
            value.origin.location,
            f"{key} is {_shown(value.value)}, but TrainingArguments say {_shown(request.value)} "
            f"({request.flag}); the Trainer compares them and stops in train(), after the model is "
            "built",
            Consequence.REFUSED,
            because=(Because(argument if key != _TOTAL else key, request.value, request.origin),),
            help=f'write "auto" for {key} and give the value once, as an argument',
            confidence=_confidence(request),
        )
    if handed_on(case):
        yield from _filled_by_launcher(case, document, report)


def _filled_by_launcher(case: Case, document: Document, report: Reporter) -> Iterator[Finding]:
    """``accelerate launch`` fills ``"auto"`` from its own options, and then they are compared."""
    for key in _LAUNCHER_FILLS:
        value, option = written(document, key), launcher_option(case, key)
        request = case.requests.get(key)
        if value is None or value.value != AUTO or option is None or request is None:
            continue
        given = _number(option.value)
        if given is None or given == request.value:
            continue
        yield _launcher_finding(
            report, document.locate(f"/{key}"), key, _shown(given), option.origin(), request
        )
    option = launcher_option(case, "mixed_precision")
    if option is None or option.value not in PRECISIONS:
        return
    key = f"{option.value}.enabled"
    value = written(document, key)
    request = _switch(case, option.value) or Request(
        False, option.value, f"no --{option.value}", option.origin(), Confidence.MEDIUM, False
    )
    if unread(document, key) is not None:
        return
    if request.value or (block(document, option.value) and (value is None or value.value != AUTO)):
        return
    yield _launcher_finding(
        report,
        document.locate(f"/{option.value}/enabled"),
        key,
        "true",
        option.origin(),
        request,
    )


def _launcher_finding(
    report: Reporter, at: Location, key: str, filled: str, origin: Origin, request: Request
) -> Finding:
    return report(
        at,
        f"accelerate launch fills {key} with {filled}, but TrainingArguments say "
        f"{_shown(request.value)} ({request.flag}); the Trainer compares them and stops in "
        "train(), after the model is built",
        Consequence.REFUSED,
        because=(
            Because(key, filled, origin),
            *((Because(request.name, request.value, request.origin),) if request.explicit else ()),
        ),
        help="give the value once: to the script, not to accelerate launch",
        confidence=_confidence(request),
    )


def _confidence(request: Request) -> Confidence:
    return request.confidence if request.explicit else Confidence.MEDIUM


def _request(case: Case, key: str, value: Candidate) -> Request | None:
    """What the Trainer compares with this key, None where the launch does not say."""
    if key in _SWITCHES:
        return _switch(case, _SWITCHES[key])
    if key == _TOTAL:
        return _total(case)
    if key == _BETAS:
        return _betas(case, value.value)
    request = case.requests.get(key)
    if request is not None and key == _WARM_UP:
        return _warm_up(case, request, value.value)
    if request is not None and key == _STEPS and request.value <= 0:
        # The Trainer then computes the steps from the length of its dataset.
        return None
    return request


def _switch(case: Case, name: str) -> Request | None:
    """``--bf16`` or ``--bf16_full_eval``: either turns the format on."""
    train, evaluate = (own_switch(case, argument) for argument in (name, f"{name}_full_eval"))
    on = (request for request in (train, evaluate) if request is not None and request.value)
    return next(on, train)


def _total(case: Case) -> Request | None:
    """What the Trainer computes: every rank counts, whatever the degrees of parallelism.

    Where DeepSpeed's own equation does not hold either, the rules about that have said it.
    """
    if case.batch.failure is not None:
        return None
    micro = case.requests.get("train_micro_batch_size_per_gpu")
    steps = case.requests.get("gradient_accumulation_steps")
    world = case.facts["world_size"]
    if micro is None or steps is None or not isinstance(world, Known):
        return None
    formula = f"{world.value} x {micro.value} x {steps.value}"
    origin = micro.origin
    return Request(
        world.value * micro.value * steps.value,
        _TOTAL,
        formula,
        origin,
        min(micro.confidence, steps.confidence, key=lambda confidence: confidence.rank),
        micro.explicit and steps.explicit,
    )


def _betas(case: Case, value: Any) -> Request | None:
    """The pair of ``--adam_beta1`` and ``--adam_beta2``; what is not given is taken as it stands.

    Where both are written for this run or one of them differs, the lists differ too.
    """
    if not isinstance(value, list) or len(value) != 2:
        return None
    asked = [case.requests.text(f"adam_beta{place}") for place in (1, 2)]
    given = [request for request in asked if request is not None]
    numbers = [
        _number(request.value) if request is not None else stands
        for request, stands in zip(asked, value, strict=True)
    ]
    if not given or None in numbers:
        return None
    flags = ", ".join(request.flag for request in given)
    first = given[0]
    return Request(numbers, "betas", flags, first.origin, first.confidence, first.explicit)


def _warm_up(case: Case, request: Request, value: Any) -> Request | None:
    """``--warmup_steps`` as the Trainer hands it on: at least 1, and 0 leaves it to a ratio."""
    if request.value > 0:
        return request
    if case.requests.text("warmup_ratio") is not None:
        return None
    if value not in (0, 1):
        return request
    if value == 0 and Version(case.target.version) >= WARM_UP_IS_POSITIVE_SINCE:
        return Request(
            1,
            request.name,
            f"{request.flag} {request.value} counts as 1",
            request.origin,
            request.confidence,
            request.explicit,
        )
    return None


def _number(text: Any) -> float | None:
    try:
        return float(text)
    except (TypeError, ValueError):
        return None


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e6:
        return str(int(value))
    return str(value) if is_number(value) else json.dumps(value)
