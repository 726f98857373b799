"""A config value that TrainingArguments contradicts; see training_argument_mismatch.md."""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.facts.case import Case
from dsguard.facts.values import is_number, written
from dsguard.frontends.base import AUTO, FrontEndName
from dsguard.frontends.requests import Request
from dsguard.frontends.transformers import COMPARED
from dsguard.model.fact import Candidate, Known
from dsguard.model.finding import Because, Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.frontend._trainer import read_by

_SWITCHES = {"fp16.enabled": "fp16", "bf16.enabled": "bf16"}
_TOTAL = "train_batch_size"


@rule(
    code="DSG701",
    slug="training-argument-mismatch",
    summary="the config and TrainingArguments give different values",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="Trainer.train raises ValueError: Please correct the following DeepSpeed config values",
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
        request = _request(case, key)
        if request is None or _same(value.value, request.value):
            continue
        yield report(
            value.origin.location,
            f"{key} is {_shown(value)}, but TrainingArguments say {request.value} "
            f"({request.flag}); the Trainer compares them and stops in train(), after the model is "
            "built",
            Consequence.REFUSED,
            because=(Because(argument if key != _TOTAL else key, request.value, request.origin),),
            help=f'write "auto" for {key} and give the value once, as an argument',
            confidence=request.confidence if request.explicit else Confidence.MEDIUM,
        )


def _request(case: Case, key: str) -> Request | None:
    if key in _SWITCHES:
        return case.requests.on_or_off(_SWITCHES[key])
    if key == _TOTAL:
        return _total(case)
    return case.requests.get(key)


def _total(case: Case) -> Request | None:
    """What the Trainer computes: every rank counts, whatever the degrees of parallelism."""
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


def _same(written_value: object, asked: object) -> bool:
    """Python's own ``==``, as the Trainer compares: a string never equals a number."""
    return written_value == asked


def _shown(value: Candidate) -> str:
    if isinstance(value.value, bool):
        return str(value.value).lower()
    return str(value.value) if is_number(value.value) else repr(value.value)
