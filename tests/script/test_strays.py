"""Configs that a script changes by ways on which a dict is not followed.

Each script is run for real, with a ``deepspeed`` that keeps the config it is given.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dsguard.model.source import Source
from dsguard.script.declaration import Constant, Unreadable
from dsguard.script.loop.description import Config
from dsguard.script.read import read_script

KEY = "train_micro_batch_size_per_gpu"
WRITTEN = f'{{"train_batch_size": 8, "{KEY}": 3, "zero_optimization": {{"stage": 1}}}}'
START = f"""\
import json
import deepspeed

def fix(config):
    config["{KEY}"] = 2

config = {WRITTEN}
"""
WAYS = {
    "an object that is handed on": """
def fix_of(holder):
    fix(holder.config)
class Trainer:
    def __init__(self):
        self.config = config
    def go(self):
        fix_of(self)
Trainer().go()
""",
    "*args": """
def call(function, *args, **keywords):
    return function(*args, **keywords)
call(fix, config)
""",
    "**keywords": """
def handed_on(**keywords):
    fix(**keywords)
handed_on(config=config)
""",
    "a list": f"""
configs = [config, {{}}]
for index in range(2):
    configs[index]["{KEY}"] = 2
""",
    "a comprehension": "[fix(one) for one in (config,)]",
    "map": "list(map(fix, [config]))",
    "zip": f"for one, size in zip([config], [2]):\n    one['{KEY}'] = size",
    "values()": f"for one in dict(train=config).values():\n    one.update({KEY}=2)",
    "getattr": f"""
class Holder:
    pass
holder = Holder()
holder.config = config
held = getattr(holder, "config")
held.update({{"{KEY}": 2}})
""",
    "globals()": f"globals()['config']['{KEY}'] = 2",
    "a pattern": f"""
match config:
    case {{"train_batch_size": _}} as same:
        same["{KEY}"] = 2
""",
}
INHERITED = """
from base import Trainer
class Mine(Trainer):
    def __init__(self):
        self.config = config
        self.adapt()
Mine()
"""
END = "\ndeepspeed.initialize(model=None, config=config)\n"


def given(text: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What ``deepspeed.initialize`` gets when the script runs."""
    kept: list[dict[str, Any]] = []
    deepspeed, base = ModuleType("deepspeed"), ModuleType("base")
    deepspeed.initialize = lambda model, config: kept.append(config)  # type: ignore[attr-defined]
    adapts = {"adapt": lambda self: self.config.update({KEY: 2})}
    base.Trainer = type("Trainer", (), adapts)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "deepspeed", deepspeed)
    monkeypatch.setitem(sys.modules, "base", base)
    exec(compile(text, "train.py", "exec"), {"__name__": "__main__"})
    (config,) = kept
    return config


def read(text: str) -> Config:
    """The same, read."""
    (config,) = read_script(Source("train.py", text)).loop.configs
    return config


@pytest.mark.parametrize("way", [*WAYS.values(), INHERITED], ids=[*WAYS, "an unread base class"])
def test_nothing_is_said_of_what_is_changed_unseen(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = START + way + END
    assert given(text, monkeypatch)[KEY] == 2
    config = read(text)
    if config.literal is not None:
        entry = config.literal.get(KEY)
        assert entry is not None
        assert isinstance(entry.value, Unreadable)
        whole = config.literal.get("train_batch_size")
        assert whole is not None
        assert whole.value == Constant(8)
    else:
        assert config.reason == "self.adapt may change it"


def test_a_block_and_a_key_that_the_dict_does_not_have() -> None:
    text = START + 'for one in zip([config]):\n    one[0]["gradient_clipping"] = 1.0\n'
    text += '    one[0]["zero_optimization"]["stage"] = 3\n' + END
    literal = read(text).literal
    assert literal is not None
    clipping, zero = literal.get("gradient_clipping"), literal.get("zero_optimization")
    assert clipping is not None
    assert clipping.perhaps
    stage = zero.value.get("stage")  # type: ignore[union-attr]
    assert isinstance(stage.value, Unreadable)


def test_a_config_that_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ds.json").write_text(WRITTEN)
    text = START.replace(WRITTEN, 'json.load(open("ds.json"))') + WAYS["map"] + END
    assert given(text, monkeypatch)[KEY] == 2
    (change,) = read(text).changes or ()
    assert change[0] == (KEY,)
    assert isinstance(change[1].value, Unreadable)


def test_of_a_block_that_is_replaced_nothing_is_known() -> None:
    text = START.replace(WRITTEN, 'json.load(open("ds.json"))')
    text += 'for one in zip([config]):\n    one[0]["zero_optimization"] = json.loads(more)\n'
    text += '    one[0]["zero_optimization"]["stage"] = 2\n'
    changes = read(text + END).changes or ()
    assert [path for path, _ in changes] == [
        ("train_micro_batch_size_per_gpu",),
        ("zero_optimization",),
    ]


@pytest.mark.parametrize(
    "other",
    [
        "summary = {}\nsummary['train_batch_size'] = 64",
        "import os\nos.environ['train_batch_size'] = '64'",
        "import wandb\nwandb.config.update({'train_batch_size': 64})",
        "def state(optimizer):\n    for group in optimizer.param_groups:\n        group['lr'] = 1",
        "def left(options):\n    return options.pop('train_batch_size')",
        "def seen(options):\n    return options['train_batch_size']",
    ],
)
def test_what_is_none_of_the_config(other: str) -> None:
    literal = read(START.replace("def fix", "def unused_fix") + other + END).literal
    assert literal is not None
    batch = literal.get("train_batch_size")
    assert batch is not None
    assert batch.value == Constant(8)
