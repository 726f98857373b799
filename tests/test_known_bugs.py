"""Every known bug shows in a fixture of its own and is gone in another."""

from __future__ import annotations

import pytest
from packaging.version import Version

from dsguard.rules.schema._known_bugs import KNOWN_BUGS, KnownBug
from tests.conftest import FIXTURES, Dsguard

FOLDER = FIXTURES / "rules" / "known-bug"


@pytest.mark.parametrize("bug", KNOWN_BUGS, ids=lambda bug: bug.name)
def test_a_row_has_its_fixtures(bug: KnownBug, dsguard: Dsguard) -> None:
    for verdict, found in (("bad", True), ("good", False)):
        config = FOLDER / verdict / f"{bug.name}.json"
        line = config.with_suffix(".args").read_text(encoding="utf-8").strip()
        outcome = dsguard(f"check -o concise {config.name} {line}", config.parent)
        assert (bug.source in outcome.out) is found
        assert (bug.says in outcome.out) is found


@pytest.mark.parametrize("bug", KNOWN_BUGS, ids=lambda bug: bug.name)
def test_a_row_is_over_in_the_newest_release(bug: KnownBug) -> None:
    """Open bugs may come; then this test names them."""
    assert Version("0.19.8") not in bug.releases


def test_names_are_unique() -> None:
    assert len({bug.name for bug in KNOWN_BUGS}) == len(KNOWN_BUGS)
