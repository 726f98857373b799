"""What dsguard says of a run, in the terms in which the real front ends are asked."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dsguard.facts.script_config import document_of
from dsguard.frontends.requests import Requests
from dsguard.model.source import Source
from dsguard.script.read import read_script
from tests.conftest import Dsguard
from tests.contract.rule_cases import TARGET

CONFIG = "ds_config.json"


def _installed(package: str) -> str:
    try:
        return version(package).partition("+")[0]
    except PackageNotFoundError:
        return ""


REAL = [
    pytest.mark.deepspeed,
    pytest.mark.skipif(
        _installed("deepspeed") != TARGET or not _installed("transformers").startswith("5."),
        reason=f"the front ends are asked with DeepSpeed {TARGET} and transformers 5",
    ),
]
"""The marks of tests that ask the real front ends."""


class Judged(NamedTuple):
    """dsguard's answer: what it says is refused, and the facts it knows."""

    refused: list[str]
    rules: set[str]
    known: dict[str, Any]


def agree_with_built(script: str, config: dict[str, Any]) -> None:
    """Hold the config that a call in a script builds to the real one, where the script says it."""
    (built,) = read_script(Source("train.py", script)).loop.configs
    assert built.literal is not None
    ours = document_of(built.literal, Requests(None)).root.value
    assert isinstance(ours, dict)
    _agree(ours, config)


def _agree(ours: dict[str, Any], real: dict[str, Any]) -> None:
    for key, value in ours.items():
        if isinstance(value, dict):
            _agree(value, real[key])
        elif not str(value).startswith("${"):
            assert real.get(key) == value, key


def judge(dsguard: Dsguard, folder: Path, launch: str, options: str = "") -> Judged:
    """Check ``ds_config.json`` in a folder with a launch."""
    command = f"check {CONFIG} -o json --target {TARGET} {options} -- {launch}"
    outcome = dsguard(command, folder)
    report = json.loads(outcome.out)
    (check,) = report["checks"]
    findings = report["findings"]
    return Judged(
        [f"{f['rule']}: {f['message']}" for f in findings if f["consequence"] == "refused"],
        {f["rule"] for f in findings},
        {n: f["value"] for n, f in check["facts"].items() if f["state"] == "known"},
    )
