"""What the contract of the rules is tested with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from dsguard import checking
from dsguard.facts.case import Case
from dsguard.model.source import Source
from dsguard.rules import all_rules

ALL_ASKED = [replace(rule, meta=replace(rule.meta, when=())) for rule in all_rules()]


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Case]]:
    """The cases that were judged: where the conditions of a rule are not met, asking it all the
    same would have changed nothing.
    """
    run, cases, outcomes = checking._run_rules, list[Case](), list[tuple[Any, Any]]()

    def run_twice(case: Case, rules: object, shown: Source) -> object:
        spared = run(case, all_rules(), shown)
        cases.append(case)
        outcomes.append((spared, run(case, ALL_ASKED, shown)))
        return spared

    monkeypatch.setattr(checking, "_run_rules", run_twice)
    yield cases
    for case, (spared, asked) in zip(cases, outcomes, strict=True):
        config, launch = case.document, case.launch
        shown = (config and config.source.text, launch and launch.command.line)
        assert spared[2] ^ asked[2] == frozenset(), shown
        assert spared == asked, shown
