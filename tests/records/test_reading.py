"""Reading records: what is tolerated, what is refused, and what a run comes to."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path

import pytest

from dsguard.model.record import Line
from dsguard.records.buckets import buckets, edges
from dsguard.records.columns import UNKNOWN
from dsguard.records.overview import overview
from dsguard.records.reading import RecordError, read_sessions
from dsguard.records.report import Overview
from dsguard.records.run import read_run
from tests.calls import calls
from tests.conftest import Dsguard
from tests.records.made import found, header, step, summary, write


def told(path: Path) -> Overview:
    return overview(read_run(path))


def test_a_whole_record(tmp_path: Path) -> None:
    steps = [step(1), step(2, micro_batches=2, samples=4), step(3, applied=False)]
    path = write(tmp_path / "run.jsonl", header(), *steps, summary(pending_micro_batches=1))
    run = told(path)
    assert (run.steps, run.skipped_steps, run.micro_batches) == (3, 1, 10)
    assert (run.off_steps, run.pending_micro_batches, run.samples) == (1, 1, 20)
    assert [(w.micro_batches, w.expected, w.steps, w.first_step) for w in run.windows] == [
        (4, 4, 2, 1),
        (2, 4, 1, 2),
    ]
    assert run.padding == pytest.approx(96 / 4096)
    assert run.notes == []
    assert run.starts[0].finished is True
    assert run.step_seconds is not None
    assert run.step_seconds.mean == 0.5


@pytest.mark.parametrize("torn", ['{"kind":"step","step":2,"ra', "\x00\x00\x00", '{"kind":'])
def test_a_cut_off_last_line_is_tolerated(tmp_path: Path, torn: str) -> None:
    run = told(write(tmp_path / "run.jsonl", header(), step(1), torn=torn))
    assert run.steps == 1
    assert run.starts[0].finished is None
    assert run.notes == [
        "the last line of rank 0 is cut off and left out",
        "no summary of rank 0: killed, or still running",
    ]


def test_a_whole_last_line_without_its_end_counts(tmp_path: Path) -> None:
    torn = json.dumps(asdict(step(2)))
    run = told(write(tmp_path / "run.jsonl", header(), step(1), torn=torn))
    assert run.steps == 2


def test_a_killed_run_that_was_started_again(tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", header(), step(1), step(2), torn='{"kind":"st\n')
    later = header(started_at="2026-03-01T09:00:00.000+00:00")
    again = [later, step(1), step(2), summary()]
    with path.open("a") as file:
        file.writelines(json.dumps(asdict(line)) + "\n" for line in again)
    run = read_run(path)
    assert list(run.position) == [1, 2, 3, 4]
    assert [s.first_step for s in overview(run).starts] == [1, 3]
    assert run.notes == (
        "start 1: the last line of rank 0 is cut off and left out",
        "start 1: no summary of rank 0: killed, or still running",
    )


def test_steps_that_go_on_after_a_resume_keep_their_numbers(tmp_path: Path) -> None:
    later = header(started_at="2026-03-01T09:00:00.000+00:00")
    path = write(tmp_path / "run.jsonl", header(), step(7), step(8), later, step(9), step(20))
    assert list(read_run(path).position) == [7, 8, 9, 20]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", None, "is empty"),
        ("\n\n", None, "is empty"),
        ('{"a": 1}', 1, "is no line of a record"),
        ("[1]", 1, "is no line of a record"),
        ("loss: 1.5", 1, "is no JSON"),
        ('{"kind": "header", "version": 2}', 1, "is a record of version 2"),
        ('{"kind": "end"}', 1, "'header', 'step', 'summary'"),
        ("STEP", 1, "a record begins with its header"),
        ("HEADER\nSTEP\nloss: 1.5\nSTEP", 3, "is no JSON"),
        ("HEADER\nloss: 1.5\nloss: 1.4", 2, "is no JSON"),
        ("HEADER\nSUMMARY\nSTEP", 3, "goes on after its summary"),
        ("HEADER\n\nWRONG\nSTEP", 3, "micro_batches: Input should be a valid integer"),
        ("HUGE\n", 2, "too large"),
        ("NOON\nSTEP", 1, "is no time with a zone"),
    ],
)
def test_what_is_no_record_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int | None, words: str
) -> None:
    wrong = {**asdict(step(1)), "micro_batches": "many"}
    huge = json.dumps(asdict(header())) + "\n" + json.dumps({**asdict(step(1)), "step": 2**70})
    lines = {
        "HEADER": json.dumps(asdict(header())),
        "STEP": json.dumps(asdict(step(1))),
        "SUMMARY": json.dumps(asdict(summary())),
        "WRONG": json.dumps(wrong),
        "HUGE": huge,
        "NOON": json.dumps(asdict(header(started_at="noon"))),
    }
    for name, content in lines.items():
        text = text.replace(name, content)
    path = tmp_path / "run.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecordError) as error:
        read_sessions(path)
    assert words in str(error.value)
    assert error.value.line == line
    assert str(error.value).startswith(f"{path}:{line}: " if line else f"{path}: ")


def test_ranks_are_added_up_and_compared(tmp_path: Path) -> None:
    for rank, tokens in enumerate((1000, 3000)):
        lines = [step(n, rank=rank, tokens=tokens, samples=8 + rank) for n in (1, 2)]
        name = "run.jsonl" if rank == 0 else f"run.rank{rank}.jsonl"
        head = header(rank=rank, world_size=2, data_parallel_size=2)
        write(tmp_path / name, head, *lines, summary(rank=rank))
    run = told(tmp_path / "run.jsonl")
    assert [(size.samples, size.steps) for size in run.samples_per_step] == [(17, 2)]
    assert [(one.rank, one.tokens, one.share) for one in run.rank_tokens] == [
        (0, 2000, 0.5),
        (1, 6000, 1.5),
    ]
    assert run.imbalance == 0.5
    assert run.notes == []


def test_a_missing_rank_is_told_and_its_samples_are_taken_to_be_alike(tmp_path: Path) -> None:
    head = header(world_size=20, data_parallel_size=20)
    run = told(write(tmp_path / "run.jsonl", head, step(1), summary()))
    assert run.samples == 160
    assert run.notes == ["no record of 19 ranks (1, 2, 3, 4, 5, 6, 7, 8 …)"]


def test_the_file_of_an_earlier_run_with_more_ranks_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / "run.jsonl", header(), step(1), summary())
    head = header(rank=3, world_size=4, started_at="2026-02-01T00:00:00.000+00:00")
    write(tmp_path / "run.rank3.jsonl", head, step(1, rank=3), summary(rank=3))
    write(tmp_path / "run.rank.jsonl", step(1))
    write(tmp_path / "run.ranking.jsonl", step(1))
    run = read_run(tmp_path / "run.jsonl")
    assert list(run.stretches[0].ranks) == [0]


def test_a_rank_that_died_early_leaves_its_last_steps_unknown(tmp_path: Path) -> None:
    for rank, steps in ((0, 3), (1, 2)):
        name = "run.jsonl" if rank == 0 else "run.rank1.jsonl"
        head = header(rank=rank, world_size=2, data_parallel_size=2)
        write(tmp_path / name, head, *(step(n, rank=rank) for n in range(1, steps + 1)))
    run = told(tmp_path / "run.jsonl")
    assert [(size.samples, size.steps) for size in run.samples_per_step] == [(16, 2)]
    assert "the ranks have written between 2 and 3 steps" in run.notes


def test_a_finding_of_several_ranks_is_told_once(tmp_path: Path) -> None:
    for rank in (0, 1):
        name = "run.jsonl" if rank == 0 else "run.rank1.jsonl"
        head = header(rank=rank, world_size=2, data_parallel_size=2)
        findings = [found(message=f"seen by rank {rank}")]
        lines = [step(1, rank=rank), step(2, rank=rank, findings=findings if rank else [])]
        late = [] if rank else findings
        note = found(code="DSG927", rule="steps-skipped", severity="info")
        counts = {"step-off-boundary": 1 + 4 * rank}
        end = summary(rank=rank, findings=[*late, note], counts=counts)
        write(tmp_path / name, head, *lines, end)
    first, second = told(tmp_path / "run.jsonl").violations
    assert (first.rule, first.message, first.first_step) == (
        "step-off-boundary",
        "seen by rank 1",
        2,
    )
    assert (first.ranks, first.times) == ([1, 0], 5)
    assert (second.rule, second.first_step, second.ranks) == ("steps-skipped", None, [0, 1])


def test_a_norm_that_is_not_finite_is_counted_and_not_drawn(tmp_path: Path) -> None:
    norms = ["Infinity", "NaN", 2.0, None, 4.0]
    lines = [step(n, grad_norm=norm) for n, norm in enumerate(norms, 1)]
    run = told(write(tmp_path / "run.jsonl", header(), *lines))
    assert run.not_finite_norms == 2
    assert run.grad_norm is not None
    assert (run.grad_norm.minimum, run.grad_norm.mean, run.grad_norm.maximum) == (2, 3, 4)
    assert (run.grad_norm.maximum_step, run.grad_norm.last) == (5, 4)


def test_a_loop_that_expects_no_boundary_is_never_off(tmp_path: Path) -> None:
    lines = [step(1, expected=None), step(2, expected=None, micro_batches=3)]
    assert told(write(tmp_path / "run.jsonl", header(), *lines)).off_steps == 0


def test_a_record_of_no_steps(tmp_path: Path) -> None:
    run = told(write(tmp_path / "run.jsonl", header(), summary(findings=[found()])))
    assert (run.steps, run.tokens, run.grad_norm, run.windows) == (0, None, None, [])
    assert run.violations[0].first_step is None


@pytest.mark.parametrize("length", [0, 1, 5, 7, 100])
def test_buckets_hold_every_value_once(length: int) -> None:
    cuts = edges(length, 7)
    sizes = [end - start for start, end in pairwise(cuts)]
    assert sum(sizes) == length
    assert len(sizes) == min(length, 7)
    assert not sizes or max(sizes) - min(sizes) <= 1


def test_a_bucket_keeps_its_extremes_and_skips_what_is_unknown() -> None:
    made = buckets([1, 9, 2, UNKNOWN, UNKNOWN, UNKNOWN], [0, 4, 6])
    assert made == ([1, None], [4, None], [9, None])


def test_the_command_says_what_is_wrong_and_a_way_out(dsguard: Dsguard, tmp_path: Path) -> None:
    (tmp_path / "ds_config.json").write_text('{\n  "train_batch_size": 8\n}\n')
    for name, words in (
        ("ds_config.json", "Error: ds_config.json:1: is no JSON, so no line of a record"),
        ("absent.jsonl", "Error: absent.jsonl: cannot be read: No such file or directory"),
        (".", "Error: .: cannot be read: Is a directory"),
    ):
        outcome = dsguard(f"report {name}", tmp_path)
        assert (outcome.code, outcome.out) == (3, "")
        assert words in outcome.err


def test_the_page_does_not_replace_the_record(dsguard: Dsguard, tmp_path: Path) -> None:
    path = write(tmp_path / "run.jsonl", header(), step(1), summary())
    before = path.read_bytes()
    assert dsguard("report run.jsonl --html ./run.jsonl", tmp_path).code == 2
    assert path.read_bytes() == before
    outcome = dsguard("report run.jsonl --html absent/run.html", tmp_path)
    assert outcome.code == 2
    assert "cannot write absent/run.html: No such file or directory" in outcome.err


def test_sessions_of_ranks_find_their_start_among_many(tmp_path: Path) -> None:
    """Each was compared with all: 3,000 starts of two ranks took three seconds."""

    def starts(count: int, rank: int) -> list[Line]:
        days = [datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(n) for n in range(count)]
        apart = timedelta(seconds=rank)
        return [
            header(rank=rank, world_size=2, started_at=(day + apart).isoformat()) for day in days
        ]

    counted = []
    for count in (50, 100):
        path = write(tmp_path / "run.jsonl", *starts(count, 0))
        write(tmp_path / "run.rank1.jsonl", *reversed(starts(count, 1)))
        counted.append(calls(lambda path=path: read_run(path)))  # type: ignore[misc]
        assert all(set(stretch.ranks) == {0, 1} for stretch in read_run(path).stretches)
    assert counted[1] < 2.3 * counted[0]
