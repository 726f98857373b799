"""``deepspeed`` against the real launcher: its parser, its hostfile reader, its whole ``main``."""

from __future__ import annotations

import base64
import random
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from dsguard.launch.context import Command
from dsguard.launch.hostfile import HostfileError, parse_hostfile
from dsguard.launch.launchers.deepspeed import OPTIONS
from dsguard.launch.read import Surroundings, read_launch
from dsguard.model.fact import Known
from dsguard.model.source import Source

from .facts import kinds, refused
from .random_options import disagreement, listed, random_words, run_parser, tabled
from .real_launchers import deepspeed_runner, deepspeed_world_size

pytestmark = pytest.mark.deepspeed

HOSTFILES = {
    "even": "h0 slots=4\nh1 slots=4\n",
    "uneven": "h0 slots=4\nh1 slots=2\nh2 slots=4\n",
    "one": "h0 slots=3\n",
    "zero": "h0 slots=0\n",
    "broken": "h0 slots 4\n",
    "twice": "h0 slots=4\nh0 slots=4\n",
    "nothing": "# no host\n",
}
FILTERS = (
    "h0", "h1", "h0:0,1", "h0@h1:1", "h1:3", "h2", "localhost", "localhost:0", "localhost:0,1",
    "localhost:7", "h0:0-1", "h0:", "", "h0:0:1", "h0@h1@h2",
)  # fmt: skip


@pytest.fixture(scope="module")
def runner() -> Any:
    return deepspeed_runner()


def test_the_option_table_is_that_of_the_real_parser(runner: Any) -> None:
    seen: list[Any] = []

    def stop(parser: Any, args: object = None) -> object:
        seen.append(parser)
        raise SystemExit

    with mock.patch("argparse.ArgumentParser.parse_args", stop), pytest.raises(SystemExit):
        runner.parse_args([])
    assert tabled(OPTIONS) == listed(seen[0])


def test_random_options_are_parsed_alike(runner: Any) -> None:
    generator = random.Random(11)
    defaults = run_parser(runner.parse_args, ["t.py"], "user_script", "user_args")
    assert defaults is not None
    accepted = 0
    for _ in range(600):
        words = random_words(generator, OPTIONS)
        if any("elastic" in word for word in words):
            continue
        parsed = run_parser(runner.parse_args, words, "user_script", "user_args")
        accepted += parsed is not None
        assert disagreement(words, OPTIONS, parsed, defaults) == ""
    assert accepted > 100


LINES = (
    "h0 slots=4", "h1 slots=2", "h0 slots=1", " h2\tslots=8 extra", "# c", "", "h3", "h4 slots = 2",
    "h5 slots=", "h6 slots=x", "#h7 slots=1", "h8:4", "slots=4", "h9 slots=4#c", "h10  max=2",
)  # fmt: skip


def test_random_hostfiles_are_read_alike(runner: Any) -> None:
    generator = random.Random(13)
    outcomes = set()
    for _ in range(400):
        text = "\n".join(generator.choices(LINES, k=generator.randint(0, 4)))
        try:
            expected = dict(runner._parse_hostfile(text.splitlines(keepends=True)))
        except ValueError:
            expected = None
        try:
            actual = parse_hostfile(Source("hosts", text)).slots
        except HostfileError:
            actual = None
        assert actual == expected, text
        outcomes.add(actual is None)
    assert outcomes == {True, False}


def _resource_words(generator: random.Random) -> list[str]:
    options = [
        lambda: ["--hostfile", generator.choice([*HOSTFILES, "even", "uneven", "missing"])],
        lambda: ["--hostfile", generator.choice(["even", "uneven", "one"])],
        lambda: ["--num_gpus", generator.choice(["-1", "0", "1", "2", "4", "8"])],
        lambda: ["--num_nodes", generator.choice(["-1", "0", "1", "2", "3"])],
        lambda: ["--include", generator.choice(FILTERS)],
        lambda: ["--exclude", generator.choice(FILTERS)],
        lambda: [
            "--launcher",
            generator.choice(["pdsh", "PDSH", "openmpi", "mpich", "impi", "mvapich", "slurm", "x"]),
        ],
        lambda: ["--no_ssh"],
        lambda: ["--no_ssh", "--node_rank", generator.choice(["0", "1", "2"])],
        lambda: ["--force_multi"],
    ]
    chosen = generator.sample(options, k=generator.randint(0, 3))
    return [word for option in chosen for word in option()]


def test_random_resources_start_as_many_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in HOSTFILES.items():
        (tmp_path / name).write_text(text)
    generator = random.Random(17)
    outcomes = {"refused": 0, "started": 0}
    for _ in range(700):
        words = [*_resource_words(generator), "t.py"]
        devices = generator.choice([1, 2, 4, 8])
        visible = generator.choice([None, None, None, "0", "0,1", "3,2", "0,0", "GPU-1", "-1"])
        expected = deepspeed_world_size(words, devices, visible)
        prefix = [] if visible is None else [f"CUDA_VISIBLE_DEVICES={visible}"]
        command = Command.of_words([*prefix, "deepspeed", *words])
        context = read_launch(command, Surroundings(tmp_path, devices_per_node=devices))
        told = f"{prefix} {words} with {devices} devices: {kinds(context)} {context.world_size}"
        # A launch of no process at all is started, and then fails in every launcher.
        if not expected:
            assert refused(context), told
            outcomes["refused"] += 1
        else:
            assert isinstance(context.world_size, Known), f"{told}, not {expected}"
            assert context.world_size.value == expected, f"{told}, not {expected}"
            outcomes["started"] += 1
    assert min(outcomes.values()) > 150


def test_module_and_no_python_are_refused_by_the_ranks(tmp_path: Path) -> None:
    """The launcher passes both on; the process that starts the ranks raises."""
    world = base64.urlsafe_b64encode(b'{"localhost": [0]}').decode()
    result = subprocess.run(
        [sys.executable, "-m", "deepspeed.launcher.launch", f"--world_info={world}", "--no_python",
         "--module", "--no_local_rank", "t"],
        capture_output=True, text=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert "Don't use both" in result.stderr
