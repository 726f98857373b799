"""For every release: dsguard calls refused what that release's DeepSpeedConfig refuses.

``DSGUARD_RELEASES`` names a folder of unpacked sdists (``<any name>/deepspeed``), one for each
release to ask; ``DSGUARD_CORPUS`` adds public configs. The installed release is always asked,
about fewer configs::

    DSGUARD_RELEASES=... DSGUARD_CORPUS=... python -m pytest tests/releases

The sdists come from ``pip download --no-deps --no-binary deepspeed deepspeed==0.15.4``.
"""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
from packaging.version import Version

from dsguard.checking import Settings, check_source
from dsguard.facts.resolve import Options
from dsguard.facts.target import resolve_target
from dsguard.frontends.base import FrontEndName
from dsguard.model.fact import FactName
from dsguard.model.finding import Consequence
from dsguard.model.source import Source
from dsguard.reading import parse
from dsguard.reading.errors import HjsonSyntaxError
from tests.releases.asking import Answer, Question, Release, ask, releases_in
from tests.releases.configs import questions
from tests.releases.explained import explanation

FOLDER = os.environ.get("DSGUARD_RELEASES")
MUTATIONS = int(os.environ.get("DSGUARD_MUTATIONS", "3000"))
SLICE = 300

BATCH: tuple[FactName, ...] = (
    "train_batch_size",
    "micro_batch_size",
    "gradient_accumulation_steps",
)

pytestmark = pytest.mark.deepspeed


def disagreement(release: Release, question: Question, answer: Answer) -> str | None:
    """Where dsguard and a release differ over a config, None where they do not."""
    options = Options(question.world_size, FrontEndName.PLAIN)
    settings = Settings(resolve_target(release.version), options)
    source = Source(question.name, question.text)
    check = check_source(source, None, settings)
    if any(finding.rule == "not-a-deepspeed-config" for finding in check.findings):
        return None  # nothing else is said about it
    refused = [f.message for f in check.findings if f.consequence is Consequence.REFUSED]
    numbers = tuple(check.facts.value(name) for name in BATCH)
    if bool(refused) == (answer.refused is not None) and (
        answer.refused is not None or numbers == answer.numbers
    ):
        return None
    try:
        config = parse(source).value
    except HjsonSyntaxError:
        config = None
    if explanation(config, release.version, answer) is not None:
        return None
    return (
        f"{question.name}, {question.world_size} processes\n"
        f"  DeepSpeed {release.version}: {answer.refused or answer.numbers}\n"
        f"  dsguard: {refused or numbers}\n"
        f"  {question.text}"
    )


def disagreements(release: Release, mutations: int) -> list[str]:
    asked = list(questions(Version(release.version), mutations))
    found = [disagreement(release, question, answer) for question, answer in ask(release, asked)]
    return [text for text in found if text is not None]


def installed() -> Release:
    try:
        package = distribution("deepspeed")
    except PackageNotFoundError:
        pytest.skip("DeepSpeed is not installed")
    return Release(package.version.partition("+")[0], Path(str(package.locate_file(""))))


def test_the_installed_release() -> None:
    assert disagreements(installed(), SLICE) == []


@pytest.mark.parametrize(
    "release",
    releases_in(Path(FOLDER)) if FOLDER else [None],
    ids=lambda release: release.version if release else "none",
)
def test_a_release(release: Release | None) -> None:
    if release is None:
        pytest.skip("DSGUARD_RELEASES names no folder of unpacked DeepSpeed sdists")
    assert disagreements(release, MUTATIONS) == []
