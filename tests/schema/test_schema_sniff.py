from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dsguard.schema.config import Config
from dsguard.schema.shape import fields_of
from dsguard.schema.sniff import BLOCKS, SCALARS, looks_like_deepspeed, may_be_deepspeed
from tests.schema.configs import BATCH, WRITTEN, whole_config


@pytest.mark.parametrize(
    "config",
    [
        BATCH,
        {"zero_optimization": {"stage": 2}},
        {"zero_optimization": True},
        {"fp16": {"enabled": True}, "train_batch_size": 8},
        {"// about": "ours", "_old": {}, "_older": {}, "train_batch_size": 8, "bf16": None},
        {"amp": {}, "train_batch_size": 8, "log": 3},
        whole_config(),
        *WRITTEN,
    ],
)
def test_a_deepspeed_config(config: dict[str, Any]) -> None:
    assert looks_like_deepspeed(config)


@pytest.mark.parametrize(
    "other",
    [
        {},
        [],
        None,
        "zero_optimization",
        {"name": "x", "version": "1.0.0", "scripts": {}, "dependencies": {}},
        {"compilerOptions": {"strict": True}, "include": ["src"]},
        {"architectures": ["X"], "hidden_size": 8, "torch_dtype": "float16", "vocab_size": 9},
        {"epoch": 1.0, "global_step": 5, "log_history": [], "max_steps": 5, "train_batch_size": 8},
        {"optimizer": "adam", "scheduler": "cosine", "fp16": True, "gradient_clipping": 1.0},
        {"train_batch_size": 8},
        {"compile": {"target": "x"}},
        {
            "pipe-parallel-size": 1,
            "model-parallel-size": 1,
            "num-layers": 2,
            "hidden-size": 8,
            "seq-length": 16,
            "zero_optimization": {"stage": 1},
            "train_micro_batch_size_per_gpu": 4,
            "fp16": {"enabled": True},
            "steps_per_print": 10,
        },
    ],
)
def test_another_file(other: Any) -> None:
    assert not looks_like_deepspeed(other)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, True),
        ({"train_batch_size": 8}, True),
        ({"train_batchsize": 8}, True),
        ({"colour": 8}, False),
        ({"train_batch_size": 8, "epoch": 1, "log_history": []}, False),
    ],
)
def test_what_a_person_may_call_a_deepspeed_config(config: dict[str, Any], expected: bool) -> None:
    assert may_be_deepspeed(config) is expected


def test_all_top_level_keys_are_known() -> None:
    assert set(fields_of(Config)) == BLOCKS | SCALARS
    blocks = {name for name, facts in fields_of(Config).items() if facts.shape.block is not None}
    assert blocks | {"eigenvalue"} == BLOCKS


def test_no_model_is_loaded() -> None:
    code = "import sys, dsguard.schema.sniff; print('pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_real_files() -> None:
    hjson = pytest.importorskip("hjson")
    folder = os.environ.get("DSGUARD_CORPUS")
    if not folder:
        pytest.skip("DSGUARD_CORPUS does not name a folder of configs")
    for path in Path(folder, "configs").iterdir():
        assert looks_like_deepspeed(hjson.loads(path.read_text("utf-8"))), path.name
    for path in Path(folder, "not_deepspeed").iterdir():
        assert not looks_like_deepspeed(json.loads(path.read_text("utf-8"))), path.name
