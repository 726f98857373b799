"""Ranks with unequal loaders hang under the real DeepSpeed, and the guard says so before."""

from __future__ import annotations

from typing import Any

import pytest

from tests.guard.fleet import run_on_ranks
from tests.guard.uneven import LENGTHS

pytestmark = pytest.mark.deepspeed

SAID = (
    "the ranks do not agree: dataloader_length is 6 on rank 0, 4 on rank 1; rank 1 will have no "
    "batch left after 4, 2 before rank 0, which waits for it from batch 5 on"
)


@pytest.fixture(scope="module")
def ranks() -> list[Any]:
    pytest.importorskip("deepspeed")
    return run_on_ranks(2, "tests.guard.uneven:story", stage=2)


def test_what_the_guard_counts_is_what_the_audit_said_before(ranks: list[Any]) -> None:
    for told in (way for rank in ranks for way in rank["measured"].values()):
        assert told["counted"] == pytest.approx(told["said"])
        assert told["waiting"][0] == pytest.approx(told["waiting"][1])
    assert ranks[0]["measured"]["random"]["rules"] == ["uneven-tokens"]
    assert ranks[0]["measured"]["balanced"]["rules"] == []


def test_the_guard_says_where_the_run_will_hang(ranks: list[Any]) -> None:
    long, short = ranks
    for rank in ranks:
        assert rank["even"] == {"said": [], "steps": 2}
        assert rank["uneven"]["said"] == [SAID]
        assert rank["uneven"]["raised"] == SAID
    assert short["uneven"]["waits_in"] is None
    assert short["uneven"]["steps"] == LENGTHS[1]
    assert long["uneven"]["waits_in"] == LENGTHS[1] + 1
