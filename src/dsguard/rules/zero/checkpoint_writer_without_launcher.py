"""A checkpoint writer without the deepspeed launcher; see checkpoint_writer_without_launcher.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.values import block, pointer_of
from dsguard.launch.context import LauncherName
from dsguard.model.finding import Confidence, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.rules.zero._settings import release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEY = "checkpoint.writer"
_WITHOUT = (LauncherName.TORCHRUN, LauncherName.PYTHON)
_SINCE = Version("0.17.1")
"""The release that brought the block."""


@rule(
    code="DSG326",
    slug="checkpoint-writer-without-launcher",
    summary="checkpoint.writer without the deepspeed launcher",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="deepspeed.initialize raises KeyError: 'CROSS_SIZE'",
    when=(Written(_KEY),),
)
def checkpoint_writer_without_launcher(case: Case, report: Reporter) -> Iterator[Finding]:
    """Its presence alone switches the checkpoint engine."""
    if not block(case.document, _KEY) or case.document is None or case.launch is None:
        return
    launcher = case.launch.launcher
    if launcher not in _WITHOUT or release(case) < _SINCE:
        return
    yield report(
        case.document.locate(pointer_of(_KEY), "key"),
        f"checkpoint.writer reads CROSS_SIZE from the environment, which {launcher.value} does "
        "not set",
        Consequence.LATE,
        help="start with the deepspeed launcher, or export CROSS_SIZE (the number of nodes) and "
        "CROSS_RANK",
        # They may be exported where the command is run.
        confidence=Confidence.MEDIUM,
    )
