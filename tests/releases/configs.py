"""The configs that every release is asked about: real ones, the rules' fixtures, and mistakes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from packaging.version import Version

from dsguard.reading import load_path, parse
from dsguard.reading.errors import HjsonSyntaxError
from tests.contract.rule_cases import rule_cases
from tests.releases.asking import Question
from tests.schema.configs import BATCH, OLD, WRITTEN, whole_config
from tests.schema.mutations import mutated, other_batch

WORLD_SIZES = (1, 2, 4)


def corpus() -> list[Path]:
    """The public configs that ``DSGUARD_CORPUS`` names, none where it names no folder."""
    folder = os.environ.get("DSGUARD_CORPUS")
    return sorted(Path(folder, "configs").glob("*.json")) if folder else []


def questions(release: Version, mutations: int) -> Iterator[Question]:
    """Every config as it is, and seeded mistakes in all of them."""
    files = [*corpus(), *(case.config for case in rule_cases())]
    for path in files:
        for world_size in WORLD_SIZES:
            yield Question(path.name, load_path(path).text, world_size)
    bases = [whole_config(release), *(BATCH | config for config in (*WRITTEN, *OLD))]
    bases.extend(config for path in files if (config := _value(path)))
    for seed in range(mutations):
        config = mutated(seed, bases)
        if seed % 4 == 0:
            config = other_batch(seed, config)
        if _can_be_computed(config):
            text = json.dumps(config)
            yield Question(f"seed {seed}", text, WORLD_SIZES[seed % len(WORLD_SIZES)])


def _value(path: Path) -> dict[str, Any] | None:
    try:
        value = parse(load_path(path)).value
    except HjsonSyntaxError:
        return None
    return value if isinstance(value, dict) else None


def _can_be_computed(config: dict[str, Any]) -> bool:
    """Releases before 0.17.1 compute 2 to the power of what the config says, however large."""
    fp16 = config.get("fp16")
    power = fp16.get("initial_scale_power") if isinstance(fp16, dict) else None
    return not isinstance(power, int) or power < 1000
