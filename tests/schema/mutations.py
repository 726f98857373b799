"""Seeded mistakes in configs: dropped, renamed, retyped, moved and added keys, and odd values."""

from __future__ import annotations

import copy
import random
from collections.abc import Sequence
from typing import Any

from dsguard.schema.keys import all_keys
from tests.schema.configs import BATCH_KEYS, ODD_VALUES

KNOWN = [info for info in all_keys(None) if "*" not in info.dotted]
NAMES = sorted({info.dotted.rpartition(".")[2] for info in KNOWN} - set(BATCH_KEYS))


def mutated(seed: int, bases: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One of the configs with one to three mistakes; the batch keys are left alone."""
    rng = random.Random(seed)
    config = copy.deepcopy(rng.choice(bases))
    if rng.random() < 0.7 and len(config) > 4:  # a small config shows one mistake alone
        for key in rng.sample(sorted(config), len(config) * 2 // 3):
            if key not in BATCH_KEYS:
                del config[key]
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        rng.choice(WAYS)(rng, config)
    return config


def other_batch(seed: int, config: dict[str, Any]) -> dict[str, Any]:
    """The config with other batch numbers, which mostly do not fit each other."""
    rng = random.Random(seed)
    numbers = {key: rng.choice([0, 1, 1, 2, 3, 4, 8, 12, 16, 24, 2.0, 1.5]) for key in BATCH_KEYS}
    chosen = rng.sample(BATCH_KEYS, rng.choice([0, 1, 1, 2, 2, 3]))
    rest = {key: value for key, value in config.items() if key not in BATCH_KEYS}
    return {key: numbers[key] for key in chosen} | rest


def drop(rng: random.Random, config: dict[str, Any]) -> None:
    holder = rng.choice(_objects(config))
    holder.pop(_pick(rng, holder), None)


def rename(rng: random.Random, config: dict[str, Any]) -> None:
    holder = rng.choice(_objects(config))
    key = _pick(rng, holder)
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
    holder = rng.choice(_objects(config))
    holder[_pick(rng, holder)] = _odd(rng)


def move(rng: random.Random, config: dict[str, Any]) -> None:
    everywhere = _objects(config)
    holder, target = rng.choice(everywhere), rng.choice(everywhere)
    key = _pick(rng, holder)
    if key in holder:
        target[key] = copy.deepcopy(holder[key])


def add(rng: random.Random, config: dict[str, Any]) -> None:
    rng.choice(_objects(config))[rng.choice(NAMES)] = _odd(rng)


def set_known(rng: random.Random, config: dict[str, Any]) -> None:
    """Give a key that some release reads an odd value, making its block where needed."""
    info = rng.choice(KNOWN)
    *blocks, key = info.dotted.split(".")
    holder = config
    for block in blocks:
        if not isinstance(holder.get(block), dict):
            holder[block] = {}
        holder = holder[block]
    if key not in BATCH_KEYS:
        holder[rng.choice([key, *info.spellings])] = _odd(rng)


WAYS = (drop, rename, retype, retype, move, add, set_known, set_known, set_known)


def _objects(value: Any) -> list[dict[str, Any]]:
    """Every object in a value that holds something, the outermost first."""
    found = [value] if isinstance(value, dict) and value else []
    for child in value.values() if isinstance(value, dict) else value:
        if isinstance(child, dict | list):
            found.extend(_objects(child))
    return found or [value] if isinstance(value, dict) else found


def _pick(rng: random.Random, holder: dict[str, Any]) -> str:
    names = [name for name in holder if name not in BATCH_KEYS]
    return rng.choice(names or ["nothing"])


def _odd(rng: random.Random) -> Any:
    return copy.deepcopy(rng.choice(ODD_VALUES))
