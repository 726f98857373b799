"""How many processes the real launchers would start, asked in this process; nothing is started.

Import this module only in tests marked ``deepspeed``.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import importlib
import io
import json
import os
import tempfile
from types import ModuleType
from typing import Any
from unittest import mock


@functools.cache
def deepspeed_runner() -> ModuleType:
    """``deepspeed.launcher.runner``, imported without looking for devices or compilers."""
    os.environ.setdefault("DS_ACCELERATOR", "cpu")
    os.environ.setdefault("DS_BUILD_OPS", "0")
    with contextlib.redirect_stdout(io.StringIO()):
        return importlib.import_module("deepspeed.launcher.runner")


class _Machine:
    """The accelerator of a machine with some devices."""

    def __init__(self, devices: int) -> None:
        self.devices = devices

    def device_count(self) -> int:
        return self.devices

    def visible_devices_envs(self) -> list[str]:
        return ["CUDA_VISIBLE_DEVICES"]

    def export_envs(self) -> list[str]:
        return []

    def device_name(self) -> str:
        return "cuda"


def deepspeed_starts(
    words: list[str], devices: int, visible: str | None = None
) -> dict[str, list[int]] | int | None:
    """What ``deepspeed`` with these words starts, from the current folder; None where it stops.

    The devices of each host, or the number of processes where a back end is only told that.
    ``visible`` is ``CUDA_VISIBLE_DEVICES``.
    """
    runner: Any = deepspeed_runner()
    started: list[list[str]] = []

    def start(command: list[str], **_: object) -> object:
        started.append(command)
        return mock.Mock(returncode=0)

    backends = [
        runner.PDSHRunner, runner.OpenMPIRunner, runner.MPICHRunner, runner.IMPIRunner,
        runner.MVAPICHRunner, runner.SlurmRunner,
    ]  # fmt: skip
    environment = {k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"}
    if visible is not None:
        environment["CUDA_VISIBLE_DEVICES"] = visible
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        folder = enter(tempfile.TemporaryDirectory())
        enter(mock.patch.dict(os.environ, environment, clear=True))
        enter(mock.patch.object(runner, "get_accelerator", return_value=_Machine(devices)))
        enter(mock.patch.object(runner.subprocess, "Popen", start))
        enter(mock.patch.object(runner.subprocess, "check_call"))
        enter(mock.patch.object(runner.subprocess, "check_output", return_value=b"10.0.0.1"))
        enter(mock.patch.object(runner.signal, "signal"))
        module = "deepspeed.launcher.multinode_runner"
        enter(mock.patch(f"{module}.MVAPICH_TMP_HOSTFILE", f"{folder}/mvapich"))
        enter(mock.patch(f"{module}.get_accelerator", return_value=_Machine(devices)))
        for backend in backends:
            enter(mock.patch.object(backend, "backend_exists", return_value=True))
        enter(contextlib.redirect_stdout(io.StringIO()))
        enter(contextlib.redirect_stderr(io.StringIO()))
        try:
            runner.main(words)
        except (Exception, SystemExit):
            return None
    (command,) = started
    return _read(command)


def _read(command: list[str]) -> dict[str, list[int]] | int:
    for word in command:
        if word.startswith("--world_info="):
            world = base64.urlsafe_b64decode(word.removeprefix("--world_info="))
            hosts: dict[str, list[int]] = json.loads(world)
            return hosts
    if ":" in command:  # Intel MPI starts its ranks one by one.
        return command.count(":") + 1
    return int(command[1 + next(i for i, w in enumerate(command) if w in ("-n", "-np"))])


def deepspeed_world_size(words: list[str], devices: int, visible: str | None = None) -> int | None:
    """How many processes ``deepspeed`` starts in all; None where it stops."""
    started = deepspeed_starts(words, devices, visible)
    if isinstance(started, dict):
        return sum(len(slots) for slots in started.values())
    return started


def torchrun_configuration(words: list[str], variables: dict[str, str]) -> Any:
    """The launch configuration that ``torchrun`` makes; None where it stops."""
    from torch.distributed.run import config_from_args, get_args_parser

    environment = {k: v for k, v in os.environ.items() if not k.startswith("PET_")}
    with (
        mock.patch.dict(os.environ, environment | variables, clear=True),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        try:
            config, _, _ = config_from_args(get_args_parser().parse_args(words))
        except (Exception, SystemExit):
            return None
    return config


def accelerate_world_size(words: list[str], devices: int) -> int | None:
    """How many processes ``accelerate launch`` starts in all; None where it stops.

    Where it hands over to ``deepspeed``, that is asked with the words it gets.
    """
    import accelerate.commands.launch as launching
    import accelerate.utils.launch as preparing
    import torch

    started: list[tuple[str, Any]] = []
    command = None
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        for name in ("simple", "multi_gpu", "deepspeed", "tpu", "tpu_pod", "sagemaker"):
            record = lambda *args, way=name: started.append((way, args[-1]))  # noqa: E731
            enter(mock.patch.object(launching, f"{name}_launcher", record))
        enter(mock.patch.object(launching, "default_config_file", "/nonexistent/config.yaml"))
        enter(mock.patch.object(launching, "is_bf16_available", return_value=True))
        enter(mock.patch.object(preparing, "is_port_in_use", return_value=False))
        enter(mock.patch.object(torch.cuda, "device_count", return_value=devices))
        enter(mock.patch.object(torch.cuda, "is_available", return_value=devices > 0))
        enter(contextlib.redirect_stdout(io.StringIO()))
        enter(contextlib.redirect_stderr(io.StringIO()))
        try:
            launching.launch_command(launching.launch_command_parser().parse_args(words))
            ((way, args),) = started
            if way == "simple":
                preparing.prepare_simple_launcher_cmd_env(args)
                return 1
            if way == "deepspeed":
                command, _ = preparing.prepare_deepspeed_cmd_env(args)
            else:
                preparing.prepare_multi_gpu_env(args)
        except (Exception, SystemExit):
            return None
    if command is not None:
        return deepspeed_world_size(command[1:], devices)
    return int(args.nproc_per_node) * int(getattr(args, "nnodes", 1)) or None
