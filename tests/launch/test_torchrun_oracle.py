"""``torchrun`` against the real one: its parser and the configuration it makes of it."""

from __future__ import annotations

import argparse
import random
from unittest import mock

import pytest

from dsguard.launch.launchers.torchrun import DEPRECATED_OPTIONS, OPTIONS
from dsguard.launch.options import OptionTable

from .conftest import Launch
from .facts import kinds, refused, value
from .random_options import disagreement, listed, random_words, run_parser, tabled
from .real_launchers import torchrun_configuration

pytestmark = pytest.mark.deepspeed


def real_parser(deprecated: bool) -> argparse.ArgumentParser:
    from torch.distributed import launch
    from torch.distributed.run import get_args_parser

    if not deprecated:
        return get_args_parser()
    seen: list[argparse.ArgumentParser] = []
    with mock.patch.object(
        argparse.ArgumentParser, "parse_args", lambda self, _: seen.append(self)
    ):
        launch.parse_args([])
    return seen[0]


@pytest.mark.parametrize(("table", "deprecated"), [(OPTIONS, False), (DEPRECATED_OPTIONS, True)])
def test_the_option_table_is_that_of_the_real_parser(table: OptionTable, deprecated: bool) -> None:
    real = listed(real_parser(deprecated))
    for name, (dest, takes_value, _, choices) in real.items():
        if "duplicate" in name:  # A comma-separated list: any text will do.
            real[name] = (dest, takes_value, "str", choices)
    assert tabled(table) == real


def test_random_options_are_parsed_alike() -> None:
    generator = random.Random(19)
    parser = real_parser(deprecated=False)
    script, rest = "training_script", "training_script_args"
    defaults = run_parser(parser.parse_args, ["t.py"], script, rest)
    assert defaults is not None
    accepted = 0
    for _ in range(1500):
        words = random_words(generator, OPTIONS)
        parsed = run_parser(parser.parse_args, words, script, rest)
        accepted += parsed is not None
        assert disagreement(words, OPTIONS, parsed, defaults) == ""
    assert accepted > 200


NNODES = ("1", "2", "2:2", "1:4", "4:1", "0", "-1", "x", "1:2:3", "1:")
NPROC = ("1", "4", "4.0", "x y", "")


def test_random_numbers_of_nodes_and_processes(launch: Launch) -> None:
    generator = random.Random(23)
    outcomes = set()
    for _ in range(400):
        variables, words = {}, []
        for name, choices in (("nnodes", NNODES), ("nproc_per_node", NPROC)):
            for given in generator.choices(choices, k=generator.randint(0, 2)):
                if generator.random() < 0.3:
                    variables[f"PET_{name.upper()}"] = given
                else:
                    words += [f"--{name}", given]
        words += [*generator.choice([[], ["--no-python"], ["-m", "--no-python"]]), "t.py"]
        config = torchrun_configuration(words, variables)
        context = launch([*(f"{k}={v}" for k, v in variables.items()), "torchrun", *words])
        told = f"{variables} {words}: {kinds(context)}"
        assert refused(context) == (config is None), told
        outcomes.add(config is None)
        if config is None:
            continue
        assert value(context.processes_per_node) == config.nproc_per_node, told
        if config.min_nodes == config.max_nodes:
            assert value(context.nodes) == config.min_nodes, told
        else:
            assert f"{config.min_nodes} to {config.max_nodes}" in str(value(context.nodes)), told
    assert outcomes == {True, False}


def test_a_process_count_of_zero_is_refused_by_the_agent() -> None:
    from torch.distributed.elastic.agent.server.api import WorkerSpec

    with pytest.raises(AssertionError):
        WorkerSpec(role="r", local_world_size=0, rdzv_handler=mock.Mock(), entrypoint="t.py")
