"""What is read of a training loop, and where dsguard rather says nothing."""

from __future__ import annotations

from textwrap import indent

import pytest

from dsguard.script.declaration import Constant, FromArgument
from dsguard.script.loop.description import (
    Action,
    Around,
    DictLiteral,
    Does,
    FromConfig,
    FromEngine,
    Maker,
    Meaning,
    Whose,
)
from dsguard.script.script import Script
from tests.script.reading import read

HEAD = """
import deepspeed, torch
import torch.distributed as dist
from torch.utils.data import DataLoader, TensorDataset
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
"""
MADE = HEAD + (
    "engine, opt, loader, sched = deepspeed.initialize(model=model, optimizer=optimizer,"
    " config='ds.json')\n"
)


def did(script: Script, *does: Does) -> list[Action]:
    return [a for a in script.loop.actions if not does or a.does in does]


def meanings(action: Action) -> list[tuple[Meaning, bool]]:
    return [(c.meaning, c.holds) for block in action.blocks for c in block.conditions]


def after(text: str, **modules: str) -> Script:
    """Read a text behind the making of an engine."""
    return read(MADE + text, **modules)


def test_the_engine_and_its_names() -> None:
    (engine,) = read(MADE).loop.engines
    assert engine.maker is Maker.DEEPSPEED
    assert engine.name == "engine"
    assert engine.targets == ("engine", "opt", "loader", "sched")
    assert set(engine.passed) == {"model", "optimizer", "config"}
    assert engine.config is not None
    assert engine.config.path == Constant("ds.json")


@pytest.mark.parametrize(
    "call",
    [
        "deepspeed.initialize(model=model)[0]",
        "first(*deepspeed.initialize(model=model))",
    ],
)
def test_an_engine_without_names(call: str) -> None:
    script = read(HEAD + f"def first(engine, *_): return engine\ne = {call}\ne.step()")
    assert len(script.loop.engines) == 1


def test_a_loop() -> None:
    script = after(
        """
for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        out = engine(x)
        loss = torch.nn.functional.mse_loss(out, y) / 4
        engine.backward(loss)
        engine.step()
"""
    )
    forward, backward, step = script.loop.actions
    assert [a.does for a in (forward, backward, step)] == [Does.FORWARD, Does.BACKWARD, Does.STEP]
    assert [b.around for b in step.blocks] == [Around.LOOP, Around.LOOP]
    assert backward.loss is not None
    ((given, _),) = backward.loss.divisions
    assert given.value == Constant(4)
    assert given.location.source.slice(given.location.span) == "4"


@pytest.mark.parametrize(
    ("divisor", "value"),
    [
        ("engine.gradient_accumulation_steps()", FromEngine("gradient_accumulation_steps")),
        ("args.accum", FromArgument("accum")),
        ("config['gradient_accumulation_steps']", FromConfig("gradient_accumulation_steps")),
        ("N", Constant(8)),
    ],
)
@pytest.mark.parametrize(
    "line",
    ["loss = loss / {}", "loss /= {}", "loss = loss * (1 / {})", "loss = loss.div({})"],
)
def test_divisions(divisor: str, value: object, line: str) -> None:
    if divisor == "N" and "1 /" in line:
        pytest.skip("1 / 8 is a number like any other")
    script = after(
        "import argparse, json\nargs = argparse.ArgumentParser().parse_args()\nN = 8\n"
        "config = json.load(open('ds.json'))\nloss = engine(1).loss\n"
        + line.format(divisor)
        + "\nengine.backward(loss)"
    )
    (backward,) = did(script, Does.BACKWARD)
    assert backward.loss is not None
    assert [given.value for given, _ in backward.loss.divisions] == [value]


CONDITIONS = [
    ("(i + 1) % 4 == 0", (Meaning.EVERY_NTH, True)),
    ("i % 4 == 3 or last", (Meaning.EVERY_NTH, True)),
    ("not (i + 1) % 4", (Meaning.EVERY_NTH, True)),
    ("(i + 1) % 4 != 0", (Meaning.EVERY_NTH, False)),
    ("engine.is_gradient_accumulation_boundary()", (Meaning.BOUNDARY, True)),
    ("dist.get_rank() == 0", (Meaning.FIRST_RANK, True)),
    ("not dist.is_initialized() or dist.get_rank() == 0", (Meaning.FIRST_RANK, True)),
    ("engine.global_rank != 0", (Meaning.FIRST_RANK, False)),
    ("args.local_rank in [-1, 0]", (Meaning.FIRST_RANK, True)),
    ("int(os.environ['LOCAL_RANK']) == 0", (Meaning.FIRST_RANK, True)),
    ("is_main_process()", (Meaning.FIRST_RANK, True)),
    ("trainer.is_world_process_zero", (Meaning.FIRST_RANK, True)),
    ("args.accum > 1", (Meaning.ABOVE_ONE, True)),
    ("i == 7", (Meaning.OTHER, True)),
    ("dist.get_rank() == 0 or force", (Meaning.OTHER, True)),
    ("rank", (Meaning.FIRST_RANK, False)),
]


@pytest.mark.parametrize(("test", "meaning"), CONDITIONS, ids=[c[0] for c in CONDITIONS])
def test_conditions(test: str, meaning: tuple[Meaning, bool]) -> None:
    script = after(
        "import argparse, os\nfrom somewhere import is_main_process, rank, last, force, trainer\n"
        "rank = last()\nargs = argparse.ArgumentParser().parse_args()\nfor i in range(9):\n"
        f"    if {test}:\n        engine.step()\n    else:\n        engine.eval()"
    )
    step, other = script.loop.actions
    assert meanings(step) == [meaning]
    if meaning[0] is not Meaning.OTHER:
        assert meanings(other) == [(meaning[0], not meaning[1])]


def test_what_stands_behind_a_return_or_continue() -> None:
    script = after(
        "def save():\n    if dist.get_rank() != 0:\n        return\n"
        "    engine.save_checkpoint('x')\n"
        "for i in range(9):\n    engine.train()\n    if (i + 1) % 4:\n        continue\n"
        "    engine.step()\nsave()"
    )
    train, step, save = script.loop.actions
    assert meanings(train) == []
    assert meanings(step) == [(Meaning.EVERY_NTH, True)]
    assert meanings(save) == [(Meaning.FIRST_RANK, True)]


def test_both_branches_of_an_if_share_their_split() -> None:
    script = after("if a():\n    engine.step()\nelse:\n    engine.train()\n")
    step, train = script.loop.actions
    assert step.blocks[0].split is train.blocks[0].split
    assert step.blocks != train.blocks


def test_optimizers_and_schedulers() -> None:
    script = after(
        "own = torch.optim.lr_scheduler.StepLR(optimizer, 5)\n"
        "opt.step()\noptimizer.step()\nengine.optimizer.zero_grad()\nsched.step()\nown.step()"
    )
    assert [(a.does, a.whose) for a in script.loop.actions] == [
        (Does.OPTIMIZER_STEP, Whose.RETURNED),
        (Does.OPTIMIZER_STEP, Whose.CLIENT),
        (Does.OPTIMIZER_ZERO_GRAD, Whose.RETURNED),
        (Does.SCHEDULER_STEP, Whose.RETURNED),
        (Does.SCHEDULER_STEP, Whose.OWN),
    ]


def test_loaders() -> None:
    script = after(
        "data = TensorDataset(x)\nmine = DataLoader(data, 7, shuffle=True)\n"
        "for batch in mine:\n    batch = {k: v.cuda() for k, v in batch.items()}\n"
        "    engine(**batch)\n"
    )
    (forward,) = script.loop.actions
    loader = forward.loader
    assert loader is not None
    assert loader.batch_size is not None
    assert loader.batch_size.value == Constant(7)
    assert (loader.sampler, loader.drop_last, loader.shards) == (False, False, False)


@pytest.mark.parametrize(
    "dataset",
    ["mystery(x)", "TensorDataset(x[dist.get_rank()::2])", "MyStream()", "load(x, world=4)"],
)
def test_datasets_that_may_be_one_ranks_part(dataset: str) -> None:
    script = after(
        "from somewhere import mystery, load\n"
        "class MyStream(torch.utils.data.IterableDataset): pass\n"
        f"for batch in DataLoader({dataset}):\n    engine(batch)\n"
    )
    (forward,) = script.loop.actions
    assert forward.loader is not None
    assert forward.loader.shards


def test_star_imports() -> None:
    script = read(
        "from deepspeed import *\nfrom accelerate import *\nfrom torch.utils.data import *\n"
        "loader = DataLoader(data, batch_size=3)\n"
        "engine, *_ = initialize(model=net, config={})\n"
        "for batch in loader:\n    engine(batch)\n"
        "accelerator = Accelerator(gradient_accumulation_steps=2)\n"
        "model = accelerator.prepare(model)\n"
    )
    assert [e.maker for e in script.loop.engines] == [Maker.DEEPSPEED, Maker.ACCELERATE]
    (forward,) = script.loop.actions
    assert forward.loader is not None
    assert [call.framework for call in script.setups] == ["Accelerator"]


def test_accelerate() -> None:
    script = read(
        "from accelerate import Accelerator\nimport torch\naccelerator = Accelerator()\n"
        "model = Net()\noptimizer = torch.optim.AdamW(model.parameters())\n"
        "model, optimizer, loader = accelerator.prepare(model, optimizer, loader)\n"
        "for batch in loader:\n    with accelerator.accumulate(model):\n"
        "        loss = model(**batch).loss\n        accelerator.backward(loss)\n"
        "        if accelerator.sync_gradients:\n            optimizer.step()\n"
        "    if accelerator.is_main_process:\n        accelerator.save_state('x')\n"
    )
    (engine,) = script.loop.engines
    assert (engine.maker, engine.name) == (Maker.ACCELERATE, "model")
    assert [a.does for a in script.loop.actions] == [
        Does.ACCUMULATE,
        Does.FORWARD,
        Does.BACKWARD,
        Does.OPTIMIZER_STEP,
        Does.SAVE_CHECKPOINT,
    ]
    assert meanings(script.loop.actions[3]) == [(Meaning.BOUNDARY, True)]
    assert meanings(script.loop.actions[4]) == [(Meaning.FIRST_RANK, True)]


def test_a_class_that_trains() -> None:
    text = (
        "class Trainer:\n    def __init__(self, config):\n"
        "        self.net = torch.nn.Linear(4, 1)\n"
        "        self.engine, *_ = deepspeed.initialize(model=self.net, config=config)\n"
        "    def step(self, x):\n        loss = self.engine(x).mean()\n"
        "        self.engine.backward(loss)\n        self.engine.step()\n"
        "    def run(self, loader):\n        for x in loader:\n            self.step(x)\n"
    )
    for rest in ("Trainer('ds.json').run(loader)", ""):
        script = read(HEAD + text + rest)
        assert [a.does for a in script.loop.actions[:3]] == [
            Does.FORWARD,
            Does.BACKWARD,
            Does.STEP,
        ]
    assert script.loop.engines[0].name == "self.engine"


def test_a_loop_in_another_module() -> None:
    script = read(
        "from loops import train\nfrom setup import make\nengine = make()\ntrain(engine)\n",
        loops="def train(engine):\n    for x in y:\n        engine.backward(engine(x))\n",
        setup="import deepspeed\ndef make():\n    return deepspeed.initialize(model=m)[0]\n",
    )
    forward, backward = script.loop.actions
    assert forward.location.source.name == "loops.py"
    assert backward.blocks[0].around is Around.LOOP


CONFIGS = [
    ("{'a': 1, 'b': {'c': [1, 'x']}}", "", {"a": 1, "b": {"c": [1, "x"]}}),
    ("{'a': 1}", "c['a'] = 2\nc['d'] = 3", {"a": 2, "d": 3}),
    ("{'a': {'b': 1}}", "c['a']['b'] = 2", {"a": {"b": 2}}),
    ("{'a': 1}", "c.update({'b': 2})", {"a": 1, "b": 2}),
    ("dict(a=1)", "", {"a": 1}),
    ("{**{'a': 1}, 'b': 2}", "", {"a": 1, "b": 2}),
    ("{'a': 1}", "if x():\n    c['a'] = 2", {"a": "unknown"}),
    ("{'a': f()}", "", {"a": "unknown"}),
    ("{'a': 1}", "if x():\n    c.update({'a': 2}, b=3)", {"a": "unknown", "b": "unknown"}),
    ("{'a': 1}", "c.update(b=2)", {"a": 1, "b": 2}),
    ("{'a': 1}", "change(c)", None),
    ("{'a': 1}", "from other import change\nchange(c)", None),
    ("{'a': 1}", "from other import change\nchange([c])", None),
    ("{'a': {'b': 1}}", "from other import change\nchange(c['a'])", {"a": "unknown"}),
    ("{'a': 1}", "import json\njson.dumps(c)", {"a": 1}),
    ("{'a': 1}", "import wandb\nwandb.init(config=c)", {"a": 1}),
    ("{'a': 1}", "c |= {'b': 2}", None),
    ("{'a': 1}", "del c['a']", None),
    ("{'a': 1}", "c.pop('a')", None),
    ("{**more}", "", None),
    ("{f(): 1}", "", None),
    ("{'a': 1}", "print(c)", {"a": 1}),
]


@pytest.mark.parametrize(("text", "change", "value"), CONFIGS)
def test_dicts(text: str, change: str, value: object) -> None:
    script = read(HEAD + f"c = {text}\n{change}\nengine = deepspeed.initialize(model=m, config=c)")
    (config,) = script.loop.configs
    if value is None:
        assert config.literal is None
        assert config.reason
    else:
        assert config.literal is not None
        assert plain(config.literal) == value


def test_dicts_that_hold_one_another_many_times() -> None:
    """Five levels of ten make a config of 100,000 values; it is not written out."""
    levels = [
        f"d{n} = {{{', '.join(f'{k!r}: d{n - 1}' for k in 'abcdefghij')}}}" for n in range(1, 6)
    ]
    text = "\n".join(["d0 = {'a': 1}", *levels, "engine = deepspeed.initialize(config=d5)"])
    (config,) = read(HEAD + text).loop.configs
    assert config.literal is not None
    assert values_in(config.literal) <= 20_000


def values_in(of: object) -> int:
    entries = of.entries if isinstance(of, DictLiteral) else of if isinstance(of, tuple) else ()
    return 1 + sum(values_in(entry.value) for entry in entries)


def plain(of: object) -> object:
    if isinstance(of, DictLiteral):
        return {entry.key: plain(entry.value) for entry in of.entries}
    if isinstance(of, tuple):
        return [plain(entry.value) for entry in of]
    return of.value if isinstance(of, Constant) else "unknown"


SILENT = {
    "an engine that only one branch makes": (
        "if a():\n    m, *_ = deepspeed.initialize(model=model)\nelse:\n    m = model\nm.step()"
    ),
    "a name that a star import may replace": "from x import *\nother.step()",
    "an engine in a list": "for e in [engine, other]:\n    e.step()",
    "a loss of two engines": (
        "second, *_ = deepspeed.initialize(model=other)\n"
        "(second.unknown(1) + engine.unknown(1)).backward()"
    ),
    "the module's own methods": "loss = engine.module.loss(1)\nloss.backward()",
    "an optimizer of something else": "torch.optim.SGD(other, lr=1).step()",
    "code in a string": "exec('engine.step()')",
    "getattr": "getattr(engine, 'step')()",
}


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_silence(text: str) -> None:
    found = {a.does for a in after(text).loop.actions}
    assert found <= {Does.FORWARD}


def test_code_that_is_not_read_may_do_anything() -> None:
    script = after("from somewhere import fit\nfit(engine)\nself.engine = engine\nprint(engine)")
    assert [a.does for a in script.loop.actions] == [Does.ESCAPE, Does.ESCAPE]


def test_decorators_and_async_and_match_and_walrus() -> None:
    script = after(
        """
@torch.no_grad()
async def evaluate(engine):
    engine.eval()

@record
def main():
    match mode():
        case "train":
            while (x := next(loader)) is not None:
                engine.backward(loss := engine(x))
        case _:
            evaluate(engine)
main()
"""
    )
    assert [a.does for a in script.loop.actions] == [
        Does.FORWARD,
        Does.BACKWARD,
        Does.EVAL_MODE,
    ]


def test_each_call_of_a_function_is_followed_a_few_times_only() -> None:
    calls = "\n".join("step(engine)" for _ in range(500))
    script = after(f"def step(engine):\n    engine.step()\n{calls}")
    assert 0 < len(script.loop.actions) < 100


def test_many_statements_are_followed_once() -> None:
    lines = indent("engine.train()\n" * 400, "    ")
    assert len(after(f"for x in loader:\n{lines}").loop.actions) == 400
