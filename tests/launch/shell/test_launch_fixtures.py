"""Every script under ``fixtures/launch`` gives the launches and facts that stand beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import compare

from .fixtures import FOLDER, SCRIPTS, expectation, facts_of, found_in


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_launches_of_a_script(script: Path, tmp_path: Path) -> None:
    facts = [facts_of(found, tmp_path) for found in found_in(script)]
    text = json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
    assert facts, "no launch is found"
    compare(expectation(script), text)


def test_every_expectation_has_its_script() -> None:
    expected = {expectation(script) for script in SCRIPTS}
    assert len(SCRIPTS) >= 60
    assert len(expected) == len(SCRIPTS)
    assert set(FOLDER.glob("*.expected.json")) == expected
