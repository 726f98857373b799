"""dsguard and the real DeepSpeed must refuse the same configs, also the strange ones."""

from __future__ import annotations

import os
from typing import Any

import pytest

from dsguard.model.finding import Consequence
from dsguard.schema.history import NEWEST_KNOWN
from dsguard.schema.validate import validate
from tests.schema.configs import BATCH, BATCH_KEYS, ODD_VALUES, WRITTEN, whole_config
from tests.schema.mutations import mutated

pytestmark = pytest.mark.deepspeed
pytest.importorskip("deepspeed")

COUNT = int(os.environ.get("DSGUARD_MUTATIONS", "400"))
BASES = [whole_config(), *(BATCH | written for written in WRITTEN)]


def disagreement(config: dict[str, Any]) -> str | None:
    from tests.oracle import refuses

    theirs = refuses(config)
    if theirs is not None and "GDS currently only supported" in theirs:
        return None  # depends on the device, not on the config
    ours = [p for p in validate(config, NEWEST_KNOWN) if p.consequence is Consequence.REFUSED]
    if (theirs is None) == (not ours):
        return None
    return f"DeepSpeed: {theirs}\ndsguard: {[p.message for p in ours]}\nconfig: {config}"


def test_the_base_configs_are_accepted() -> None:
    from tests.oracle import refuses

    assert [refuses(base) for base in BASES] == [None] * len(BASES)


@pytest.mark.parametrize("start", range(0, COUNT, 100))
def test_mutations_are_judged_as_deepspeed_judges_them(start: int) -> None:
    found = [disagreement(mutated(seed, BASES)) for seed in range(start, min(start + 100, COUNT))]
    assert [text for text in found if text] == []


@pytest.mark.parametrize("key", BATCH_KEYS)
def test_one_batch_key_with_any_value(key: str) -> None:
    others = {"train_batch_size": 8, "train_micro_batch_size_per_gpu": 8}
    for value in ODD_VALUES:
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            continue  # whether it fits the other two is not judged here
        problem = disagreement(others | {key: value})
        assert problem is None or value in (None, True), problem
