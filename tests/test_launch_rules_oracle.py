"""The fixtures of the rules about launchers put before the real launchers.

The real ``deepspeed``, ``torchrun`` and ``accelerate launch`` stop where dsguard says so, and start
as many processes as dsguard counts everywhere else. Nothing is started; both are told that a
machine has the same number of devices.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest
from packaging.version import Version

from dsguard.launch.accelerate_config import OLDER_KEYS
from dsguard.launch.context import Command, LaunchContext
from dsguard.launch.read import Surroundings, read_launch
from dsguard.model.fact import Known
from tests.conftest import Dsguard
from tests.contract.rule_cases import TARGET, RuleCase, rule_cases
from tests.launch.real_launchers import (
    accelerate_world_size,
    deepspeed_starts,
    deepspeed_world_size,
    torchrun_configuration,
)

pytestmark = pytest.mark.deepspeed

DEVICES = 8
RULES = (
    "launcher-usage-error",
    "hostfile-missing",
    "broken-hostfile",
    "broken-env-file",
    "refused-host-selection",
    "gpus-above-slots",
    "visible-devices-ignored",
    "broken-accelerate-config",
    "processes-dropped",
    "pdsh-without-hostfile",
    "nodes-above-hosts",
    "hostfile-as-script",
    "launcher-option-after-script",
)
VISIBLE = "CUDA_VISIBLE_DEVICES="
ENV_FILE = "DS_ENV_FILE="


def cases(*slugs: str) -> list[RuleCase]:
    return [case for case in rule_cases() if case.slug in slugs]


def launch_words(case: RuleCase) -> tuple[list[str], str | None]:
    """The words of the launch, and the value of a leading ``CUDA_VISIBLE_DEVICES=``."""
    words = shlex.split(case.args.partition("-- ")[2])
    if words[0].startswith(ENV_FILE):
        words = words[1:]
    if words[0].startswith(VISIBLE):
        return words[1:], words[0].removeprefix(VISIBLE)
    return words, None


def torchrun_world_size(words: Sequence[str]) -> int | None:
    config = torchrun_configuration(list(words), {})
    return None if config is None else config.max_nodes * config.nproc_per_node


def real_world_size(words: list[str], visible: str | None) -> int | None:
    """How many processes the launcher starts; None where it stops."""
    start: dict[str, Callable[[], int | None]] = {
        "deepspeed": lambda: deepspeed_world_size(words[1:], DEVICES, visible),
        "torchrun": lambda: torchrun_world_size(words[1:]),
        "accelerate": lambda: accelerate_world_size(words[2:], DEVICES),
    }
    return start[words[0]]()


def read(case: RuleCase) -> LaunchContext:
    command = Command.of_words(shlex.split(case.args.partition("-- ")[2]))
    return read_launch(
        command,
        Surroundings(case.config.parent, devices_per_node=DEVICES, deepspeed=Version(TARGET)),
    )


@pytest.mark.parametrize("case", cases(*RULES), ids=lambda case: case.id)
def test_the_launcher_agrees(
    case: RuleCase, dsguard: Dsguard, monkeypatch: pytest.MonkeyPatch
) -> None:
    if case.option("--target") not in (None, TARGET):
        pytest.skip("written for another release")
    if case.option("--hostfile") is not None:
        pytest.skip("the hostfile stands in for one on another machine")
    context = read(case)
    kinds = {trouble.kind for trouble in context.troubles}
    if "hostfile-elsewhere" in kinds:
        pytest.skip("the hostfile may be on another machine")
    if context.launcher_config is not None and OLDER_KEYS & set(context.launcher_config.value):
        pytest.skip("older releases of Accelerate know the key")
    line = case.line.replace("-o concise", "-o json", 1)
    report = json.loads(dsguard(line, case.config.parent).out)
    refused = [
        finding["message"]
        for finding in report["findings"]
        if finding["rule"] in RULES and finding["consequence"] == "refused"
    ]
    monkeypatch.chdir(case.config.parent)
    variable = context.variable("DS_ENV_FILE")
    if variable is not None:
        # The launcher reads the variable when it is imported.
        runner = importlib.import_module("deepspeed.launcher.runner")
        monkeypatch.setattr(runner, "DEEPSPEED_ENVIRONMENT_NAME", variable.value)
    real = real_world_size(*launch_words(case))
    if "hostfile-as-script" in kinds:
        assert refused
        assert real == DEVICES or "--num_gpus" in case.args, "the launcher itself starts it"
        return
    assert bool(refused) == (real is None), (refused, real)
    if real is not None:
        assert isinstance(context.world_size, Known), context.world_size
        assert context.world_size.value == real


@pytest.mark.parametrize("case", cases("visible-devices-ignored"), ids=lambda case: case.id)
def test_other_devices_are_used_where_the_variable_is_dropped(
    case: RuleCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, visible = launch_words(case)
    if words[0] != "deepspeed" or visible is None:
        pytest.skip("no CUDA_VISIBLE_DEVICES before deepspeed")
    monkeypatch.chdir(case.config.parent)
    started = deepspeed_starts(words[1:], DEVICES, visible)
    assert isinstance(started, dict)
    wanted = [int(device) for device in visible.split(",")]
    assert (started["localhost"] != wanted) == case.bad


@pytest.mark.parametrize(
    "case", [c for c in cases("hostfile-as-script") if c.bad], ids=lambda case: case.id
)
def test_python_stops_at_a_hostfile(case: RuleCase) -> None:
    script = read(case).script
    assert script is not None
    result = subprocess.run(
        [sys.executable, script.text, "--local_rank=0"],
        cwd=case.config.parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode != 0
    assert "SyntaxError" in result.stderr


@pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is not None, reason="with mpi4py it is a world of 1"
)
def test_without_a_launcher_deepspeed_looks_for_mpi() -> None:
    set_by_launchers = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    environment = {k: v for k, v in os.environ.items() if k not in set_by_launchers}
    environment |= {"DS_ACCELERATOR": "cpu", "DS_BUILD_OPS": "0"}
    result = subprocess.run(
        [sys.executable, "-c", "import deepspeed; deepspeed.init_distributed('gloo')"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode != 0
    assert "No module named 'mpi4py'" in result.stderr
