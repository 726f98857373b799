"""``dsguard balance``: what it reads, what it shows, and how it ends."""

from __future__ import annotations

import builtins
import importlib
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from tests.conftest import ROOT, Dsguard, compare

EXPECTED = Path(__file__).parent / "expected"
LENGTHS = np.random.default_rng(11).lognormal(6, 0.8, 6000).astype(int) + 1
KINDS = ["image" if index % 3 == 0 else "text" for index in range(len(LENGTHS))]
ASKED = "--world-size 4 --micro-batch 4 --accumulation 4"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "lengths.npy", LENGTHS)
    return tmp_path


def rows(folder: Path, name: str, lines: list[str]) -> str:
    (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return name


def test_what_the_terminal_shows(folder: Path, dsguard: Dsguard) -> None:
    outcome = dsguard(f"balance lengths.npy {ASKED}", folder)
    assert (outcome.code, outcome.err) == (0, "")
    compare(EXPECTED / "balance.txt", outcome.out)
    coloured = dsguard(f"balance lengths.npy {ASKED} --color always", folder).out
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == outcome.out
    assert coloured != outcome.out


def test_a_terminal_without_unicode(folder: Path) -> None:
    from dsguard.data.comparing import compare as compared
    from dsguard.data.sampler import BalancedBatchSampler
    from dsguard.data.shape import Shape
    from dsguard.render.balance_text import render_balance

    sampler = BalancedBatchSampler(LENGTHS, 4, 4, rank=0, world_size=4)
    told = compared(LENGTHS, sampler, Shape(4, 4, 4))
    assert render_balance("lengths.npy", told, color=False, unicode=False).isascii()


@pytest.mark.parametrize(
    ("name", "lines", "options"),
    [
        ("a.jsonl", [str(n) for n in LENGTHS], ""),
        ("a.jsonl", [json.dumps({"id": "x", "length": int(n)}) for n in LENGTHS], ""),
        ("a.jsonl", [json.dumps({"n": int(n), "length": 1}) for n in LENGTHS], "--field n"),
        ("a.jsonl", [json.dumps({"input_ids": [0] * (int(n) // 50)}) for n in LENGTHS], ""),
        ("a.csv", [str(n) for n in LENGTHS], ""),
        ("a.csv", ["id,num_tokens", *(f"x,{n}" for n in LENGTHS)], ""),
    ],
    ids=["numbers", "objects", "field", "tokens", "csv", "csv with a header"],
)
def test_files_that_hold_lengths(
    name: str, lines: list[str], options: str, folder: Path, dsguard: Dsguard
) -> None:
    outcome = dsguard(f"balance {rows(folder, name, lines)} {ASKED} -o json {options}", folder)
    assert outcome.code == 0, outcome.err
    expected = LENGTHS // 50 if "input_ids" in lines[0] else LENGTHS
    assert json.loads(outcome.out)["lengths"]["tokens"] == expected.sum()


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_tables(suffix: str, folder: Path, dsguard: Dsguard) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"length": LENGTHS, "tokens": [[1]] * len(LENGTHS), "kind": KINDS})
    path = folder / f"a.{suffix}"
    if suffix == "parquet":
        pytest.importorskip("pyarrow.parquet").write_table(table, path)
    else:
        with pyarrow.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table)
    line = f"balance {path} {ASKED} -o json --modality-field kind"
    told = json.loads(dsguard(line, folder).out)
    assert told["lengths"]["tokens"] == LENGTHS.sum()
    assert told["ways"]["balanced"]["audit"]["modalities_apart"] == 0
    of_lists = json.loads(dsguard(f"balance {path} {ASKED} -o json --field tokens", folder).out)
    assert of_lists["lengths"]["longest"] == 1


def test_modalities(folder: Path, dsguard: Dsguard) -> None:
    lines = [f"{n},{kind}" for n, kind in zip(LENGTHS, KINDS, strict=True)]
    name = rows(folder, "a.csv", ["length,kind", *lines])
    outcome = dsguard(f"balance {name} {ASKED} -o json --modality-field kind", folder)
    ways = json.loads(outcome.out)["ways"]
    assert ways["shuffled"]["audit"]["modalities_apart"] > 200
    assert ways["balanced"]["audit"]["modalities_apart"] == 0


def test_a_token_budget(folder: Path, dsguard: Dsguard) -> None:
    line = "balance lengths.npy --world-size 4 --accumulation 2 --max-tokens 16000 -o json"
    told = json.loads(dsguard(line, folder).out)
    assert told["micro_batch_size"] > 1
    padding = {way: report["audit"]["padding"] for way, report in told["ways"].items()}
    assert padding["balanced"] < padding["length-grouped"] / 2


def test_the_json_is_what_its_schema_says(folder: Path, dsguard: Dsguard) -> None:
    schema = json.loads((ROOT / "docs" / "balance-report-v1.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    for options in ("", "--attention-length 6000 --tolerance 0.1"):
        told = json.loads(dsguard(f"balance lengths.npy {ASKED} -o json {options}", folder).out)
        validator.validate(told)
        assert told["ways"]["shuffled"]["relative_time"] == 1
    del told["ways"]["balanced"]["audit"]["padding"]
    assert not validator.is_valid(told)


def test_batches_of_ones_own(folder: Path, dsguard: Dsguard) -> None:
    batches = [{"rank": n % 4, "samples": [2 * n, 2 * n + 1]} for n in range(11)]
    name = rows(folder, "batches.jsonl", [json.dumps(batch) for batch in batches])
    outcome = dsguard(f"balance lengths.npy {ASKED} --batches {name}", folder)
    assert outcome.code == 1
    assert (
        "yours: the run hangs: rank 3 has 2 batches, 1 fewer than others, "
        "which wait from batch 3 on" in outcome.out
    )
    even = rows(folder, "even.jsonl", [json.dumps(batch) for batch in batches[:8]])
    asked = "--world-size 4 --micro-batch 2 --accumulation 2"
    assert dsguard(f"balance lengths.npy {asked} --batches {even}", folder).code == 0


class Elements(HTMLParser):
    """The attributes of every element."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def test_the_page_needs_nothing_else(folder: Path, dsguard: Dsguard) -> None:
    outcome = dsguard(f"balance lengths.npy {ASKED} --html page.html", folder)
    assert (outcome.code, outcome.err) == (0, "wrote page.html\n")
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert len(page) < 200_000
    elements = Elements()
    elements.feed(page)
    assert not [a for _, a in elements.found if {"src", "href", "style", "onload"} & set(a)]
    (policy,) = [a["content"] for tag, a in elements.found if a.get("http-equiv")]
    assert str(policy).startswith("default-src 'none'; ")
    drawings = [a for tag, a in elements.found if tag == "svg" and a.get("class") == "drawn"]
    assert len(drawings) == 10
    assert all(a.get("aria-label") for a in drawings)
    # What the bars of one way add up to is its share of the longest epoch.
    assert page.count('class="f-useful"') == 1 + 3 + 3 * 4


def test_the_page_does_not_overwrite_what_was_read(folder: Path, dsguard: Dsguard) -> None:
    outcome = dsguard(f"balance lengths.npy {ASKED} --html lengths.npy", folder)
    assert outcome.code == 2
    assert np.load(folder / "lengths.npy").sum() == LENGTHS.sum()


@pytest.mark.parametrize(
    ("name", "text", "options", "words"),
    [
        ("none.jsonl", None, "", "cannot read none.jsonl: No such file or directory"),
        ("a.jsonl", "", "", "a.jsonl holds no lengths"),
        ("a.jsonl", "5\nx\n", "", "a.jsonl:2: no JSON"),
        ("a.jsonl", "5\n\n1.5\n", "", "a.jsonl:3: the line is 1.5, not a number of tokens"),
        ("a.jsonl", '{"n": 5}\n', "", "a.jsonl has no field length; it has n"),
        ("a.jsonl", '{"length": "5"}\n', "", 'a.jsonl:1: length is "5", not a number'),
        ("a.jsonl", '{"n": 5}\n', "--field m", "a.jsonl:1: m is null"),
        ("a.jsonl", "-5\n", "", "the length of sample 0 is -5"),
        ("a.jsonl", '{"length": 5}\n', "--modality-field k", "a.jsonl:1: there is no k"),
        ("a.csv", "id,n\nx,5\n", "", "a.csv has no field length; it has id, n"),
        ("a.npy", "5\n", "", "a.npy: "),
        ("a.jsonl", "5\n", "--drop-last", "say drop_last=False"),
        ("a.jsonl", "5\n7\n", "--max-tokens 6", "more than max_tokens=6"),
        ("a.jsonl", "5\n7\n", "--batches a.jsonl", "a.jsonl:1: no batch of a rank"),
    ],
)
def test_files_that_cannot_be_used(
    name: str, text: str | None, options: str, words: str, tmp_path: Path, dsguard: Dsguard
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text, encoding="utf-8")
    outcome = dsguard(f"balance {name} {ASKED} {options}", tmp_path)
    assert (outcome.code, outcome.out) == (3, "")
    assert words in outcome.err


def test_a_rank_that_is_none(folder: Path, dsguard: Dsguard) -> None:
    name = rows(folder, "batches.jsonl", ['{"rank": 4, "samples": [1]}'])
    outcome = dsguard(f"balance lengths.npy {ASKED} --batches {name}", folder)
    assert outcome.code == 3
    assert "batches.jsonl:1: rank 4 is none of 4 ranks\n  help: say --world-size 5" in outcome.err


def test_a_size_is_needed(folder: Path, dsguard: Dsguard) -> None:
    outcome = dsguard("balance lengths.npy --world-size 4", folder)
    assert outcome.code == 2
    assert "--max-tokens" in outcome.err


def test_an_environment_without_numpy(
    folder: Path, dsguard: Dsguard, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = importlib.import_module("dsguard.data")
    for name in [name for name in sys.modules if name.startswith("dsguard.data.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "numpy")
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "numpy" or name.startswith("numpy."):
            raise ModuleNotFoundError("No module named 'numpy'", name="numpy")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    outcome = dsguard(f"balance lengths.npy {ASKED}", folder)
    assert (outcome.code, outcome.out) == (3, "")
    assert outcome.err == (
        "Error: dsguard balance needs numpy\n  help: pip install 'dsguard[data]'\n"
    )
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'dsguard\[data\]'"):
        package.audit  # noqa: B018
