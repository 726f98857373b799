"""The job files in ``fixtures/jobs``: what a launch with them, or the file alone, comes to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dsguard.frontends.detect import config_argument
from dsguard.frontends.requests import Requests
from dsguard.launch.context import Argument, Command, LaunchContext
from dsguard.launch.jobs.alone import read_job_file
from dsguard.launch.read import Surroundings, read_launch
from dsguard.model.fact import Fact, Known, OriginKind, Unknown
from dsguard.reading.load import load_path

from ...conftest import FIXTURES, compare

pytest.importorskip("ruamel.yaml", reason="the yaml extra is not installed")

JOBS = FIXTURES / "jobs"
CASES = sorted(folder.name for folder in JOBS.iterdir() if folder.is_dir())
KEYS = (
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "gradient_clipping",
    "optimizer.params.lr",
)


@pytest.mark.parametrize("name", CASES)
def test_a_case_comes_to_what_is_expected(name: str) -> None:
    launch = read_case(JOBS / name)
    text = json.dumps(summary(launch), indent=2, ensure_ascii=False) + "\n"
    compare(JOBS / name / "expected.json", text)


def read_case(folder: Path) -> LaunchContext:
    command = folder / "launch.txt"
    if command.is_file():
        text = command.read_text(encoding="utf-8").strip()
        return read_launch(Command.of_text(text), Surroundings(folder))
    (file,) = [path for path in folder.iterdir() if path.name != "expected.json"]
    launch = read_job_file(load_path(file, file.name), Surroundings(folder))
    assert launch is not None
    return launch


def summary(launch: LaunchContext) -> dict[str, Any]:
    """What matters of a launch, in an order to be read."""
    requests = {key: Requests(launch).get(key) for key in KEYS}
    named = config_argument(launch)
    return {
        "launcher": launch.launcher.value,
        "script": launch.script.text if launch.script is not None else None,
        "world size": told(launch.world_size),
        "jobs": [job.title for job in launch.jobs],
        "front ends": [job.front_end for job in launch.jobs],
        "config argument": told_argument(named) if named is not None else None,
        "config": [
            [job.config.form.value, told_argument(job.config.argument)] if job.config else None
            for job in launch.jobs
        ],
        "inline config": launch.inline_config.value if launch.inline_config is not None else None,
        "asked for": {
            key: f"{request.value} ({request.origin.describe()})" if request is not None else None
            for key, request in requests.items()
        },
        "arguments": {a.name: told_argument(a) for a in launch.arguments},
        "from the launcher's file": {
            a.name: told_argument(a)
            for a in launch.launcher_arguments
            if a.kind is OriginKind.JOBFILE
        },
        "unread": launch.arguments.unread,
        "troubles": [
            {
                "kind": trouble.kind,
                "refused": trouble.refused,
                "message": trouble.message,
                "at": trouble.location.source.slice(trouble.location.span),
            }
            for trouble in launch.troubles
        ],
    }


def told(fact: Fact) -> str:
    if isinstance(fact, Known):
        return f"{fact.value} ({fact.origin.describe()})"
    assert isinstance(fact, Unknown)
    return f"unknown: {fact.reason}"


def told_argument(argument: Argument) -> str:
    value = argument.value if argument.known else f"not known: {argument.value}"
    return f"{value} ({argument.origin().describe()})"


def test_every_framework_has_cases_with_and_without_a_launch() -> None:
    with_launch = {name for name in CASES if (JOBS / name / "launch.txt").is_file()}
    for framework in ("accelerate", "axolotl", "llamafactory", "swift", "trl"):
        assert any(name.startswith(framework) for name in with_launch)
        assert any(name.startswith(framework) for name in set(CASES) - with_launch)
