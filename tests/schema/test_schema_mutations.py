"""dsguard and the real DeepSpeed must refuse the same configs, also the strange ones."""

from __future__ import annotations

import copy
import os
import random
from typing import Any

import pytest
from packaging.version import Version

from dsguard.model.finding import Consequence
from dsguard.schema.keys import NEWEST_KNOWN, all_keys
from dsguard.schema.validate import validate
from tests.schema.configs import BATCH, BATCH_KEYS, ODD_VALUES, WRITTEN, whole_config

pytestmark = pytest.mark.deepspeed
pytest.importorskip("deepspeed")

COUNT = int(os.environ.get("DSGUARD_MUTATIONS", "400"))
BASES = [whole_config(), *(BATCH | written for written in WRITTEN)]
NAMES = sorted({info.dotted.rpartition(".")[2] for info in all_keys()} - {"*", *BATCH_KEYS})
BLOCKS = [info for info in all_keys() if info.unknown_keys is not None]


def objects(value: Any) -> list[dict[str, Any]]:
    """Every object in a value that holds something, the outermost first."""
    found = [value] if isinstance(value, dict) and value else []
    for child in value.values() if isinstance(value, dict) else value:
        if isinstance(child, dict | list):
            found.extend(objects(child))
    return found


def drop(rng: random.Random, config: dict[str, Any]) -> None:
    holder = rng.choice(objects(config))
    holder.pop(pick(rng, holder), None)


def rename(rng: random.Random, config: dict[str, Any]) -> None:
    holder = rng.choice(objects(config))
    key = pick(rng, holder)
    new = rng.choice(
        [
            key + "s",
            key.upper(),
            key.replace("_", "-"),
            "_" + key,
            key[:-1],
            "stage3_" + key,
            key.removeprefix("stage3_"),
        ]
    )
    if key in holder:
        holder[new] = holder.pop(key)


def retype(rng: random.Random, config: dict[str, Any]) -> None:
    holder = rng.choice(objects(config))
    holder[pick(rng, holder)] = odd(rng)


def move(rng: random.Random, config: dict[str, Any]) -> None:
    everywhere = objects(config)
    holder, target = rng.choice(everywhere), rng.choice(everywhere)
    key = pick(rng, holder)
    if key in holder:
        target[key] = copy.deepcopy(holder[key])


def add(rng: random.Random, config: dict[str, Any]) -> None:
    rng.choice(objects(config))[rng.choice(NAMES)] = odd(rng)


def set_known(rng: random.Random, config: dict[str, Any]) -> None:
    """Give a key that DeepSpeed reads an odd value, making its block where needed."""
    info = rng.choice([i for i in all_keys() if "*" not in i.dotted])
    *blocks, key = info.dotted.split(".")
    holder = config
    for block in blocks:
        if not isinstance(holder.get(block), dict):
            holder[block] = {}
        holder = holder[block]
    if key not in BATCH_KEYS:
        holder[rng.choice([key, *info.spellings])] = odd(rng)


def pick(rng: random.Random, holder: dict[str, Any]) -> str:
    names = [name for name in holder if name not in BATCH_KEYS]
    return rng.choice(names or ["nothing"])


def odd(rng: random.Random) -> Any:
    return copy.deepcopy(rng.choice(ODD_VALUES))


WAYS = (drop, rename, retype, retype, move, add, set_known, set_known, set_known)


def mutated(seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    config = copy.deepcopy(rng.choice(BASES))
    if rng.random() < 0.7 and len(config) > 4:  # a small config shows one mistake alone
        for key in rng.sample(sorted(config), len(config) * 2 // 3):
            if key not in BATCH_KEYS:
                del config[key]
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        rng.choice(WAYS)(rng, config)
    return config


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
    found = [disagreement(mutated(seed)) for seed in range(start, min(start + 100, COUNT))]
    assert [text for text in found if text] == []


@pytest.mark.parametrize("key", BATCH_KEYS)
def test_one_batch_key_with_any_value(key: str) -> None:
    others = {"train_batch_size": 8, "train_micro_batch_size_per_gpu": 8}
    for value in ODD_VALUES:
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            continue  # whether it fits the other two is not judged here
        problem = disagreement(others | {key: value})
        assert problem is None or value in (None, True), problem


def test_a_target_that_is_newer_than_known_changes_nothing() -> None:
    config = mutated(5)
    assert validate(config, Version("99.0")) == validate(config, NEWEST_KNOWN)
