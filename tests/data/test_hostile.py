"""Numbers and files for ``dsguard balance`` that are too large, too many, or not there."""

from __future__ import annotations

import os
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from dsguard.data import files
from dsguard.data.files import DataFileError, read_samples
from dsguard.data.lengths import LONGEST, lengths_array
from tests.conftest import Dsguard

HUGE = "1" + "0" * 400
USUAL = "--world-size 4 --micro-batch 4"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "lengths.npy", np.arange(1, 101))
    return tmp_path


@pytest.mark.parametrize(
    ("options", "named", "limit"),
    [
        (f"--world-size {HUGE} --micro-batch 1", "--world-size", "65536"),
        ("--world-size 65537 --micro-batch 1", "--world-size", "65536"),
        (f"--world-size 1 --micro-batch {HUGE}", "--micro-batch", "65536"),
        (f"{USUAL} --accumulation {HUGE}", "--accumulation", "10000"),
        (f"{USUAL} --max-tokens {HUGE}", "--max-tokens", "1000000000000"),
        (f"{USUAL} --seed {HUGE}", "--seed", str(2**64 - 1)),
        (f"{USUAL} --attention-length nan", "--attention-length", "1000000000000"),
        (f"{USUAL} --attention-length 1e400", "--attention-length", "1000000000000"),
        (f"{USUAL} --attention-length 1e-300", "--attention-length", "1"),
        (f"{USUAL} --tolerance nan", "--tolerance", "0"),
        (f"{USUAL} --max-tokens 500 --tolerance inf", "--tolerance", "finite"),
        ("--world-size 4096 --micro-batch 1024 --accumulation 2", "--accumulation", "4194304"),
    ],
)
def test_numbers_that_no_training_has(
    options: str, named: str, limit: str, folder: Path, dsguard: Dsguard
) -> None:
    outcome = dsguard(f"balance lengths.npy {options}", folder)
    assert (outcome.code, outcome.out) == (2, "")
    said = " ".join(outcome.err.split())
    assert named in said
    assert limit in said


def test_every_modality_fills_a_step_of_its_own(folder: Path, dsguard: Dsguard) -> None:
    rows = "".join(f'{{"length": 1, "kind": {number}}}\n' for number in range(60))
    (folder / "kinds.jsonl").write_text(rows)
    options = "--world-size 65536 --micro-batch 64 --modality-field kind"
    outcome = dsguard(f"balance kinds.jsonl {options}", folder)
    assert outcome.code == 2
    assert "repeat" in outcome.err


def test_numbers_at_their_limit(folder: Path, dsguard: Dsguard) -> None:
    options = (
        f"{USUAL} --max-tokens 1000000000000 --seed {2**64 - 1} --attention-length 1e12 "
        "--tolerance 1e308"
    )
    assert dsguard(f"balance lengths.npy {options}", folder).code == 0
    assert dsguard(f"balance lengths.npy {USUAL} --tolerance inf", folder).code == 0


def npy(shape: str) -> bytes:
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.ljust(117) + b"\n" + bytes(80)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", b"3\n1000000000000000000\n", "the length of sample 1 is 1000000000000000000"),
        ("a.jsonl", b"1e400\n", "not a number of tokens"),
        ("a.jsonl", HUGE.encode(), "whole numbers of tokens"),
        ("a.jsonl", b"9" * 5_000, "no JSON"),
        ("a.jsonl", b"NaN\n", "not a number of tokens"),
        ("a.jsonl", b"-3\n", "the length of sample 0 is -3"),
        ("a.jsonl", b"[" * 100_000, "no JSON"),
        ("a.csv", b"length\n1e400\n", "not a number of tokens"),
        ("a.csv", b"length\n" + b"x" * 1_000_000, "field larger than field limit"),
        ("a.csv", b"length\n" + b"9" * 30, "whole numbers of tokens"),
        ("a.npy", npy("(100000000000000,)"), "cut off: it holds 80 bytes"),
        ("a.npy", npy(f"(1{'0' * 30},)"), "cut off: it holds 80 bytes"),
        ("a.npy", npy("(-5,)"), "a.npy: "),
        ("a.npy", b"\x93NUMPY", "a.npy: "),
        ("a.npy", b"\x93NUMPY\x09\x00" + bytes(99), "a.npy: "),
    ],
)
def test_files_that_hold_no_lengths(
    name: str, content: bytes, said: str, folder: Path, dsguard: Dsguard
) -> None:
    (folder / name).write_bytes(content)
    outcome = dsguard(f"balance {name} {USUAL}", folder)
    assert (outcome.code, outcome.out) == (3, "")
    assert said in outcome.err
    assert "crashed" not in outcome.err


@pytest.mark.parametrize(
    "lengths", [np.array([2**64 - 1], np.uint64), np.array([1e300]), [LONGEST + 1]]
)
def test_lengths_whose_sums_would_not_be_exact(lengths: object) -> None:
    with pytest.raises(ValueError, match=f"above {LONGEST}"):
        lengths_array(lengths)
    assert lengths_array([LONGEST]).tolist() == [LONGEST]


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_a_line_that_is_none(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LONGEST_LINE", 10_000)
    (tmp_path / name).write_text("length\n" * (name == "a.csv") + "1" * 5_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(DataFileError, match="a line of more than 10000 characters"):
            read_samples(tmp_path / name, None, None)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_a_sample_that_no_array_can_hold(folder: Path, dsguard: Dsguard) -> None:
    (folder / "own.jsonl").write_text(f'{{"rank": 0, "samples": [{HUGE}]}}\n')
    outcome = dsguard(f"balance lengths.npy {USUAL} --batches own.jsonl", folder)
    assert outcome.code == 3
    assert "samples are indices into the lengths" in outcome.err


def test_a_message_names_some_of_many_ranks(folder: Path, dsguard: Dsguard) -> None:
    (folder / "own.jsonl").write_text('{"rank": 0, "samples": [1]}\n')
    asked = "--world-size 1000 --micro-batch 1 --batches own.jsonl"
    outcome = dsguard(f"balance lengths.npy {asked}", folder)
    assert outcome.code == 3
    assert "no batches for rank 1, 2, 3" in outcome.err
    assert "and 979 more" in outcome.err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have names on Unix only")
def test_a_pipe_is_not_waited_for(folder: Path, dsguard: Dsguard) -> None:
    os.mkfifo(folder / "pipe.jsonl")
    outcome = dsguard(f"balance pipe.jsonl {USUAL}", folder)
    assert (outcome.code, outcome.out) == (3, "")
    assert "is not a regular file" in outcome.err
    outcome = dsguard(f"balance lengths.npy {USUAL} --batches pipe.jsonl", folder)
    assert (outcome.code, outcome.out) == (3, "")
