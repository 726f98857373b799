"""Scripts that take more than twice the work where they are twice as long: the work is bounded."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from functools import partial, reduce
from typing import Any

import pytest

from dsguard.model.source import Source
from dsguard.script import expressions
from dsguard.script.declaration import Constant, Unreadable
from dsguard.script.expressions import Expressions
from dsguard.script.loop.description import Loop
from dsguard.script.module import LocalModule
from dsguard.script.notebook import read_notebook
from dsguard.script.objects import External
from dsguard.script.scope import Part, Scope, _either
from tests.script.reading import read, reason, value

ENGINE = "import deepspeed\nengine, *_ = deepspeed.initialize(model=m, config='ds.json')\n"
PARSER = "import argparse\np = argparse.ArgumentParser()\n"


class Counted:
    """What a function is given, before it is called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
        self.given: list[Any] = []
        real = getattr(owner, name)

        def count(*arguments: Any) -> Any:
            self.given.append(arguments[-1])
            return real(*arguments)

        monkeypatch.setattr(owner, name, count)


@pytest.mark.parametrize("form", ["({})", "[{}]", "{{'a': [{}]}}", "f({})", "'%s' % ({})"])
def test_a_class_body_is_evaluated_once(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated = Counted(monkeypatch, Expressions, "_evaluate")
    lines = (f" a{n + 1} = {form.format(f'C.a{n}, ' * 6)}\n" for n in range(5))
    read(ENGINE + "class C:\n a0 = 1\n" + "".join(lines) + "x = C.a5\n" * 10)
    assert len(evaluated.given) < 500


def test_the_names_of_a_class_are_put_together_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at = Counted(monkeypatch, expressions, "_class_names")
    read(ENGINE + "class C:\n" + "".join(f" a{n} = 1\n" for n in range(20)) + "C.a1\n" * 20)
    assert len(looked_at.given) == 1


def test_an_attribute_that_is_made_of_itself() -> None:
    script = read(
        PARSER + "class C:\n a = C.a\n b = C.c\n c = C.b\n"
        "p.add_argument('--a', default=C.a)\np.add_argument('--b', default=C.b)\np.parse_args()"
    )
    assert "made of it" in reason(script, "a")
    assert "made of it" in reason(script, "b")


def test_a_dict_of_a_class_stays_the_same_one() -> None:
    script = read(
        "import deepspeed\nclass C:\n config = {'train_batch_size': 1}\n"
        "C.config['train_batch_size'] = 2\ndeepspeed.initialize(model=m, config=C.config)"
    )
    config = script.loop.engines[0].config
    assert config is not None
    assert config.literal is not None
    entry = config.literal.get("train_batch_size")
    assert entry is not None
    assert entry.value == Constant(2)


@pytest.mark.parametrize(
    "text",
    [
        "match x:\n" + "".join(f" case {n}: a{n} = 1\n" for n in range(300)),
        "try:\n" + "".join(f" b{n} = 1\n" for n in range(300))
        + "".join(f"except E{n}: a{n} = 1\n" for n in range(300)),
        "if a: b = 1\n" + "".join(f"elif a{n}: b{n} = 1\n" for n in range(300)),
    ],
    ids=["match", "try", "if"],
)  # fmt: skip
def test_a_branch_costs_what_it_stores(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    restored = Counted(monkeypatch, Scope, "restore")
    read(ENGINE + text)
    assert 300 <= sum(len(part) for part in restored.given) < 2_000


def test_branches_are_joined_as_if_each_held_all_names() -> None:
    """Most branches leave most names alone, and are not asked for them one by one."""
    random.seed(5)
    values = [None, Constant(1), Constant(2), External("a"), External("b"), Unreadable("c")]
    for _ in range(500):
        scope = Scope(LocalModule(Source("a.py", ""), "a", 0))
        scope.restore({name: random.choice(values) for name in "xyz"})
        outcomes: list[Part] = [
            {name: random.choice(values) for name in "xyz" if random.random() < 0.4}
            for _ in range(random.randrange(7))
        ]
        start = scope.part("xyz")
        whole = [start | outcome for outcome in outcomes] or [start]
        scope.join(outcomes)
        assert scope.part("xyz") == {
            name: reduce(partial(_either, name), [one[name] for one in whole]) for name in "xyz"
        }


def blocks_in(loop: Loop) -> Iterable[int]:
    for action in loop.actions:
        yield len(action.blocks)
        for _, blocks in action.loss.divisions if action.loss is not None else ():
            yield len(blocks)


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n" + " if x: return\n engine.step()\n" * 400,
        "def f():\n" + " if x: return\n" * 2000 + " engine.step()\n" * 200,
        "with (" + "a, " * 2000 + "):\n" + " engine.step()\n" * 100,
        "def f():\n loss = engine(x)\n" + " if x: return\n loss = loss / 2\n" * 300
        + " engine.backward(loss)\n" * 100,
    ],
    ids=["between", "before", "with", "divided"],
)  # fmt: skip
def test_rules_have_few_blocks_to_compare(text: str) -> None:
    script = read(ENGINE + "engine.eval()\n" + text)
    assert script.loop.actions
    assert sum(blocks_in(script.loop)) <= 10_000


def test_what_many_returns_skip_is_told_apart_all_the_same() -> None:
    script = read(ENGINE + "def f():\n" + " if x: return\n engine.step()\n" * 110)
    last = [action.blocks[-1] for action in script.loop.actions]
    assert len(last) == len(set(last)) == 110
    assert last[50].conditions
    assert not last[-1].conditions


@pytest.mark.parametrize("form", ["import {}", "from {} import x", "a = 1; import \\\n b, {}"])
def test_a_name_of_many_parts(form: str) -> None:
    """Python's parser takes gigabytes for one of 80 KB."""
    text = form.format("a" + ".a" * 4000)
    assert read("x = 1\n" + text).unreadable == "it imports names of too many parts"
    cells = [{"cell_type": "code", "source": source} for source in (text, "y = 1")]
    code = read_notebook(json.dumps({"cells": cells}), "a.ipynb").text
    assert [line for line in code.splitlines() if not line.startswith("#")] == ["y = 1"]
    assert read(form.format("a" + ".a" * 300)).unreadable is None
    assert read(f"import os\nx = '''\n{'1.' * 4000}'''\n").unreadable is None


def test_a_long_name_is_not_joined_to_each_that_it_holds() -> None:
    names = ", ".join(f"b{number}" for number in range(300))
    long = "a" * 2000
    script = read(f"from {long} import {names}\nimport {long} as c\n" + "c = c.d\n" * 300)
    assert sum(map(len, script.imports)) < 10_000
    assert "a.b.c" in read("from a.b import c").imports


def test_parents_that_double() -> None:
    script = read(
        PARSER + "p.add_argument('x')\n"
        + "p = argparse.ArgumentParser(parents=[p, p])\n" * 40 + "p.parse_args()"
    )  # fmt: skip
    assert len(script.arguments) <= 20_000
    assert [gap.reason for gap in script.gaps] == ["parsers have more parents than are followed"]
    plain = read(
        PARSER + "p.add_argument('--x', default=1)\n"
        "q = argparse.ArgumentParser(parents=[p])\nq.parse_args()"
    )
    assert value(plain, "x") == 1
    assert not plain.gaps
