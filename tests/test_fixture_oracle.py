"""The rule fixtures put before the real DeepSpeed: it refuses what dsguard says it refuses.

Judged are the fixtures that a plain script reads, at the number of processes that dsguard
resolved; where a fixture leaves that open, both sides are told 1.
"""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Dsguard
from tests.contract.rule_cases import TARGET, RuleCase, rule_cases

BATCH = ("train_batch_size", "micro_batch_size", "gradient_accumulation_steps")


def installed() -> str | None:
    try:
        return version("deepspeed").partition("+")[0]
    except PackageNotFoundError:
        return None


pytestmark = [
    pytest.mark.deepspeed,
    pytest.mark.skipif(
        installed() != TARGET, reason=f"the fixtures are judged by DeepSpeed {TARGET}"
    ),
]


@pytest.mark.parametrize("case", rule_cases(), ids=lambda case: case.id)
def test_deepspeed_agrees(case: RuleCase, dsguard: Dsguard) -> None:
    if case.option("--target") not in (None, TARGET):
        pytest.skip("written for another release")
    report = judged(case, dsguard)
    check = report["checks"][0] if report["checks"] else {"config": None}
    if check["config"] is None:
        pytest.skip("no config is read")
    if known(check, "front_end") != "plain":
        pytest.skip("a trainer reads the config, not DeepSpeed alone")
    if known(check, "world_size") is None:
        report = judged(case, dsguard, "--world-size 1")
        (check,) = report["checks"]
    if known(check, "data_parallel_size") is None:
        pytest.skip("the script splits the ranks, which DeepSpeedConfig alone does not see")
    if any(finding["rule"] == "not-a-deepspeed-config" for finding in report["findings"]):
        pytest.skip("it is no DeepSpeed config, so nothing else is said about it")
    world_size = known(check, "world_size")

    refused = [
        finding["message"]
        for finding in report["findings"]
        if finding["consequence"] == "refused" and finding["file"] == case.config.name
    ]
    theirs = deepspeed_refuses(case.config, world_size)
    assert bool(refused) == (theirs is not None), (refused, theirs)
    if theirs is None and not mesh_fails(case, report):
        from tests.oracle import resolved

        numbers = dict(zip(BATCH, resolved(read(case.config), world_size), strict=True))
        ours = {name: known(check, name) for name in BATCH}
        assert ours == {name: numbers[name] for name in BATCH if ours[name] is not None}


def mesh_fails(case: RuleCase, report: dict[str, Any]) -> bool:
    """Whether deepspeed.initialize stops over its device mesh before the batch numbers count."""
    rules = {finding["rule"] for finding in report["findings"]}
    return "sequence-parallel-not-dividing-world" in rules and "data_parallel_size" in (
        read(case.config)
    )


def judged(case: RuleCase, dsguard: Dsguard, options: str = "") -> dict[str, Any]:
    command = case.line.replace("-o concise", f"-o json {options}", 1)
    report: dict[str, Any] = json.loads(dsguard(command, case.config.parent).out)
    return report


def known(check: dict[str, Any], fact: str) -> Any:
    found = check["facts"][fact]
    return found["value"] if found["state"] == "known" else None


def read(path: Path) -> Any:
    """The file as ``deepspeed.initialize`` reads it; raises what it raises."""
    from deepspeed import load_ds_config

    return load_ds_config(str(path))


def deepspeed_refuses(path: Path, world_size: int) -> str | None:
    from tests.oracle import refuses

    try:
        config = read(path)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return refuses(config, world_size)
