"""Configs that a script makes or changes by what is only known when it runs.

Nothing is said of what may be otherwise in a run, and what the script makes in one run goes
through the real ``DeepSpeedConfig``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.conftest import Dsguard

HEAD = """\
import argparse
import json

import deepspeed
from elsewhere import Strategy, block, complete, complete_config, complete_each

parser = argparse.ArgumentParser()
parser.add_argument("--stage", type=int, default=0)
parser.add_argument("--bf16", action="store_true")
parser.add_argument("--offload", action="store_true")
args = parser.parse_args()
"""
TAIL = "\nengine, *_ = deepspeed.initialize(model=model, config=cfg)\n"
TYPED = (
    'cfg = {"train_micro_batch_size_per_gpu": 2, "bf16": {"enabled": True},'
    ' "data_types": {"grad_accum_dtype": "fp32"}}\n'
)
PLAIN = (
    'cfg = {"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 4,'
    ' "zero_optimization": {"stage": 2}, "bf16": {"enabled": True}}\n'
)
LOADED = 'cfg = json.load(open("ds.json"))\n'
FILE = '{"bf16": {"enabled": true}, "data_types": {"grad_accum_dtype": "fp32"}}'
MADE = {
    "a block under a condition": TYPED
    + 'if args.stage:\n    cfg["zero_optimization"] = {"stage": args.stage}',
    "a block that a function makes": TYPED + 'cfg["zero_optimization"] = block()',
    "a dict that a function completes": TYPED + "complete(cfg)",
    "a dict that a method completes": TYPED + "Strategy().prepare(cfg)",
    "a dict that an object completes": TYPED + "Strategy()(cfg)",
    "a dict in a dict that a function completes": TYPED
    + 'complete_each({"train": cfg, "eval": {}})',
    "a dict behind * that a function completes": TYPED + "complete(*[cfg])",
    "a dict that is changed through its type": TYPED
    + 'dict.update(cfg, zero_optimization={"stage": 2})',
    "dicts that a loop changes": TYPED
    + 'for one in (cfg, {}):\n    one["zero_optimization"] = {"stage": 2}',
    "dicts that a loop completes": TYPED + "for one in [cfg]:\n    complete(one)",
    "parts of dicts that a loop changes": PLAIN
    + 'cfg["zero_optimization"]["offload_param"] = {"device": "cpu"}\n'
    + 'for one in (cfg, {"zero_optimization": {}}):\n'
    + '    one["zero_optimization"]["stage"] = 3',
    "arguments with a dict that a function completes": TYPED
    + "args.config = cfg\ncomplete_config(args)",
    "a dict that is changed as one of the arguments": TYPED
    + 'args.config = cfg\nargs.config["zero_optimization"] = {"stage": 2}',
    "a part that is changed as one of the arguments": TYPED
    + 'cfg["zero_optimization"] = {"stage": 0}\nargs.config = cfg\n'
    + 'args.config["zero_optimization"]["stage"] = 2',
    "a dict that is completed as one of the arguments": TYPED
    + 'args.config = cfg\nargs.config.update(zero_optimization={"stage": 2})',
    "a part that a function completes": PLAIN + 'complete(cfg["zero_optimization"])',
    "update under a condition": PLAIN
    + 'if not args.bf16:\n    cfg.update({"elasticity": {"enabled": False}}, amp={})',
    "update of a block under a condition": PLAIN
    + "if args.stage == 3:\n"
    + '    cfg["zero_optimization"].update({"stage": 3, "offload_param": {"device": "cpu"}})',
    "a removed key under a condition": PLAIN
    + 'if not args.bf16:\n    cfg["elasticity"] = {"enabled": False}',
    "few keys, most of them under a condition": "cfg = {}\n"
    + 'if args.bf16:\n    cfg["bf16"] = {"enabled": True}\n'
    + 'cfg["train_micro_batch_size_per_gpu"] = 1\ncfg["optimizer"] = block()',
    "a file that a function completes": LOADED + "complete(cfg)",
    "what a function makes of a file": LOADED + "cfg = complete(cfg)",
    "update by name": LOADED + "cfg.update(train_micro_batch_size_per_gpu=2)\ncomplete(cfg)",
    "update by a known dict behind **": TYPED
    + 'more = {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2}}\n'
    + "cfg.update(wall_clock_breakdown=False, **more)",
    "update by a written dict behind **": TYPED
    + 'cfg.update(**{"zero_optimization": {"stage": 2}})',
    "a new dict with a known one behind **": TYPED
    + 'more = {"zero_optimization": {"stage": 2}}\n'
    + 'cfg = dict(train_micro_batch_size_per_gpu=2, bf16={"enabled": True},'
    + ' data_types={"grad_accum_dtype": "fp32"}, **more)',
    "a key of a dict behind ** under a condition": TYPED
    + 'more = {}\nif args.stage:\n    more["zero_optimization"] = {"stage": args.stage}\n'
    + "cfg.update(**more)",
    "update by an operator": LOADED
    + 'cfg |= {"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2}}',
    "defaults": LOADED
    + 'cfg.setdefault("train_micro_batch_size_per_gpu", 2)\n'
    + 'cfg.setdefault("zero_optimization", {"stage": 2})',
    "keys of a loop": LOADED
    + 'for key in ("train_micro_batch_size_per_gpu",):\n    cfg[key] = 2\n'
    + 'cfg["zero_optimization"] = {"stage": 2}',
}
RUNS = {
    "a block under a condition": ["--stage", "3"],
    "a key of a dict behind ** under a condition": ["--stage", "3"],
    "update of a block under a condition": ["--stage", "3"],
    "update under a condition": ["--bf16"],
    "a removed key under a condition": ["--bf16"],
}


def complete(config: dict[str, Any]) -> dict[str, Any]:
    config.update(train_micro_batch_size_per_gpu=2)
    config.setdefault("zero_optimization", {"stage": 2})
    return config


def prepare(self: object, config: dict[str, Any]) -> None:
    complete(config)


@pytest.mark.parametrize("name", MADE)
def test_what_a_run_may_do_otherwise_is_not_judged(
    name: str, dsguard: Dsguard, tmp_path: Path
) -> None:
    (tmp_path / "ds.json").write_text(FILE)
    (tmp_path / "train.py").write_text(HEAD + MADE[name] + TAIL)
    for launch in ("", f"-- torchrun --nproc_per_node 2 train.py {' '.join(RUNS.get(name, []))}"):
        outcome = dsguard(f"check -o concise train.py {launch}", tmp_path)
        assert (outcome.code, outcome.out) == (0, "")


@pytest.mark.deepspeed
@pytest.mark.parametrize("name", [n for n in MADE if "a part" not in n])
def test_deepspeed_takes_what_the_script_makes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.oracle import refuses

    (tmp_path / "ds.json").write_text(FILE)
    elsewhere = ModuleType("elsewhere")
    vars(elsewhere).update(
        complete=complete,
        complete_config=lambda args: complete(args.config),
        complete_each=lambda configs: list(map(complete, configs.values())),
        Strategy=type("Strategy", (), {"prepare": prepare, "__call__": prepare}),
        block=lambda: {"stage": 2},
    )
    configs: list[Any] = []

    def initialize(*, model: object, config: Any) -> tuple[None]:
        configs.append(config)
        return (None,)

    monkeypatch.setitem(sys.modules, "elsewhere", elsewhere)
    monkeypatch.setitem(sys.modules, "deepspeed", SimpleNamespace(initialize=initialize))
    monkeypatch.setattr(sys, "argv", ["train.py", *RUNS.get(name, [])])
    monkeypatch.chdir(tmp_path)
    exec(compile(HEAD + MADE[name] + TAIL, "train.py", "exec"), {"model": None})
    monkeypatch.undo()
    assert refuses(configs[0], 2) is None


CLASH = (
    'cfg = {"train_micro_batch_size_per_gpu": 2, "fp16": {"enabled": False},'
    ' "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 1}},'
    ' "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 5,'
    ' "stage3_allgather_sequential": True}}\n'
)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("", True),
        ('if args.bf16:\n    cfg["steps_per_print"] = 1', True),
        ('if args.bf16:\n    cfg["wall_clock_breakdown"] = True', True),
        ('cfg["flops_profiler"] = block()', True),
        ('cfg["tensorboard"] = block()', True),
        ('if args.bf16:\n    cfg["train_batch_size"] = 8', True),
        ('cfg["zero_optimization"] = block()', False),
        ('if args.bf16:\n    cfg["zero_optimization"] = {"stage": 1}', False),
        ('if args.bf16:\n    cfg["bf16"] = {"enabled": True}', False),
        ('cfg["optimizer"] = block()', False),
        ("complete(cfg)", False),
    ],
)
def test_only_keys_that_combine_put_a_combination_in_doubt(
    change: str, told: bool, dsguard: Dsguard, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(HEAD + CLASH + change + TAIL)
    outcome = dsguard("check -o concise train.py", tmp_path)
    assert ("unused-setting" in outcome.out) is told


def test_a_profiler_under_a_condition_turns_nothing_on(dsguard: Dsguard, tmp_path: Path) -> None:
    config = 'cfg = {"train_micro_batch_size_per_gpu": 2, "wall_clock_breakdown": False}\n'
    profiler = 'cfg["flops_profiler"] = {"enabled": True}'
    for change, told in ((profiler, True), (f"if args.bf16:\n    {profiler}", False)):
        (tmp_path / "train.py").write_text(HEAD + config + change + TAIL)
        outcome = dsguard("check -o concise train.py", tmp_path)
        assert ("unused-setting" in outcome.out) is told


TELLS = {
    "a function named for printing": "from elsewhere import print_rank_0\nprint_rank_0(cfg)",
    "a logger": "from elsewhere import logger\nlogger.info(cfg)",
    "the logger of an object": "from elsewhere import Run\nrun = Run()\nrun.logger.info('%s', cfg)",
    "a function named for saving": "from elsewhere import save_json\nsave_json(cfg, 'used.json')",
    "a function named for a rank": "from elsewhere import rank_zero_info\nrank_zero_info(cfg)",
    "OmegaConf": "from omegaconf import OmegaConf\nOmegaConf.save(OmegaConf.create(cfg), 'x')",
    "a dict of collections": "from collections import OrderedDict\nshown = OrderedDict(cfg)",
    "a prepared print": "from functools import partial\nshow = partial(print, cfg)",
    "a request": "import requests\nrequests.post('http://localhost', json={'config': cfg})",
    "printed arguments": "args.config = cfg\nprint(args, args.config.get('amp'))",
    "other arguments": "args.config = cfg\nargs.other.update(amp=1)",
    "a loop that only reads": "for one in (cfg, {}):\n    print(one['bf16'], one.get('amp'))",
}


@pytest.mark.parametrize("name", TELLS)
def test_a_config_that_is_only_told_of_is_still_judged(
    name: str, dsguard: Dsguard, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(HEAD + TYPED + TELLS[name] + TAIL)
    assert "DSG402" in dsguard("check -o concise train.py", tmp_path).out


@pytest.mark.parametrize("call", ["log_and_fix", "write_defaults", "debug_overrides", "login"])
def test_a_name_that_may_mean_a_change_is_no_telling(
    call: str, dsguard: Dsguard, tmp_path: Path
) -> None:
    text = f"from elsewhere import {call}\n{call}(cfg)"
    (tmp_path / "train.py").write_text(HEAD + TYPED + text + TAIL)
    assert dsguard("check -o concise train.py", tmp_path).out == ""


def facts(dsguard: Dsguard, folder: Path, text: str) -> dict[str, Any]:
    (folder / "train.py").write_text(text)
    report = json.loads(dsguard("check train.py -o json", folder).out)
    (check,) = report["checks"]
    found: dict[str, Any] = check["facts"]
    return found


ASKED = [
    ("zero_stage", TYPED + 'cfg["zero_optimization"] = block()'),
    (
        "zero_stage",
        PLAIN + 'if args.offload:\n    cfg["zero_optimization"].update({"stage": 3}, x=1)',
    ),
    ("micro_batch_size", PLAIN + "if args.bf16:\n    cfg.update(train_micro_batch_size_per_gpu=2)"),
    ("precision", 'cfg = {"train_batch_size": 2}\nif args.bf16:\n    cfg["bf16"] = block()'),
    (
        "offload_optimizer",
        PLAIN + 'if args.offload:\n    cfg["zero_optimization"]["offload_optimizer"] = block()',
    ),
    (
        "offload_param",
        PLAIN + 'cfg["zero_optimization"] = {**({"offload_param": {}} if args.offload else {})}',
    ),
    ("sequence_parallel_size", PLAIN + 'cfg["sequence_parallel_size"] = block()'),
    ("tensor_parallel_size", PLAIN + 'cfg["tensor_parallel"] = block()'),
    ("optimizer", PLAIN + 'cfg["optimizer"] = block()'),
    ("learning_rate", PLAIN + 'cfg["optimizer"] = block()'),
    ("warmup_steps", PLAIN + 'cfg["scheduler"] = block()'),
]


@pytest.mark.parametrize(("name", "text"), ASKED)
def test_no_default_is_taken_for_what_the_script_decides(
    name: str, text: str, dsguard: Dsguard, tmp_path: Path
) -> None:
    fact = facts(dsguard, tmp_path, HEAD + text + TAIL)[name]
    assert fact["state"] == "unknown"
    assert "only known when the script runs" in fact["reason"]


TRAINER = """\
from transformers import Trainer, TrainingArguments
from elsewhere import block
cfg = {
    "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": block(), "gradient_clipping": block(),
    "zero_optimization": block(), "bf16": block(), "fp16": {"enabled": block()},
    "optimizer": %s, "scheduler": block(),
}
args = TrainingArguments(
    "out", deepspeed=cfg, bf16=True, per_device_train_batch_size=2, learning_rate=1e-4,
    gradient_accumulation_steps=4, max_grad_norm=0.3, warmup_steps=10, optim="sgd",
    lr_scheduler_type="cosine",
)
Trainer(model=model, args=args).train()
"""


@pytest.mark.parametrize(
    "optimizer", ["block()", '{"type": block()}', '{"type": "SGD", "params": block()}']
)
def test_no_placeholder_is_compared_with_training_arguments(
    optimizer: str, dsguard: Dsguard, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(TRAINER % optimizer)
    out = dsguard("check -o concise train.py -- torchrun --nproc_per_node 2 train.py", tmp_path).out
    assert "$" not in out
    assert "DSG701" not in out
    assert "DSG704" not in out


REPLACED = """\
import dataclasses
from transformers import HfArgumentParser, Trainer, TrainingArguments
(args,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
{change}
Trainer(model=model, args=args).train()
"""


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("args.gradient_accumulation_steps //= 8", True),
        ("args = dataclasses.replace(args, gradient_accumulation_steps=8)", False),
        ("args = dataclasses.replace(args, **changes)", False),
        ("args = dataclasses.replace(args, seed=8)", True),
    ],
)
def test_replaced_training_arguments_are_compared_anew(
    change: str, found: bool, dsguard: Dsguard, tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(REPLACED.format(change=change))
    (tmp_path / "ds.json").write_text(
        '{"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 8,'
        ' "zero_optimization": {"stage": 2}}'
    )
    out = dsguard(
        "check -o concise -- torchrun --nproc_per_node 8 train.py --deepspeed ds.json"
        " --per_device_train_batch_size 2 --gradient_accumulation_steps 64",
        tmp_path,
    ).out
    assert ("DSG701" in out) is found
