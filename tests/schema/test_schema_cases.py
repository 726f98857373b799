from __future__ import annotations

import pytest

from dsguard.schema.history import NEWEST_KNOWN
from dsguard.schema.validate import validate
from tests.schema.cases import CASES, Case
from tests.schema.configs import BATCH


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_problem_is_found_and_no_other(case: Case) -> None:
    found = validate(BATCH | case.config, NEWEST_KNOWN)
    problems = [(p.kind.value, p.pointer, p.consequence.value) for p in found]
    assert problems == ([case.problem] if case.problem else [])


@pytest.mark.deepspeed
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_deepspeed_refuses_what_is_called_refused(case: Case) -> None:
    pytest.importorskip("deepspeed")
    from tests.oracle import refuses

    theirs = refuses(BATCH | case.config)
    assert (theirs is not None) == (case.problem is not None and case.problem[2] == "refused"), (
        theirs
    )


def test_names_of_cases_are_unique() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
