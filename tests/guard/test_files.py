"""Files that are in the way of the guard, and a process that shares one: the run goes on."""

from __future__ import annotations

import atexit
import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from dsguard import guard
from dsguard.facts.contract import CHECKPOINT_NAME
from dsguard.reading.load import MAX_BYTES
from dsguard.runtime.checkpoints import origins_of

torch = pytest.importorskip("torch")
from tests.guard.stub import StubEngine, train  # noqa: E402

pytestmark = pytest.mark.deepspeed


def test_a_record_with_an_impossible_name_is_a_fault_and_no_error(tmp_path: Path) -> None:
    engine = StubEngine()
    watched = guard(engine, record=tmp_path / ("x" * 300))
    train(engine, 8)
    assert [found.code for found in watched.findings] == ["DSG900"]
    assert "File name too long" in watched.findings[0].message
    assert watched.summary().windows == {4: 2}, "the guard goes on"


def test_a_record_that_cannot_be_looked_at_is_a_fault_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        for name in ("is_dir", "mkdir", "open"):
            patch.setattr(Path, name, denied)
        watched = guard(StubEngine(), record=tmp_path / "closed" / "run.jsonl")
    assert [found.code for found in watched.findings] == ["DSG900"]


def test_a_forked_process_ends_no_run(tmp_path: Path) -> None:
    record = tmp_path / "run.jsonl"
    engine = StubEngine()
    watched = guard(engine, record=record, on_violation="record")
    train(engine, 2)
    child = os.fork()
    if child == 0:
        try:
            atexit._run_exitfuncs()  # what the end of a process does
            watched.close()
        finally:
            os._exit(len(watched.findings))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    train(engine, 2)
    watched.close()
    assert [json.loads(line)["kind"] for line in record.read_text().splitlines()] == [
        "header",
        "step",
        "summary",
    ]


def test_a_checkpoint_that_takes_no_file_of_the_guard(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = StubEngine()
    engine.global_rank, engine.global_steps = 0, 1
    (tmp_path / "tag" / CHECKPOINT_NAME).mkdir(parents=True)
    original = StubEngine.save_checkpoint
    StubEngine.save_checkpoint = lambda *_, **__: None  # type: ignore[method-assign]
    try:
        watched = guard(engine)
        for _ in range(3):
            train(engine, 4)
            engine.save_checkpoint(str(tmp_path), tag="tag")  # type: ignore[call-arg]
    finally:
        StubEngine.save_checkpoint = original  # type: ignore[method-assign]
    assert [found.code for found in watched.findings] == ["DSG900"]
    assert "the checkpoint is whole" in watched.findings[0].help
    assert watched.summary().windows == {4: 3}, "the guard goes on"
    assert len(caplog.records) == 1
    assert not list((tmp_path / "tag").glob(".*"))


@pytest.mark.parametrize("kind", ["pipe", "huge", "deep", "number", "folder", "bytes"])
def test_what_stands_in_for_the_file_of_a_checkpoint(kind: str, tmp_path: Path) -> None:
    file = tmp_path / CHECKPOINT_NAME
    if kind == "pipe":
        os.mkfifo(file)  # opened for reading it would wait for ever
    elif kind == "folder":
        file.mkdir()
    elif kind == "huge":
        with file.open("wb") as made:
            made.truncate(MAX_BYTES + 1)
    else:
        texts = {"deep": b"[" * 100_000, "number": b'{"guard": {"pending_micro_batches": []}}'}
        file.write_bytes(texts.get(kind, b"\xff\xfe"))
    assert origins_of(tmp_path, SimpleNamespace()) is None
    origins = origins_of(tmp_path, {"ds_config": {"train_batch_size": 8}})
    assert origins is not None
    assert origins.contract.facts["train_batch_size"].value == 8
