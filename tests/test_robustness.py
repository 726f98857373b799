"""Whatever the config and the launch hold, the answer is an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dsguard import check_text
from dsguard.schema.keys import all_keys
from tests.conftest import ROOT

TOP = sorted({key.dotted.split(".")[0] for key in all_keys()})
INNER = sorted({part for key in all_keys() for part in key.dotted.split(".")[1:]})

numbers = st.one_of(
    st.integers(-3, 70),
    st.integers(10**15, 10**25),
    st.floats(allow_nan=False, allow_infinity=False),
    st.just(int("1" * 400)),
)
scalars = st.one_of(
    numbers, st.booleans(), st.none(), st.sampled_from(["auto", "cpu", "fp32", "8", "", "${X}"])
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from([*INNER, "x", "enabled", "type"]), inner, max_size=4),
    ),
    max_leaves=8,
)
configs = st.dictionaries(st.sampled_from(TOP), values, max_size=8)
BATCH = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
SIZES = ("sequence_parallel_size", "data_parallel_size")
batches = st.dictionaries(st.sampled_from([*BATCH, *SIZES]), numbers, min_size=1)

LAUNCHES = (
    None,
    "deepspeed --include localhost:0,1 train.py --deepspeed_config ds.json --batch_size 3",
    "torchrun --nproc_per_node 3 train.py --deepspeed ds.json --per_device_train_batch_size 2 "
    "--gradient_accumulation_steps 5 --learning_rate 1e-4 --bf16",
    "accelerate launch --use_deepspeed --num_processes 4 train.py --max_grad_norm 0.3",
)


seeded = settings(max_examples=150, suppress_health_check=list(HealthCheck))


def judge(config: dict[str, Any], launch: str | None, front_end: Any) -> None:
    report = check_text(
        json.dumps(config), launch=launch, front_end=front_end, world_size=3, folder=ROOT
    )
    crashes = [f.message for _, f in report.findings if f.rule == "internal-error"]
    assert crashes == []


@seeded
@given(
    config=configs,
    launch=st.sampled_from(LAUNCHES),
    front_end=st.sampled_from(["auto", "plain", "transformers", "accelerate", "lightning"]),
)
def test_any_config_is_judged(config: dict[str, Any], launch: str | None, front_end: str) -> None:
    judge(config, launch, front_end)


@seeded
@given(config=batches, launch=st.sampled_from(LAUNCHES))
def test_any_numbers_are_calculated_with(config: dict[str, Any], launch: str | None) -> None:
    judge(config, launch, "auto")


@pytest.mark.parametrize("release", ["0.9.0", "0.14.2", "0.17.6", "1.0.0"])
def test_any_release_is_judged_by(release: str) -> None:
    config = {"train_batch_size": 8, "zero_optimization": {"stage": 2}, "fp16": {"enabled": True}}
    assert check_text(json.dumps(config), target=release, world_size=8).complete
