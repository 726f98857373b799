"""Any text at all: an answer, never an exception."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsguard.model.source import Source
from dsguard.script.lookup import argument_value, expand, framework_value
from dsguard.script.read import read_script
from dsguard.script.script import Script
from tests.script.reading import read
from tests.script.real import SCRIPTS

EXAMPLES = settings(max_examples=120)

STATEMENTS = [
    *("import argparse, click, typer, fire", "from transformers import *", "from a import *"),
    *("p = argparse.ArgumentParser()", "p.add_argument('--x', default=A)", "A = 1", "A += B"),
    *("g = p.add_argument_group('g')", "g.add_argument('--y', type=int)", "p.set_defaults(**A)"),
    *("def f(p, *a, k=A, **kw): return p", "p = f(p, *A)", "args, rest = p.parse_known_args()"),
    *("class C(argparse.ArgumentParser): b = A", "p = C(p)", "p = C.b", "p.x.y = p", "del p"),
    *("for A in p: f(p)", "while f(p): break", "with f(p) as (A, p): pass", "if p: p = A"),
    *("lambda: p", "p = [p for p in p]", "x = (p := p)", "p = p if p else f(p)", "f = p.f"),
    *("@click.command()\n@click.option('--z', default=A)\ndef c(z): ...", "typer.run(f)", "c()"),
    *("class D(TrainingArguments): x: int = A", "p = HfArgumentParser((D, C))", "f(D(x=p))"),
    *("try: p = A\nexcept p as A: p\nelse: f\nfinally: f(p)", "match p:\n case [A, *p]: f(p)"),
    *(
        "async def g(p):\n await f(p)\n return p",
        "p = g(p)",
        "import a as p",
        "raise p",
        "global p",
    ),
    *("import deepspeed, torch", "from accelerate import Accelerator", "p = Accelerator()"),
    *("p, A, *f = deepspeed.initialize(p, config=A, **p)", "p = p.prepare(A, p)", "p.x = p"),
    *("p = p(A) / A", "p.backward(p / A)", "p /= A", "p.step()", "A = {'a': p, **A, A: p}"),
    *("if p % A == 0 and not p: p.step()", "A['a']['b'] = p", "A |= p", "p = {k: k for k in p}"),
    *("for A, p in enumerate(torch.utils.data.DataLoader(p)): p(*A, **p)", "p = p.module"),
    *("class E:\n def f(self): self.p = p\n def g(self): self.p.step()", "p = E()", "p.g()"),
    *(
        "import json",
        "p = json.load(open(p))",
        "with open(A) as f: p = json.load(f)",
        "del p[A][p]",
    ),
    *("p['a']['b'][A] = p", "p['a'].update(A)", "deepspeed.initialize(**p)", "A = int(p) * A"),
    *(
        "import lightning as L, accelerate",
        "L.Trainer(strategy=p, **A)",
        "accelerate.Accelerator(**p)",
    ),
    *("p = accelerate.DeepSpeedPlugin(zero_stage=p)", "A = torch.cuda.device_count() * A // p"),
    *("p = f'{p!r:>{A}}'", "p = {**p, 'a': A}", "p = -p ** ~A", "p[A:] = *p, A", "return p"),
]


def answers(script: Script) -> None:
    for name in ("x", "learning_rate"):
        argument_value(script, name)
        framework_value(script, name)
        expand(script, f"--{name}")
    for declaration in script.arguments:
        place = declaration.location
        assert 0 <= place.span.start <= place.span.end <= len(place.source.text)
    for action in script.loop.actions:
        place = action.location
        assert 0 <= place.span.start <= place.span.end <= len(place.source.text)


@EXAMPLES
@given(st.text())
def test_any_text(text: str) -> None:
    answers(read_script(Source("train.py", text)))


@EXAMPLES
@given(st.lists(st.sampled_from(STATEMENTS), max_size=14), st.lists(st.sampled_from(STATEMENTS)))
def test_any_order_of_statements(script: list[str], module: list[str]) -> None:
    body = "\n".join(line for text in module for line in text.split("\n"))
    answers(read("\n".join(script), a=body))
    nested = "def main():\n" + "\n".join(f" {line}" for text in script for line in text.split("\n"))
    answers(read(f"import argparse\n{nested or ' pass'}\nmain()", a=body))


@EXAMPLES
@given(
    st.sampled_from(sorted(SCRIPTS.glob("*.py"))),
    st.integers(0, 3000),
    st.integers(0, 40),
    st.text(max_size=8),
)
def test_damaged_scripts(path: object, at: int, cut: int, text: str) -> None:
    whole = SCRIPTS.joinpath(str(path)).read_text()
    answers(read_script(Source("train.py", whole[:at] + text + whole[at + cut :])))


DEEP = 3000
PARSER = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--x', default=1)\n"


@pytest.mark.parametrize(
    "text",
    [
        "-" * 100_000 + "1",
        "a" + ".b" * 100_000,
        "(" * 100_000,
        "x = " + "1 + " * DEEP + "1",
        "x = " + "f(" * 90 + ")" * 90,
        "x = " + "[" * 90 + "]" * 90,
        "x = a" + "()" * 150,
        "x = " + "not " * 150 + "a",
        "if a:\n    pass\n" + "elif a:\n    pass\n" * 150,
        "x = " + "lambda: " * 150 + "1",
        "x = " + "a if b else " * 150 + "c",
        "".join(" " * i + "if a:\n" for i in range(95)) + " " * 95 + "pass",
        "".join(" " * i + f"def f{i}(p):\n" for i in range(95)) + " " * 95 + "pass",
        "class A: pass\n" + "\n".join(f"class A(A, A): x{i}: int = 1" for i in range(300)),
        "def f(p):\n    g(p)\n    g(p)\ndef g(p):\n    f(p)\n    f(p)\nf(p)",
        "\n".join(f"def f{i}(p):\n    f{i + 1}(p)\n    f{i + 1}(p)" for i in range(30)) + "\nf0(p)",
        "x = '" + "9" * 10_000 + "'",
        "x = " + "9" * 10_000,
        "x = 7 ** 7 ** 7 ** 7",
        "x = 1 << 10 ** 9",
        "x = 'a' * 10 ** 12",
        "x = 1e308 * 10",
        "\0",
        "\ud800",
        "x = '\ud800'",
        "s = 'a'\n" + "s = f'{s}{s}'\n" * 200,
        "x = 0x" + "f" * 10_000 + "\ny = f'{x}'\nz = str(x)",
        "s = (1,)\nr = (1,)\n" + "s = (s, s)\nr = (r, r)\n" * 60 + "x = s == r",
        "s = [a]\nr = [a]\n" + "s = [s, s]\nr = [r, r]\n" * 60 + "x = s if a else r",
        "s = {}\nr = {}\n" + "s = {'a': s, 'b': s}\nr = {'a': r, 'b': r}\n" * 60 + "x = s == r",
    ],
    ids=range(30),
)
def test_hostile_texts(text: str) -> None:
    answers(read(text))
    answers(read(PARSER + text))


def test_a_long_chain_of_conditions_hides_nothing_behind_it() -> None:
    chain = "if a:\n    pass\n" + "elif a:\n    pass\n" * 150
    script = read(PARSER + chain + "p.add_argument('--y', default=2)\np.parse_args()")
    assert [d.name for d in script.arguments] == ["x", "y"]


def test_many_lines_are_followed_once() -> None:
    """As many statements as fit the size limit; the count of visits is what may not explode."""
    lines = [f"p.add_argument('--a{i}', default={i})" for i in range(3000)]
    script = read(PARSER + "\n".join(lines) + "\np.parse_args()")
    assert len(script.arguments) == 3001
    assert script.gaps == ()
