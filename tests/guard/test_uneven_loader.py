"""Ranks with unequal loaders hang under the real DeepSpeed, and the guard says so before."""

from __future__ import annotations

import pytest

from tests.guard.fleet import run_on_ranks
from tests.guard.uneven import LENGTHS

pytestmark = pytest.mark.deepspeed

SAID = (
    "the ranks do not agree: dataloader_length is 6 on rank 0, 4 on rank 1; rank 1 will have no "
    "batch left after 4, 2 before rank 0, which waits for it from batch 5 on"
)


def test_the_guard_says_where_the_run_will_hang() -> None:
    pytest.importorskip("deepspeed")
    long, short = run_on_ranks(2, "tests.guard.uneven:story", stage=2)
    for rank in (long, short):
        assert rank["even"] == {"said": [], "steps": 2}
        assert rank["uneven"]["said"] == [SAID]
        assert rank["uneven"]["raised"] == SAID
    assert short["uneven"]["waits_in"] is None
    assert short["uneven"]["steps"] == LENGTHS[1]
    assert long["uneven"]["waits_in"] == LENGTHS[1] + 1
