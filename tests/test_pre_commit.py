"""The hook picks up the names that people give their DeepSpeed configs, and no others."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT

HOOKS = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
PATTERN = re.search(r"^  files: (.*)$", HOOKS, re.MULTILINE)


def picked_up(name: str) -> bool:
    """Whether pre-commit would pass a file to the hook: it searches, from the top of the repo."""
    assert PATTERN is not None
    return re.search(PATTERN[1], name) is not None


@pytest.mark.parametrize(
    "name",
    [
        "ds.json",
        "ds_config.json",
        "ds-config.json",
        "dsconfig.json",
        "DS_CONFIG.JSON",
        "ds_config_zero3.json",
        "configs/ds_z3_offload_config.json",
        "configs/deepspeed/zero2.json",
        "deepspeed.json",
        "deepspeed_config.hjson",
        "deepspeedConfig.json",
        "llama_deepspeed.json",
        "llama-7b.ds.json",
        "zero3_bf16.json",
        "zero_1.json",
        "bf16_zero-2_offload.json",
        "stage3.json",
        "recipes/stage_2_fp16.json",
    ],
)
def test_names_of_configs(name: str) -> None:
    assert picked_up(name)


@pytest.mark.parametrize(
    "name",
    [
        "package.json",
        "tsconfig.json",
        "config.json",
        "ads.json",
        "dstore.json",
        "models/records.json",
        "ds_config.py",
        "ds_config.json.bak",
        "deepspeed/README.md",
        "deepspeed/package.json",
        "ds/index.json",
        "zero.json",
        "zero10.json",
        "subzero3.json",
        "backstage3.json",
    ],
)
def test_names_of_other_files(name: str) -> None:
    assert not picked_up(name)
