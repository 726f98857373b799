"""Twice the input, twice the work: calls are counted, as a stopwatch would count the machine."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dsguard.checking import Settings, check_source
from dsguard.cli.inputs import collect
from dsguard.launch.context import Command
from dsguard.model import tree
from dsguard.model.report import Target, TargetOrigin
from dsguard.model.source import Source, Span
from dsguard.policy import Policy, make_report
from dsguard.reading.directives import directives_in
from dsguard.render.json_report import render_json
from dsguard.render.sarif import render_sarif
from dsguard.render.text import render_text
from dsguard.settings import places
from tests.calls import calls, lines

RELEASE = Target("0.19.8", TargetOrigin.OPTION)
SMALL = 100
CONFIG = '{"train_micro_batch_size_per_gpu": 1}'
LAUNCH = "torchrun --nproc_per_node 2 train.py --deepspeed_config ds.json"


def check(folder: Path, launch: str | None, *names: str) -> None:
    """``dsguard check`` with the outputs."""
    command = Command.of_text(launch) if launch is not None else None
    inputs, failures = collect(names, command, Settings(RELEASE, folder=folder))
    report = make_report([item.check() for item in inputs], Policy(), failures)
    assert report.checks
    render_text(report, color=False, unicode=True)
    render_json(report)
    render_sarif(report)


def numbered(form: str, number: int) -> str:
    return "".join(form.replace("@", str(at)) for at in range(number))


FILES: dict[str, tuple[str, Callable[[int], str], str | None]] = {
    "keys": ("ds.json", lambda n: '{"train_batch_size": 1' + numbered(', "k@": @', n) + "}", None),
    "repeated-keys": ("ds.json", lambda n: '{"train_batch_size": 1'
                      + numbered(', "train_batch_size": 1', n) + "}", None),
    "block": ("ds.json", lambda n: '{"zero_optimization": {"stage": 1'
              + numbered(', "stag@": 1', n) + "}}", None),
    "parameters": ("ds.json", lambda n: '{"optimizer": {"type": "Adam", "params": {"lr": 1'
                   + numbered(', "p@": 1', n) + "}}}", None),
    "list": ("ds.json", lambda n: json.dumps({"train_batch_size": list(range(n))}), None),
    "comments": ("ds.json", lambda n: "{" + numbered("// @ dsguard: ignore[unknown-key]\n", n)
                 + numbered('"k@": 1, // dsguard: ignore[no-batch-size]\n', n) + "}", None),
    "no-commas": ("ds.json", lambda n: "{\n" + numbered("k@: v@\n", n) + "}", None),
    "nesting": ("ds.json", lambda n: '{"a": ' * n + "1" + "}" * n, None),
    "yaml": ("job.yaml", lambda n: "base_model: x\ndatasets: []\ndeepspeed: ds.json\n"
             + numbered("k@: [1, {a: @}]\n", n), None),
    "launches": ("run.sh", lambda n: numbered(f"torchrun t@.py --x {LAUNCH[9:]}\n", n), None),
    "remarked-launches": ("run.sh", lambda n: "# dsguard: ignore[no-batch-size] why\n"
                          + numbered(f"torchrun t@.py --x {LAUNCH[9:]}\n", n), None),
    "commands": ("run.sh", lambda n: numbered("echo @ | tee log\n", n) + LAUNCH, None),
    "script": ("train.py", lambda n: "import argparse, deepspeed\np = argparse.ArgumentParser()\n"
               "e, *_ = deepspeed.initialize(model=m, config='ds.json')\n"
               + numbered("p.add_argument('--a@', default=@)\nif a@: x@ = @\n", n), None),
    "hosts": ("hosts", lambda n: numbered("h@ slots=2\n", n),
              "deepspeed --hostfile hosts --include h1:0 train.py --deepspeed_config ds.json"),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ds.json").write_text(CONFIG)
    (tmp_path / "train.py").write_text("")
    file, made, launch = FILES[name]
    counted = []
    names = () if launch is not None else (file,)
    for size in (2, 2, SMALL, 2 * SMALL):  # the first one also loads what is loaded lazily
        (tmp_path / file).write_text(made(size))
        counted.append(calls(lambda: check(tmp_path, launch, *names)))
    _, nothing, once, twice = counted
    assert twice - nothing < 2.3 * (once - nothing) + 2_000


def test_a_directive_behind_the_other() -> None:
    """All of them mean the first line that is more than a comment, however far it is."""
    counted = []
    for size in (SMALL, 2 * SMALL):
        text = "{\n" + "  // dsguard: ignore[unknown-key]\n" * size + "}\n"
        source = Source("ds.json", text)
        comments = [Span(*found.span()) for found in re.finditer("//.*", text)]
        counted.append(lines(partial(directives_in, source, comments)))
        found = directives_in(source, comments)
        assert {directive.first_line for directive in found} == {size + 2}
    once, twice = counted
    assert twice < 2.3 * once


def test_the_words_of_a_launch(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(CONFIG)
    _, nothing, once, twice = (
        calls(partial(check, tmp_path, f"{LAUNCH} {numbered('--o@ @ ', number)}"))
        for number in (0, 0, SMALL, 2 * SMALL)
    )
    assert twice - nothing < 2.3 * (once - nothing) + 2_000


def test_the_flags_of_a_script(tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(CONFIG)
    counted = []
    for size in (2, 2, SMALL, 2 * SMALL):
        added = numbered("p.add_argument('--o@')\n", size)
        start = "import argparse, deepspeed\np = argparse.ArgumentParser()\n"
        (tmp_path / "train.py").write_text(f"{start}{added}a = p.parse_args()\n")
        launch = f"{LAUNCH} {numbered('--o@ @ ', size)}"
        counted.append(calls(partial(check, tmp_path, launch)))
    _, nothing, once, twice = counted
    assert twice - nothing < 2.3 * (once - nothing) + 2_000


def test_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    counted = []
    for size in (10, 10, 20, 40):
        for number in range(size):
            (tmp_path / f"ds_config_{number}.json").write_text(CONFIG)
        counted.append(calls(lambda: check(tmp_path, None, ".")))
    _, few, some, many = counted
    assert many - few < 3.3 * (some - few)


@pytest.mark.parametrize("statement", ["k@ = 1\n", "k@ = [\n  1,\n  2,\n]\n"])
def test_a_mistake_at_the_end_of_long_settings(
    statement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each beginning that is read costs as much as it is long, so few are."""
    text = numbered(statement, 400) + "x = [\n" + "  1,\n" * 400 + "]\nwrong = 1\n"
    read = 0
    real = places._read

    def count(lines: Sequence[str]) -> dict[str, Any] | None:
        nonlocal read
        read += 1
        return real(lines)

    monkeypatch.setattr(places, "_read", count)
    span = places.place_of(text, ("wrong",))
    assert text[span.start : span.end] == "wrong"
    assert read < 450


@pytest.mark.parametrize(
    "item", ["1", "{}", '"$A"', '{"a": "auto"}'], ids=["numbers", "objects", "templates", "autos"]
)
def test_a_long_key_is_not_repeated_for_all_that_it_holds(
    item: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pointers of 10,000 values below a key of 100 KB took 1 GB."""
    joined = 0
    real = tree.join_pointer

    def count(parent: str, token: str | int) -> str:
        nonlocal joined
        joined += len(pointer := real(parent, token))
        return pointer

    key = "k" * 10_000
    for name, module in list(sys.modules.items()):
        if name.startswith("dsguard.") and getattr(module, "join_pointer", None) is real:
            monkeypatch.setattr(module, "join_pointer", count)
    items = ", ".join([item] * 1000)
    text = f'{{"train_batch_size": 8, "zero_optimization": {{"{key}": [{items}]}}}}'
    check_source(Source("ds.json", text), None, Settings(RELEASE))
    assert 0 < joined < 100 * len(key)


def test_a_mistake_in_a_list_of_many_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of it ends a statement: 400 beginnings of 200 KB took eight seconds."""
    text = "select = [\n" + numbered('  "rule-@",\n', 20_000) + '  "wrong",\n]\n'
    read = 0
    real = places._read

    def count(lines: Sequence[str]) -> dict[str, Any] | None:
        nonlocal read
        read += sum(map(len, lines))
        return real(lines)

    monkeypatch.setattr(places, "_read", count)
    span = places.place_of(text, ("select", 20_000))
    assert text[span.start : span.end] == '"wrong"'
    assert read < 6_000_000
