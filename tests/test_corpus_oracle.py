"""Real public configs: dsguard refuses exactly what the real DeepSpeed refuses.

The configs are not part of the project; ``DSGUARD_CORPUS`` names a folder that holds them under
``configs/`` and files that only look like one under ``not_deepspeed/``.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dsguard.checking import Settings, check_source
from dsguard.facts.resolve import Options
from dsguard.facts.target import resolve_target
from dsguard.frontends.base import FrontEndName
from dsguard.model.finding import Consequence
from dsguard.model.report import Check
from dsguard.reading import load_path, parse
from dsguard.schema.sniff import looks_like_deepspeed

CORPUS = os.environ.get("DSGUARD_CORPUS")

pytestmark = pytest.mark.skipif(
    not CORPUS, reason="DSGUARD_CORPUS names no folder of public configs"
)

DEVICE_DEPENDENT = ("GDS currently only supported for CUDA accelerator",)
"""What DeepSpeed refuses on this machine's CPU and accepts where it trains; dsguard is silent."""


def configs(kind: str) -> list[Path]:
    found = sorted((Path(CORPUS or ".") / kind).glob("*.json")) if CORPUS else []
    assert found or not CORPUS
    return found


def checked(path: Path, world_size: int) -> Check:
    options = Options(world_size, FrontEndName.PLAIN)
    return check_source(load_path(path), None, Settings(resolve_target("0.19.8"), options))


@pytest.mark.deepspeed
@pytest.mark.parametrize("world_size", [1, 2, 4, 8])
def test_refused_exactly_when_deepspeed_refuses(world_size: int) -> None:
    from tests.oracle import refuses, resolved

    disagreements = []
    for path in configs("configs"):
        check = checked(path, world_size)
        ours = [f.message for f in check.findings if f.consequence is Consequence.REFUSED]
        config = parse(load_path(path)).value
        theirs = refuses(config, world_size)
        if theirs is not None and any(words in theirs for words in DEVICE_DEPENDENT):
            continue
        if bool(ours) != (theirs is not None):
            disagreements.append((path.name, ours, theirs))
        elif theirs is None:
            numbers = tuple(
                check.facts.value(name)
                for name in ("train_batch_size", "micro_batch_size", "gradient_accumulation_steps")
            )
            if numbers != tuple(resolved(config, world_size)):
                disagreements.append((path.name, numbers, resolved(config, world_size)))
    assert disagreements == []


def test_every_config_is_recognised_and_nothing_else() -> None:
    for kind, expected in (("configs", True), ("not_deepspeed", False)):
        for path in configs(kind):
            assert looks_like_deepspeed(parse(load_path(path)).value) is expected, path.name


def test_no_rule_crashes_on_any_file() -> None:
    for path in configs("configs") + configs("not_deepspeed"):
        for front_end in (None, *FrontEndName):
            settings = Settings(resolve_target("0.19.8"), Options(4, front_end))
            check = check_source(load_path(path), None, settings)
            assert not [f for f in check.findings if f.rule == "internal-error"], path.name
