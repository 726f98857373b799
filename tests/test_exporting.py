"""The exported JSON Schema says what dsguard says, to a validator that knows nothing of it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from packaging.version import Version

from dsguard.exporting import json_schema
from dsguard.reading import HjsonSyntaxError, load_path, parse
from dsguard.schema.problem import ProblemKind
from dsguard.schema.validate import validate
from tests.conftest import FIXTURES, Dsguard

NEWEST = Version("0.19.8")
TOLD = {
    ProblemKind.UNKNOWN_KEY,
    ProblemKind.MISPLACED_KEY,
    ProblemKind.MISTYPED_VALUE,
    ProblemKind.REMOVED_KEY,
    ProblemKind.OUT_OF_RANGE_VALUE,
    ProblemKind.UNFILLED_AUTO,
    ProblemKind.PLACEHOLDER,
}
"""The kinds of problems that a schema of keys, types and ranges can show."""

APART = {
    # DeepSpeed converts these texts; an editor should still underline them.
    "text-that-is-converted",
    # A fraction where the scheduler wants whole steps: not refused when the config is read.
    "share-instead-of-steps",
}

BY_TEST = {"/communication_data_type", "/seq_parallel_communication_data_type", "/fp16/loss_scale"}
"""Keys whose range depends on a test of DeepSpeed's, not on a bound or a list."""


def configs() -> list[Path]:
    found = sorted((FIXTURES / "rules").glob("*/*/*.json"))
    corpus = os.environ.get("DSGUARD_CORPUS")
    return found + sorted((Path(corpus) / "configs").glob("*.json") if corpus else [])


@pytest.mark.parametrize("release", ["0.9.0", "0.12.6", "0.15.4", "0.17.6", "0.19.8", "0.20.0"])
def test_it_is_a_valid_schema(release: str) -> None:
    Draft7Validator.check_schema(json_schema(Version(release)))


def test_a_validator_finds_what_dsguard_finds() -> None:
    validator = Draft7Validator(json_schema(NEWEST))
    disagreements = []
    for path in configs():
        value = read(path)
        if value is None or path.stem in APART:
            continue
        problems = [p for p in validate(value, NEWEST) if p.kind in TOLD]
        errors = [e.message[:100] for e in validator.iter_errors(value)]
        unsure = (ProblemKind.UNFILLED_AUTO, ProblemKind.PLACEHOLDER)
        sure = [p for p in problems if p.kind not in unsure and p.pointer not in BY_TEST]
        if (sure and not errors) or (errors and not problems):
            disagreements.append((path.name, [p.message for p in problems], errors))
    assert disagreements == []


def test_releases_differ() -> None:
    config = {"train_micro_batch_size_per_gpu": 1, "amp": {"enabled": True}}
    assert list(Draft7Validator(json_schema(NEWEST)).iter_errors(config))
    assert not list(Draft7Validator(json_schema(Version("0.19.7"))).iter_errors(config))


def test_the_command_writes_it(dsguard: Dsguard) -> None:
    outcome = dsguard("schema --target 0.19.8")
    assert outcome.code == 0
    assert json.loads(outcome.out) == json_schema(NEWEST)


def read(path: Path) -> dict[str, Any] | None:
    try:
        value = parse(load_path(path)).value
    except HjsonSyntaxError:
        return None
    return value if isinstance(value, dict) else None
