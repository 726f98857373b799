"""Templates: values that are filled in before DeepSpeed reads the config."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dsguard.model.finding import Consequence
from dsguard.model.placeholder import is_placeholder
from dsguard.schema.history import NEWEST_KNOWN
from dsguard.schema.keys import all_keys
from dsguard.schema.optimizers import DEEPSPEED_OPTIMIZERS, torch_optimizers
from dsguard.schema.problem import Problem, ProblemKind
from dsguard.schema.schedulers import DEEPSPEED_SCHEDULERS
from dsguard.schema.validate import validate


def judged(config: dict[str, Any]) -> list[Problem]:
    return validate(config, NEWEST_KNOWN)


@pytest.mark.parametrize(
    "text",
    [
        "CONFIG_BATCH_SIZE",
        "CONFIG_BATCH_SIZE,",
        "MBSIZE,",
        "CL_1st_MIN,",
        "${BATCH}",
        "${batch:-8},",
        "$BATCH",
        "{{ batch }}",
        "{{batch}},",
        "{% if x %}8{% endif %}",
        "<fill me>",
        "__BATCH__",
        "%BATCH%",
        "@BATCH@",
    ],
)
def test_a_placeholder_is_recognised(text: str) -> None:
    assert is_placeholder(text)
    (problem,) = judged({"train_batch_size": text})
    # DeepSpeed would stop over the text itself.
    assert (problem.kind, problem.consequence) == (ProblemKind.PLACEHOLDER, Consequence.REFUSED)
    assert problem.pointer == "/train_batch_size"


@pytest.mark.parametrize(
    "value",
    [
        None,
        8,
        "",
        "auto",
        "CPU",
        "CPU,",
        "cpu,",
        "FP16,",
        "O2",
        "ADAMW",
        "WARN",
        "<",
        "$",
        "{}",
        "${HOME}/logs",
        "/local_nvme",
        "$HOME/out",
        "transformers.models.mixtral.modeling_mixtral.MixtralSparseMoeBlock",
        "__init__",
        "8 per GPU",
    ],
)
def test_a_value_is_no_placeholder(value: object) -> None:
    assert not is_placeholder(value)


def test_nothing_that_deepspeed_knows_looks_like_a_placeholder() -> None:
    words: set[Any] = {*torch_optimizers(), *DEEPSPEED_OPTIMIZERS, *DEEPSPEED_SCHEDULERS}
    for info in all_keys(None):
        words |= {*info.spellings, *re.findall(r'"([^"]*)"', info.type)}
        if isinstance(info.default, str):
            words.add(info.default)
    assert len(words) > 500
    assert [word for word in words if is_placeholder(word)] == []


def test_a_template_has_one_note_and_no_other_problem() -> None:
    config = {
        "train_micro_batch_size_per_gpu": "MBSIZE,",
        "optimizer": {"type": "Adam", "params": {"lr": "${LR}", "betas": ["BETA_1", 0.9]}},
        "fp16": {"enabled": "{{ fp16 }}", "loss_scale": "<scale>"},
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": "ZERO_STAGE", "compute_grad_norm": False},
        "compression_training": "@COMPRESSION@",
    }
    (note,) = validate(config, NEWEST_KNOWN)[:1]
    assert note.kind is ProblemKind.PLACEHOLDER
    assert note.message == (
        'train_micro_batch_size_per_gpu is "MBSIZE,", a placeholder, so this file is a template; '
        "this and 5 more are not judged"
    )
    rest = [p for p in judged(config) if p is not note and p.kind is not ProblemKind.PLACEHOLDER]
    assert [p.pointer for p in rest] == ["/compression_training"]


def test_other_problems_of_a_template_are_found() -> None:
    config = {
        "train_batch_size": "${BATCH}",
        "zero_optimization": {"stage": "${STAGE}", "overlap_com": True},
    }
    assert [p.pointer for p in judged(config)] == [
        "/train_batch_size",
        "/zero_optimization/overlap_com",
    ]


def test_text_in_capitals_is_text_where_text_is_taken() -> None:
    assert judged({"wandb": {"enabled": True, "project": "OUR_RUNS"}}) == []
    (problem,) = judged({"wandb": {"enabled": True, "project": "{{ project }}"}})
    assert problem.message.endswith("the value it stands for is not judged")
