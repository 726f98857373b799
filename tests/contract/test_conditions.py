"""Where the conditions of a rule are not met, asking it would change nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from dsguard.checking import Settings
from dsguard.facts.case import Case
from dsguard.facts.resolve import Options
from dsguard.frontends.base import FrontEndName
from dsguard.model.report import Target, TargetOrigin
from dsguard.model.source import Source
from dsguard.pairing import Input
from dsguard.rules import all_rules
from tests.conftest import Dsguard
from tests.contract.rule_cases import TARGET, inputs_of, job_cases, rule_cases, script_cases

RELEASES = (TARGET, TARGET, "0.19.1", "0.18.2", "0.17.0", "0.14.0", "0.9.5")
FRONT_ENDS = (None, None, None, *FrontEndName)
VALUES: tuple[Any, ...] = (None, True, False, 0, 1, 3, 2.5, "auto", "nvme", "x", [], {}, [{"a": 1}])
HJSON = "{train_batch_size: 8 # for all\n zero_optimization: {stage: 3}, fp16: {enabled: True}}"
OTHERS = ("", "[]", "8", "[1, {}]", "{", HJSON, '{"zero_optimization": 1, "zero_optimization": 1}')
MIXED = 800


def test_mixtures_of_fixtures_are_judged_alike(
    dsguard: Dsguard, monkeypatch: pytest.MonkeyPatch, compared: list[Case]
) -> None:
    """Configs that are changed at random, with the launch and the script of other fixtures."""
    cases = {case.slug: case for case in (*rule_cases(), *job_cases(), *script_cases()) if case.bad}
    found = [
        one
        for case in cases.values()
        for one in inputs_of(case.line, case.config.parent, dsguard, monkeypatch)
    ]
    assert len(found) > len(all_rules()) / 2
    for one in mixtures(found, random.Random(8), MIXED):
        one.check()
    assert len(compared) == MIXED


def mixtures(inputs: list[Input], chance: random.Random, count: int) -> Iterator[Input]:
    configs = [value for one in inputs if isinstance(value := value_of(one), dict)]
    for _ in range(count):
        launched, scripted = chance.choice(inputs), chance.choice(inputs)
        config = mixed(chance.choice(configs), configs, chance)
        text = chance.choice(OTHERS) if chance.random() < 0.05 else json.dumps(config)
        path = launched.path
        name = path.name if path is not None else "ds_config.json"
        yield Input(
            Source(name, text, is_file=True) if chance.random() < 0.95 else None,
            path,
            launched.launch if chance.random() < 0.7 else None,
            Settings(
                Target(chance.choice(RELEASES), TargetOrigin.OPTION),
                Options(chance.choice((None, None, 1, 4)), chance.choice(FRONT_ENDS)),
                folder=launched.settings.folder,
            ),
            script=scripted.script if chance.random() < 0.5 else None,
        )


def value_of(one: Input) -> Any:
    try:
        return json.loads(one.config.text) if isinstance(one.config, Source) else None
    except ValueError:
        return None


def mixed(config: dict[str, Any], others: list[dict[str, Any]], chance: random.Random) -> Any:
    """A config with parts of others, and with values and keys that are lost or replaced."""
    new: dict[str, Any] = json.loads(json.dumps(config))
    for _ in range(chance.randint(0, 3)):
        merge(new, chance.choice(others))
    for _ in range(chance.randint(0, 3)):
        block = new
        while block:
            key = chance.choice(list(block))
            if isinstance(block[key], dict) and chance.random() < 0.8:
                block = block[key]
                continue
            if chance.random() < 0.3:
                del block[key]
            else:
                block[key] = chance.choice(VALUES)
            break
    return new


def merge(config: dict[str, Any], other: dict[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(config.get(key), dict):
            merge(config[key], value)
        else:
            config[key] = json.loads(json.dumps(value))
