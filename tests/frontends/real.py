"""The real front ends, run up to the moment in which they would build DeepSpeed's engine.

``Trainer.train()`` and ``Accelerator.prepare()`` run as they are, in this process and without a
process group: the world size is answered, and ``deepspeed.initialize`` hands back what it was
called with. The config that arrives there is then read by the real ``DeepSpeedConfig``.
Import this module only in tests marked ``deepspeed``.
"""

from __future__ import annotations

import inspect
import logging
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

# isort: off
from tests.oracle import ranks  # It chooses the CPU, so it comes before deepspeed.

# isort: on
import accelerate.utils
import deepspeed
import deepspeed.comm
import torch
import torch.distributed.device_mesh
import transformers.training_args
from accelerate import Accelerator
from accelerate.commands import launch as accelerate_launch
from accelerate.state import AcceleratorState
from accelerate.utils.launch import (
    prepare_deepspeed_cmd_env,
    prepare_multi_gpu_env,
    prepare_simple_launcher_cmd_env,
)
from deepspeed.runtime.config import DeepSpeedConfig
from transformers import HfArgumentParser, Trainer, TrainingArguments

SAMPLES = 64
LOADER_BATCH = 2
"""What the loader of Accelerate's own loop yields."""


class Run(NamedTuple):
    """What a front end came to.

    ``refused`` is ``TypeName: message`` of what stopped it, None where an engine would be built;
    ``config`` is DeepSpeed's own reading of what arrived. ``accumulation`` is the count that the
    loop steps by, ``micro`` the batch its loader yields.
    """

    refused: str | None
    config: Any = None
    micro: int | None = None
    accumulation: int | None = None
    learning_rate: Any = None

    @property
    def precision(self) -> str:
        if self.config.bfloat16_config.enabled:
            return "bf16"
        return "fp16" if self.config.float16_config.enabled else "fp32"


class Model(torch.nn.Module):
    """One layer, with the ``hidden_size`` that bucket sizes are made from."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        self.config = type("Config", (), {"hidden_size": 4})()

    def forward(self, x: Any, labels: Any = None) -> Any:
        return {"loss": self.layer(x).mean()}


class Data(torch.utils.data.Dataset):
    """Equal samples."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"x": torch.ones(2), "labels": 0}


class _EngineReachedError(Exception):
    """``deepspeed.initialize`` was called: the front end has done its part."""


def trainer(config: Path, words: list[str], world_size: int) -> Run:
    """HF Trainer with ``--deepspeed config``."""
    return _trainer(["--deepspeed", str(config), *words], {}, config.parent, world_size)


def trainer_under_accelerate(
    launch: list[str], words: list[str], folder: Path, world_size: int
) -> Run:
    """HF Trainer whose DeepSpeed config comes from ``accelerate launch``."""
    return _trainer(words, launch_environment(launch, folder), folder, world_size)


def _trainer(words: list[str], environment: dict[str, str], folder: Path, world_size: int) -> Run:
    arguments: Any = None

    def train() -> None:
        nonlocal arguments
        parser = HfArgumentParser(TrainingArguments)
        fixed = ["--output_dir", str(folder / "out"), "--report_to", "none"]
        (arguments,) = parser.parse_args_into_dataclasses([*fixed, *words])
        Trainer(model=Model(), args=arguments, train_dataset=Data()).train()

    captured = _until_engine(train, environment, folder, world_size)
    if isinstance(captured, str):
        return Run(captured)
    return _read(
        captured,
        world_size,
        micro=arguments.per_device_train_batch_size,
        accumulation=arguments.gradient_accumulation_steps,
    )


def own_loop(
    launch: list[str],
    folder: Path,
    world_size: int,
    *,
    accumulation: int | None = None,
    optimizer: str = "AdamW",
) -> Run:
    """``Accelerator()`` and ``prepare(model, optimizer, loader)`` under ``accelerate launch``.

    ``optimizer`` is ``AdamW``, or ``Dummy`` where the config builds it; both ask for 3e-4.
    """
    made: Any = None

    def prepare() -> None:
        nonlocal made
        steps = {} if accumulation is None else {"gradient_accumulation_steps": accumulation}
        made = Accelerator(**steps)
        model = Model()
        if optimizer == "Dummy":
            asked: Any = accelerate.utils.DummyOptim(model.parameters(), lr=3e-4)
        else:
            asked = torch.optim.AdamW(model.parameters(), lr=3e-4)
        loader = torch.utils.data.DataLoader(Data(), batch_size=LOADER_BATCH)
        made.prepare(model, asked, loader)

    captured = _until_engine(prepare, launch_environment(launch, folder), folder, world_size)
    if isinstance(captured, str):
        return Run(captured)
    return _read(
        captured, world_size, micro=LOADER_BATCH, accumulation=made.gradient_accumulation_steps
    )


def launch_environment(launch: list[str], folder: Path) -> dict[str, str]:
    """The variables that ``accelerate launch`` gives to the script, from its own code."""
    given: dict[str, str] = {}
    starts = {
        "deepspeed_launcher": lambda arguments: prepare_deepspeed_cmd_env(arguments)[1],
        "simple_launcher": lambda arguments: prepare_simple_launcher_cmd_env(arguments)[1],
        "multi_gpu_launcher": prepare_multi_gpu_env,
    }
    with _in(folder), mock.patch.dict(os.environ), ExitStack() as stack:
        for name, environment in starts.items():
            stack.enter_context(
                mock.patch.object(
                    accelerate_launch,
                    name,
                    lambda arguments, make=environment: given.update(make(arguments)),
                )
            )
        # A default config of the machine would be read too.
        missing = str(folder / "no_default_config.yaml")
        stack.enter_context(mock.patch.object(accelerate_launch, "default_config_file", missing))
        parser = accelerate_launch.launch_command_parser()
        accelerate_launch.launch_command(parser.parse_args([*launch, "train.py"]))
    return {name: value for name, value in given.items() if name.startswith("ACCELERATE_")}


def _until_engine(
    run: Callable[[], None], environment: dict[str, str], folder: Path, world_size: int
) -> dict[str, Any] | str:
    """The arguments of ``deepspeed.initialize``, or what was raised before."""
    captured: dict[str, Any] = {}

    def initialize(**arguments: Any) -> None:
        captured.update(arguments)
        raise _EngineReachedError

    with _front_end_without_ranks(environment, world_size, initialize), _in(folder):
        try:
            run()
        except _EngineReachedError:
            return captured
        except SystemExit:
            return "SystemExit: the command line is refused"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        raise AssertionError("it ended without building an engine")


@contextmanager
def _front_end_without_ranks(
    environment: dict[str, str], world_size: int, initialize: Callable[..., None]
) -> Iterator[None]:
    count = property(lambda self: world_size)
    before = logging.root.manager.disable
    variables = {
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29500",
        **environment,
    }
    patches = [
        mock.patch.dict(os.environ, variables),
        mock.patch.object(deepspeed.comm, "init_distributed"),
        mock.patch.object(deepspeed, "initialize", initialize),
        mock.patch.object(deepspeed, "tp_model_init", lambda model, **_: model),
        mock.patch.object(torch.distributed.device_mesh, "init_device_mesh"),
        mock.patch.object(TrainingArguments, "world_size", count),
        mock.patch.object(Accelerator, "num_processes", count),
        # bf16 is asked of a GPU; what follows from the flag does not depend on it.
        mock.patch.object(
            transformers.training_args, "is_torch_bf16_gpu_available", return_value=True
        ),
    ]
    logging.disable(logging.CRITICAL)
    AcceleratorState._reset_state(True)
    try:
        with ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            for patch in patches:
                stack.enter_context(patch)
            yield
    finally:
        AcceleratorState._reset_state(True)
        logging.disable(before)


def _read(captured: dict[str, Any], world_size: int, **loop: Any) -> Run:
    """DeepSpeed's reading of the config that arrived, and what the loop itself does."""
    with ranks(world_size):
        try:
            config = DeepSpeedConfig(captured["config_params"])
        except Exception as error:
            return Run(f"{type(error).__name__}: {error}")
    return Run(None, config, learning_rate=_learning_rate(captured, config), **loop)


def _learning_rate(captured: dict[str, Any], config: Any) -> Any:
    """The rate of the optimizer that was handed over, or of the AdamW that the block describes."""
    optimizer = captured.get("optimizer")
    if optimizer is not None:
        return optimizer.defaults["lr"]
    parameters = dict(config.optimizer_params or {})
    default = inspect.signature(torch.optim.AdamW).parameters["lr"].default
    return parameters.get("lr", default)


@contextmanager
def _in(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
