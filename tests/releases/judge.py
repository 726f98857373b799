"""Answers what one release of DeepSpeed says to configs; a process of its own for each release.

    python judge.py FOLDER VERSION < questions > answers

``FOLDER`` holds the package ``deepspeed``: an unpacked sdist. A question is one line of JSON,
``{"text": ..., "world_size": ...}`` with the text of a config file. An answer is one line too:
``{"refused": "TypeName: message" or null, "numbers": [train, micro, accumulation] or null}``.

Old releases were written for older packages than those installed. What they miss is put in their
place here; nothing of DeepSpeed itself is changed but the world size and rank it is told.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import io
import json
import logging
import os
import sys
import tempfile
import types
import warnings
from pathlib import Path
from typing import Any

os.environ.update(DS_ACCELERATOR="cpu", DS_BUILD_OPS="0", CUDA_VISIBLE_DEVICES="")


def main(folder: str, version: str) -> None:
    answers, sys.stdout, sys.stderr = sys.stdout, io.StringIO(), io.StringIO()
    release = tuple(int(part) for part in version.split("."))
    # The folder of this script holds modules that must not hide any of theirs.
    sys.path[0] = str(Path(folder).resolve())
    os.chdir(tempfile.mkdtemp())
    warnings.simplefilter("ignore")
    fill_gaps(release)
    judge = Judge()
    for line in sys.stdin:
        question = json.loads(line)
        answer = judge.answer(question["text"], question["world_size"])
        print(json.dumps(answer), file=answers, flush=True)


def fill_gaps(release: tuple[int, ...]) -> None:
    """What releases expect of other packages that newer versions of those do not have."""
    if release < (0, 12):  # written for pydantic 1
        importlib.import_module("pydantic.v1")
        for name in [n for n in sys.modules if n.startswith("pydantic.v1")]:
            sys.modules["pydantic" + name.removeprefix("pydantic.v1")] = sys.modules[name]
    if release < (0, 14, 2):  # the accelerator cpu asked for Intel's packages
        for name in ("intel_extension_for_pytorch", "oneccl_bindings_for_pytorch"):
            module = types.ModuleType(name)
            module.__spec__ = importlib.machinery.ModuleSpec(name, None)
            vars(module).update(__version__="0.0", _C=types.SimpleNamespace(_has_xpu=lambda: False))
            sys.modules.setdefault(name, module)
    if release < (0, 14, 5):
        import numpy
        import torch.distributed.elastic.agent.server.api as elastic

        for module, name, value in (
            (numpy, "BUFSIZE", 8192),
            (elastic, "_get_socket_with_port", lambda: None),
            (elastic, "log", logging.getLogger("elastic")),
        ):
            if not hasattr(module, name):
                setattr(module, name, value)


class Judge:
    """DeepSpeedConfig of the release, with a world of any size and no process group."""

    def __init__(self) -> None:
        import deepspeed.comm as comm
        from deepspeed.runtime.config import DeepSpeedConfig
        from deepspeed.runtime.config_utils import dict_raise_error_on_duplicate_keys

        logging.disable(logging.CRITICAL)
        self._config, self._pairs = DeepSpeedConfig, dict_raise_error_on_duplicate_keys
        self._world_size = 1
        comm.get_rank = lambda group=None: 0
        comm.get_world_size = lambda group=None: self._world_size if group is None else group

    def answer(self, text: str, world_size: int) -> dict[str, Any]:
        import hjson

        self._world_size = world_size
        try:
            config = hjson.loads(text, object_pairs_hook=self._pairs)
            if not isinstance(config, dict):
                raise TypeError("the config is no object")
            made = self._read(config)
        except Exception as error:
            return {"refused": f"{type(error).__name__}: {error}", "numbers": None}
        numbers = (
            made.train_batch_size,
            made.train_micro_batch_size_per_gpu,
            made.gradient_accumulation_steps,
        )
        return {"refused": None, "numbers": numbers}

    def _read(self, config: dict[str, Any]) -> Any:
        if "mesh_device" not in self._config.__init__.__code__.co_varnames:
            return self._config(config)
        # deepspeed.initialize makes a mesh where both sizes are given.
        sizes = [config.get(f"{kind}_parallel_size") for kind in ("data", "sequence")]
        if all(isinstance(size, int) and size > 0 for size in sizes):
            mesh = types.SimpleNamespace(get_group=lambda mesh_dim: sizes[0])
            return self._config(config, mesh_device=mesh)
        return self._config(config)


if __name__ == "__main__":
    main(*sys.argv[1:])
