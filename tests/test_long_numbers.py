"""Numbers of more digits than Python converts: an answer or a usage error, never a crash."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dsguard.cli.ranks import seat_of
from dsguard.facts import target as targets
from dsguard.facts.target import TargetError, resolve_target
from dsguard.frontends import installed
from dsguard.frontends.pinned import pinned
from dsguard.model.digits import whole_number
from dsguard.model.source import Source
from dsguard.reading.errors import HjsonCrashError
from dsguard.reading.hjson import parse
from tests.conftest import Dsguard

LONG = "9" * 5000
CONFIG = '{"train_batch_size": 8, "optimizer": {"type": "Adam", "params": {"betas": [0, 0]}}}'


@pytest.mark.parametrize(
    ("text", "number"),
    [("8", 8), ("\u0664", 4), ("\u00b2", None), ("-1", None), ("", None), (LONG, None)],
)
def test_a_whole_number(text: str, number: int | None) -> None:
    assert whole_number(text) == number


@pytest.mark.parametrize("release", [LONG, f"0.{LONG}.1", f"0.19.8+{LONG}"])
def test_a_target(release: str) -> None:
    with pytest.raises(TargetError, match="is not a DeepSpeed version"):
        resolve_target(release)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("requirements.txt", f"deepspeed=={LONG}\n"),
        ("uv.lock", f'[[package]]\nname = "deepspeed"\nversion = "{LONG}"\n'),
        ("pyproject.toml", f'[project]\nname = "x"\ndependencies = ["deepspeed=={LONG}"]\n'),
    ],
)
def test_a_pin(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / name).write_text(text)
    assert pinned("deepspeed", tmp_path) is None


def test_an_installed_release(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installed, "_in_folders", lambda package: LONG)
    assert targets.installed("deepspeed") is None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (f'target = "{LONG}"', "is not a DeepSpeed version"),
        (f'required-version = ">={LONG}"', "is no version specifier"),
    ],
)
def test_settings(settings: str, words: str, dsguard: Dsguard, tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(CONFIG)
    (tmp_path / "dsguard.toml").write_text(settings)
    outcome = dsguard("check ds.json", tmp_path)
    assert outcome.code == 2
    assert words in outcome.err


@pytest.mark.parametrize("given", [f'devices="{LONG}", num_nodes=2', f'num_nodes="{LONG}"'])
def test_the_arguments_of_a_trainer(given: str, dsguard: Dsguard, tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(CONFIG)
    (tmp_path / "train.py").write_text(
        "import lightning as L\nfrom lightning.pytorch.strategies import DeepSpeedStrategy\n"
        f"L.Trainer({given}, strategy=DeepSpeedStrategy(config='ds.json'))\n"
    )
    outcome = dsguard("check ds.json -- python train.py", tmp_path)
    assert outcome.code == 0
    assert "world-size-unknown" in outcome.out


def test_a_digit_that_is_no_number(dsguard: Dsguard, tmp_path: Path) -> None:
    outcome = dsguard(
        "check -- accelerate launch --use_deepspeed --gradient_accumulation_steps \u00b2 t.py",
        tmp_path,
    )
    assert outcome.code == 1
    assert "cannot be '\u00b2'" in outcome.out


@pytest.mark.parametrize("length", [LONG, "\u00b2"])
def test_the_lengths_of_a_data_set(length: str, dsguard: Dsguard, tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    (tmp_path / "l.csv").write_text(f"length\n{length}\n", encoding="utf-8")
    outcome = dsguard("balance l.csv --world-size 2 --micro-batch 1", tmp_path)
    assert outcome.code == 3
    assert "not a number of tokens" in outcome.err


def test_the_rank_of_a_process() -> None:
    assert seat_of({"RANK": LONG, "WORLD_SIZE": "2"}) is None
    assert seat_of({"RANK": "1", "WORLD_SIZE": "2"}) is not None


def test_a_pointer() -> None:
    document = parse(Source("ds.json", CONFIG))
    assert document.get(f"/optimizer/params/betas/{LONG}") is None
    assert document.get("/optimizer/params/betas/\u0661") is not None


@pytest.mark.skipif(not hasattr(sys, "set_int_max_str_digits"), reason="Python has no limit")
def test_the_limit_does_not_depend_on_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        with pytest.raises(HjsonCrashError, match="too large"):
            parse(Source("ds.json", f'{{"train_batch_size": {LONG}}}'))
    finally:
        sys.set_int_max_str_digits(before)
    (tmp_path / "ds.json").write_text(CONFIG)
    monkeypatch.setenv("PYTHONINTMAXSTRDIGITS", "0")
    words = ["check", "ds.json", "--target", LONG]
    run = subprocess.run(
        [sys.executable, "-m", "dsguard", *words], cwd=tmp_path, capture_output=True, check=False
    )
    assert run.returncode == 2
