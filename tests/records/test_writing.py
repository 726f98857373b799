"""What a recorder writes, where it goes, and that its troubles stay its own."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema
import pytest

from dsguard.runtime.sinks import sinks_of
from dsguard.runtime.tokens import Tokens, count_tokens
from tests.conftest import ROOT
from tests.records.conftest import Recording

Start = Callable[..., Recording]

SCHEMA = json.loads((ROOT / "docs" / "record-v1.schema.json").read_text(encoding="utf-8"))


def lines(path: Path) -> list[dict[str, Any]]:
    """The lines of a file, each of them valid."""
    told = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in told:
        jsonschema.validate(line, SCHEMA, jsonschema.Draft202012Validator)
    return told


def finding(message: str = "a step on 2 micro-batches", name: str = "train.py") -> Any:
    from dsguard.model.finding import Confidence, Consequence, Finding, Severity
    from dsguard.model.source import Location, Source, Span

    return Finding(
        "DSG903",
        "step-off-boundary",
        Severity.ERROR,
        Confidence.HIGH,
        Consequence.DIFFERS,
        message,
        Location(Source(name, "import torch\nengine.step()\n"), Span(13, 26)),
    )


def test_a_header_then_steps_then_a_summary(recording: Start, tmp_path: Path) -> None:
    run = recording(tmp_path / "run.jsonl")
    run.step(2)
    run.step(2, applied=False)
    run.close(["steps-skipped"])
    header, first, second, summary = lines(tmp_path / "run.jsonl")
    assert header["kind"] == "header"
    assert header["started_at"].endswith("+00:00")
    expected = {"step": 1, "micro_batches": 2, "expected": 2, "samples": 4, "applied": True}
    assert expected.items() <= first.items()
    assert (first["learning_rate"], first["grad_norm"], first["tokens"]) == (1e-3, 2.5, None)
    assert (second["step"], second["applied"]) == (2, False)
    assert second["seconds"] >= first["seconds"] >= 0
    assert {
        "kind": "summary",
        "finished": True,
        "optimizer_steps": 2,
        "skipped_steps": 1,
    }.items() <= (summary.items())
    assert (summary["windows"], summary["counts"]) == ({"2": 2}, {"steps-skipped": 1})


def test_the_schema_refuses_what_no_writer_writes(recording: Start, tmp_path: Path) -> None:
    run = recording(tmp_path / "run.jsonl")
    run.step()
    _, step = lines(tmp_path / "run.jsonl")
    for broken in ({**step, "grad_norm": "inf"}, {**step, "kind": "other"}, {"kind": "step"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(broken, SCHEMA, jsonschema.Draft202012Validator)


def test_a_line_is_on_disk_when_its_step_is_over(recording: Start, tmp_path: Path) -> None:
    run = recording(tmp_path / "run.jsonl")
    run.step()
    assert len(lines(tmp_path / "run.jsonl")) == 2


def test_what_holds_before_the_step_is_recorded(recording: Start, tmp_path: Path) -> None:
    """The scheduler and the scaler move in between."""
    run = recording(tmp_path / "run.jsonl")
    run.gauges.rate, run.gauges.scale = 0.1, 1024.0
    run.windows.backward(1)
    run.recorder.stepping()
    run.gauges.rate, run.gauges.scale = 0.2, 512.0
    run.recorder.step(run.windows.optimizer_step(False))
    step = lines(tmp_path / "run.jsonl")[1]
    assert (step["learning_rate"], step["loss_scale"]) == (0.1, 1024.0)


def test_other_ranks_write_beside_it(recording: Start, tmp_path: Path) -> None:
    for rank in range(2):
        run = recording(tmp_path / "runs" / "run.v1.jsonl", rank=rank, world_size=2)
        run.step()
        run.close()
    written = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert written == ["run.v1.jsonl", "run.v1.rank1.jsonl"]
    assert [line["rank"] for line in lines(tmp_path / "runs" / "run.v1.rank1.jsonl")] == [1, 1, 1]


@pytest.mark.parametrize("torn", ["", '{"kind":"step","st'])
def test_a_file_that_is_there_is_continued(recording: Start, tmp_path: Path, torn: str) -> None:
    path = tmp_path / "run.jsonl"
    run = recording(path)
    run.step()
    run.recorder._sinks[0].drop()  # as a killed process leaves it
    with path.open("a") as file:
        file.write(torn)
    again = recording(path)
    again.step()
    again.close()
    text = path.read_text().splitlines()
    assert [json.loads(line)["kind"] for line in text if line != torn] == [
        *("header", "step"),
        *("header", "step", "summary"),
    ]


def test_a_finding_stands_at_the_step_it_was_made_in(recording: Start, tmp_path: Path) -> None:
    run = recording(tmp_path / "run.jsonl")
    run.findings.append(finding("before the first step"))
    run.step()
    run.step()
    run.findings.append(finding())
    run.step()
    run.findings.append(finding("at the end"))
    run.close()
    told = lines(tmp_path / "run.jsonl")[1:]
    assert [[found["message"] for found in line["findings"]] for line in told] == [
        ["before the first step"],
        [],
        ["a step on 2 micro-batches"],
        ["at the end"],
    ]
    place = {"file": "train.py", "line": 2, "help": None, "severity": "error", "code": "DSG903"}
    assert place.items() <= told[0]["findings"][0].items()


def test_a_path_that_is_no_text_can_be_written(recording: Start, tmp_path: Path) -> None:
    run = recording(tmp_path / "run.jsonl")
    run.findings.append(finding(name=os.fsdecode(b"tr\xffain.py")))
    run.step()
    assert lines(tmp_path / "run.jsonl")[1]["findings"][0]["file"] == "tr\\udcffain.py"


@pytest.mark.parametrize(
    ("norm", "written"), [(math.inf, "Infinity"), (-math.inf, "-Infinity"), (math.nan, "NaN")]
)
def test_what_is_not_finite_is_a_word(
    recording: Start, tmp_path: Path, norm: float, written: str
) -> None:
    run = recording(tmp_path / "run.jsonl")
    run.gauges.norm = norm
    run.step()
    assert lines(tmp_path / "run.jsonl")[1]["grad_norm"] == written


class OnADevice:
    """A one-element tensor of a device that has not computed it yet; reading it would wait."""

    device = SimpleNamespace(type="cuda")

    def item(self) -> float:
        raise AssertionError("waited for the device")

    __float__ = item


def test_a_norm_on_a_device_is_waited_for_by_nobody(
    recording: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.jsonl"
    run = recording(path)
    arrived: list[Any] = []
    later = SimpleNamespace(
        read=lambda tensor, then: arrived.append(then) or True, arrive=lambda: None
    )
    monkeypatch.setattr(run.recorder, "_later", later)
    run.gauges.norm = OnADevice()
    run.step()
    run.step()
    assert len(lines(path)) == 1
    later.arrive = lambda: arrived[0](0.5)
    run.step()
    assert [line["grad_norm"] for line in lines(path)[1:]] == [0.5]
    later.arrive = lambda: None
    for _ in range(20):
        run.step()
    # A number that never comes holds up at most eight records.
    assert len(lines(path)) == 1 + 23 - 8
    run.close()
    told = lines(path)
    assert [line["step"] for line in told[1:-1]] == list(range(1, 24))
    assert told[2]["grad_norm"] is None


def test_a_full_disk_ends_the_record_and_nothing_else(recording: Start, tmp_path: Path) -> None:
    taken: list[Any] = []
    run = recording([tmp_path / "run.jsonl", taken.append])
    run.step()
    full = open("/dev/full", "ab", buffering=0)  # noqa: SIM115
    run.recorder._sinks[0]._file.close()
    run.recorder._sinks[0]._file = full
    for _ in range(3):
        run.step()
    run.close()
    assert run.troubles == [
        f"{tmp_path / 'run.jsonl'}: OSError: [Errno 28] No space left on device"
    ]
    assert [record["step"] for record in taken] == [1, 2, 3, 4]
    assert full.closed


def test_a_nearly_full_disk_takes_a_part_and_is_noticed(recording: Start, tmp_path: Path) -> None:
    run = recording(tmp_path / "run.jsonl")

    class Nearly:
        left = 20

        def write(self, data: bytes) -> int:
            if not self.left:
                raise OSError(28, "No space left on device")
            taken, self.left = min(self.left, len(data)), 0
            return taken

        def fileno(self) -> int:
            return 0

        def close(self) -> None: ...

    run.recorder._sinks[0]._file = Nearly()
    run.step()
    assert len(run.troubles) == 1
    assert not run.recorder.wanted


def test_a_file_that_was_removed_is_noticed(recording: Start, tmp_path: Path) -> None:
    run = recording(tmp_path / "runs" / "run.jsonl")
    run.step()
    (tmp_path / "runs" / "run.jsonl").unlink()
    (tmp_path / "runs").rmdir()
    for _ in range(20):
        run.step()
    run.close()
    assert run.troubles == [f"{tmp_path / 'runs' / 'run.jsonl'}: FileNotFoundError: it was removed"]
    assert not (tmp_path / "runs").exists()


def test_a_place_that_cannot_be_written_is_told_once(recording: Start, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    run = recording(tmp_path / "file" / "run.jsonl")
    run.step()
    run.close()
    (trouble,) = run.troubles
    assert "FileExistsError" in trouble or "NotADirectoryError" in trouble


def test_two_guards_do_not_write_to_one_file(recording: Start, tmp_path: Path) -> None:
    one, two = recording(tmp_path / "run.jsonl"), recording(tmp_path / "run.jsonl")
    one.step()
    two.step()
    assert two.troubles == [
        f"{tmp_path / 'run.jsonl'}: FileExistsError: another guard of this process writes to it"
    ]
    one.close()
    assert [line["kind"] for line in lines(tmp_path / "run.jsonl")] == ["header", "step", "summary"]
    three = recording(tmp_path / "run.jsonl")
    assert three.troubles == []


def test_a_function_that_raises_is_asked_no_more(recording: Start, tmp_path: Path) -> None:
    calls = []

    def keep(record: dict[str, Any]) -> None:
        calls.append(record)
        raise KeyError("mine")

    run = recording([keep, tmp_path / "run.jsonl"])
    run.step()
    run.step()
    assert len(calls) == 1
    assert run.troubles == ["keep(): KeyError: 'mine'"]
    assert len(lines(tmp_path / "run.jsonl")) == 3


def test_gauges_that_fail_end_the_records(recording: Start, tmp_path: Path) -> None:
    run = recording(tmp_path / "run.jsonl")
    run.gauges.grad_norm = lambda: 1 / 0  # type: ignore[method-assign,assignment]
    run.step()
    run.step()
    assert run.troubles == [f"{tmp_path / 'run.jsonl'}: ZeroDivisionError: division by zero"]


def test_a_function_takes_what_the_file_takes(recording: Start, tmp_path: Path) -> None:
    taken: list[Any] = []
    run = recording([taken.append, tmp_path / "run.jsonl"])
    run.findings.append(finding())
    run.step()
    assert taken == lines(tmp_path / "run.jsonl")[1:]


class Scalars:
    def __init__(self) -> None:
        self.told: list[tuple[str, float, int]] = []

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.told.append((name, value, step))


def test_tensorboard_gets_numbers_only(recording: Start) -> None:
    writer = Scalars()
    run = recording(writer)
    run.gauges.norm = math.inf
    run.findings.append(finding())
    run.step()
    run.step(applied=False)
    assert ("dsguard/micro_batches", 1.0, 1) in writer.told
    assert ("dsguard/grad_norm", math.inf, 1) in writer.told
    assert ("dsguard/skipped", 1.0, 2) in writer.told
    assert ("dsguard/findings", 1.0, 2) in writer.told
    assert not [name for name, _, _ in writer.told if "tokens" in name]
    assert recording(other := Scalars(), rank=1, world_size=2).step() is None
    assert other.told == []


def test_deepspeeds_monitor_comes_first(recording: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Any] = []
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(run=None))
    run = recording("monitor")
    run.gauges.tracker = (SimpleNamespace(write_events=events.extend), 64)
    run.step()
    run.close()
    assert ("dsguard/learning_rate", 1e-3, 64) in events
    assert run.troubles == []


def test_wandb_keeps_its_own_steps(recording: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[Any] = []
    axes: list[Any] = []
    active = SimpleNamespace(
        log=lambda values, commit: logged.append((values, commit)),
        define_metric=lambda *names, **axis: axes.append((names, axis)),
    )
    wandb = SimpleNamespace(run=None)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    run = recording("monitor")
    run.step()
    wandb.run = active  # as Trainer starts it, after the guard
    run.step()
    run.step()
    run.close()
    assert [(values["dsguard/step"], commit) for values, commit in logged] == [
        (2, False),
        (3, False),
    ]
    assert axes == [(("dsguard/step",), {}), (("dsguard/*",), {"step_metric": "dsguard/step"})]
    assert run.troubles == []


def test_mlflow_is_not_waited_for(recording: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[Any] = []
    mlflow = SimpleNamespace(
        active_run=lambda: object(),
        log_metrics=lambda values, step, synchronous: logged.append((step, synchronous)),
    )
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    run = recording("monitor")
    run.step()
    assert logged == [(1, False)]


def test_a_tracker_that_nobody_uses_is_told(
    recording: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("wandb", "mlflow"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    run = recording("monitor")
    run.step()
    assert run.troubles == []
    run.close()
    (trouble,) = run.troubles
    assert "was ever active" in trouble
    assert not {"wandb", "mlflow", "tensorboard"} & set(sys.modules)


@pytest.mark.parametrize(
    ("record", "words"),
    [("", "record is a path"), (3, "record is a path"), ([None], "record is a path")],
)
def test_what_is_no_place_for_records_is_refused(record: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        sinks_of(record)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is a folder: name a file in it"):
        sinks_of(tmp_path)


torch = pytest.importorskip("torch")


def test_tokens_are_counted_by_shape_and_mask() -> None:
    ids = torch.zeros(2, 8, dtype=torch.int64)
    mask = torch.ones(2, 8, dtype=torch.int64)
    mask[1, 5:] = 0
    assert count_tokens((), {"input_ids": ids, "attention_mask": mask}) == Tokens(16, 13)
    assert count_tokens(({"input_ids": ids},), {}) == Tokens(16, None)
    assert count_tokens((), {"inputs_embeds": torch.zeros(2, 8, 4)}) == Tokens(16, None)
    assert count_tokens((), {"pixel_values": ids, "labels": ids}) == Tokens(16, None)
    assert count_tokens((), {"pixel_values": ids, "labels": ids[0]}) == Tokens(None, None)
    assert count_tokens((ids, ids), {}) == Tokens(None, None)
    seen = {"input_ids": ids, "attention_mask": torch.zeros(2, 1, 8, 8)}
    assert count_tokens((), seen) == Tokens(16, None)
    causal = {"input_ids": ids, "attention_mask": torch.zeros(2, 8)}
    assert count_tokens((), causal) == Tokens(16, None)
    away = {"input_ids": ids, "attention_mask": mask.to("meta")}
    assert count_tokens((), away) == Tokens(16, None)


def test_tokens_of_a_window_are_added_up(recording: Start, tmp_path: Path) -> None:
    run = recording(tmp_path / "run.jsonl")
    run.step(3, batch={"input_ids": torch.zeros(2, 8), "attention_mask": torch.ones(2, 8).long()})
    run.step(2, batch={"input_ids": torch.zeros(2, 8)})
    run.step(2)
    told = lines(tmp_path / "run.jsonl")[1:]
    assert [(line["tokens"], line["tokens_unpadded"]) for line in told] == [
        (48, 48),
        (32, None),
        (None, None),
    ]
