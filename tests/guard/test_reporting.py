"""How a finding is said: once of a kind, in three manners, on one rank."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsguard.model.fact import Origin, OriginKind
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, RuleMeta
from dsguard.runtime.place import NOWHERE, line_of
from dsguard.runtime.ranks import OneVoice
from dsguard.runtime.reporting import GuardViolation, Notebook, written

REPORT = Reporter(RuleMeta("DSG999", "made-up", "a rule of this test", Severity.ERROR, "0.1.0"))


def finding(message: str = "something", **more: Any) -> Finding:
    return REPORT(more.pop("at", NOWHERE), message, Consequence.DIFFERS, **more)


def test_one_of_a_kind_is_said_and_the_rest_counted(caplog: pytest.LogCaptureFixture) -> None:
    notebook = Notebook("warn")
    with caplog.at_level(logging.INFO, "dsguard.guard"):
        for number in range(3):
            notebook.write(finding(f"number {number}"), "Backward")
        notebook.write(finding("elsewhere"), "Forward")
        notebook.write(finding("milder", severity=Severity.WARNING), "Backward")
        notebook.write(finding("noted", severity=Severity.INFO), "Backward")
    assert [found.message for found in notebook.findings] == [
        "number 0",
        "elsewhere",
        "milder",
        "noted",
    ]
    assert notebook.counts["made-up"] == 6
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR", "WARNING", "INFO"]


def test_record_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    notebook = Notebook("record")
    notebook.write(finding(), "Backward")
    notebook.raise_if_due()
    assert caplog.records == []
    assert len(notebook.findings) == 1


def test_raise_raises_errors_once_and_logs_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    notebook = Notebook("raise")
    notebook.write(finding("milder", severity=Severity.WARNING), "Backward")
    notebook.raise_if_due()
    notebook.write(finding("first"), "Backward")
    notebook.write(finding("second"), "Forward")
    with pytest.raises(GuardViolation, match="first") as raised:
        notebook.raise_if_due()
    assert raised.value.finding.message == "first"
    notebook.raise_if_due()
    notebook.write(finding("again"), "Backward")
    notebook.raise_if_due()
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_finding_as_text(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import x\n\n    engine.step()\n", encoding="utf-8")
    at = line_of(str(script), 3)
    because = (
        Because("zero_stage", 2, Origin(OriginKind.CONFIG, argument="engine.config: stage")),
        Because("micro_batch_size", 4, Origin(OriginKind.SCRIPT, at, argument="guard(…)")),
    )
    text = written(finding(at=at, because=because, help="leave it out"))
    assert text.splitlines() == [
        "error[DSG999]: something  (made-up)",
        f"  --> {at.source.name}:3:5",
        "      engine.step()",
        "  because zero_stage is 2 (engine.config: stage)",
        f"  because micro_batch_size is 4 (guard(…), {at.source.name}:3)",
        "  help: leave it out",
    ]


def test_a_finding_without_a_place() -> None:
    assert written(finding()) == "error[DSG999]: something  (made-up)"


def test_a_line_of_a_file_that_is_gone() -> None:
    assert written(finding(at=line_of("gone.py", 7))).splitlines()[1] == "  --> gone.py:7"


class Store:
    """A store of the ranks, in this process."""

    marks: set[str]

    def __init__(self, rank: int, marks: set[str]) -> None:
        self.rank, self.marks = rank, marks

    def mark(self, what: str) -> None:
        self.marks.add(what)

    def marked(self, what: str) -> bool:
        return what in self.marks


def said_by(voice: OneVoice, said: list[str]) -> Callable[[str], None]:
    return lambda prefix: said.append(f"{prefix}{voice._store.rank}")


def test_rank_0_speaks_for_all_and_another_for_itself() -> None:
    marks: set[str] = set()
    said: list[str] = []
    zero, one = OneVoice(Store(0, marks)), OneVoice(Store(1, marks))  # type: ignore[arg-type]
    for voice in (one, zero):
        voice.say(("shared",), said_by(voice, said))
    one.say(("own",), said_by(one, said))
    assert said == ["0"]
    one.settle()
    assert said == ["0", "[rank 1] 1"]
    one.settle()
    assert said == ["0", "[rank 1] 1"]


def test_a_store_that_is_gone_makes_nobody_silent() -> None:
    class Gone(Store):
        def mark(self, what: str) -> None:
            raise RuntimeError("the store is gone")

        def marked(self, what: str) -> bool:
            raise RuntimeError("the store is gone")

    said: list[str] = []
    for rank in (0, 1):
        voice = OneVoice(Gone(rank, set()))  # type: ignore[arg-type]
        voice.say(("shared",), said_by(voice, said))
        voice.settle()
    assert said == ["0", "[rank 1] 1"]
