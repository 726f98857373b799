"""The guard on DDP, FSDP and ``fully_shard``: two ranks, faults beside their twins."""

from __future__ import annotations

import pytest

from tests.guard.ranks import ACCUMULATION, MICRO_BATCH, WINDOWS, Outcome, run

pytest.importorskip("torch")
pytestmark = pytest.mark.deepspeed

RANKS = 2
SHARDED = ["ddp", "fsdp2"]
ALL = ["ddp", "fsdp", "fsdp2"]


@pytest.fixture(scope="module")
def outcomes() -> dict[str, Outcome]:
    return run()


@pytest.mark.parametrize("kind", ALL)
def test_a_right_loop_has_no_findings_and_is_counted(
    kind: str, outcomes: dict[str, Outcome]
) -> None:
    healthy = outcomes[f"last_synchronised[{kind}]"]
    assert healthy.findings == healthy.other == {}
    assert healthy.micro_batches == WINDOWS * ACCUMULATION
    assert healthy.windows == {str(ACCUMULATION): WINDOWS}
    assert healthy.samples == {str(RANKS * ACCUMULATION * MICRO_BATCH): WINDOWS}
    assert healthy.moved
    assert not healthy.apart


@pytest.mark.parametrize("kind", ALL)
def test_the_guard_changes_no_weight(kind: str, outcomes: dict[str, Outcome]) -> None:
    with_guard = outcomes[f"last_synchronised[{kind}]"].weights
    assert with_guard == outcomes[f"without_guard[{kind}]"].weights


@pytest.mark.parametrize("kind", SHARDED)
@pytest.mark.parametrize("fault", ["never_synchronised", "first_synchronised"])
def test_a_step_on_gradients_of_one_rank(
    kind: str, fault: str, outcomes: dict[str, Outcome]
) -> None:
    found = outcomes[f"{fault}[{kind}]"]
    assert found.findings == found.other == {"sync-off-boundary": "error"}
    right = outcomes[f"last_synchronised[{kind}]"]
    assert found.weights != right.weights
    if kind == "ddp":
        assert found.apart
    elif fault == "never_synchronised":
        assert not found.moved


@pytest.mark.parametrize("fault", ["never_synchronised", "first_synchronised"])
def test_fsdp_is_told_before_its_optimizer_fails(fault: str, outcomes: dict[str, Outcome]) -> None:
    found = outcomes[f"{fault}[fsdp]"]
    assert found.findings["sync-off-boundary"] == "error"
    assert "must match the size" in found.raised


@pytest.mark.parametrize("kind", ALL)
def test_a_fault_that_begins_later(kind: str, outcomes: dict[str, Outcome]) -> None:
    found = outcomes[f"never_synchronised_later[{kind}]"]
    assert found.findings["sync-off-boundary"] == found.other["sync-off-boundary"] == "error"
    assert found.windows == {str(ACCUMULATION): 2 * WINDOWS} or "must match" in found.raised


@pytest.mark.parametrize("kind", SHARDED)
def test_synchronisation_is_judged_without_an_expectation(
    kind: str, outcomes: dict[str, Outcome]
) -> None:
    found = outcomes[f"never_synchronised_without_expectation[{kind}]"]
    assert found.findings == {"sync-off-boundary": "error"}


@pytest.mark.parametrize("kind", ALL)
def test_synchronising_every_micro_batch_is_only_slower(
    kind: str, outcomes: dict[str, Outcome]
) -> None:
    found = outcomes[f"always_synchronised[{kind}]"]
    assert found.findings == {"sync-off-boundary": "info"}
    assert f"{ACCUMULATION} times for one step" in found.messages["sync-off-boundary"]
    assert found.weights == pytest.approx(outcomes[f"last_synchronised[{kind}]"].weights, abs=1e-6)


@pytest.mark.parametrize("kind", SHARDED)
def test_a_violation_is_raised_before_the_step(kind: str, outcomes: dict[str, Outcome]) -> None:
    found = outcomes[f"raised[{kind}]"]
    assert "DSG930" in found.raised
    assert not found.moved


def test_ddp_decides_in_the_forward(outcomes: dict[str, Outcome]) -> None:
    found = outcomes["backward_outside_no_sync[ddp]"]
    assert found.findings == {"sync-off-boundary": "error"}
    assert found.apart


def test_ddp_synchronises_one_pass_of_a_forward(outcomes: dict[str, Outcome]) -> None:
    found = outcomes["two_passes_of_one_forward[ddp]"]
    assert found.findings == {"sync-off-boundary": "error"}
    assert found.apart
    twin = outcomes["two_losses_of_one_forward[ddp]"]
    assert (twin.findings, twin.apart) == ({}, False)
    assert twin.micro_batches == found.micro_batches == WINDOWS


def test_one_loss_of_two_forwards_is_one_micro_batch(outcomes: dict[str, Outcome]) -> None:
    found = outcomes["two_forwards_of_one_loss[ddp]"]
    assert (found.findings, found.apart) == ({}, False)
    assert found.windows == {"1": WINDOWS}
    assert found.samples == {str(2 * MICRO_BATCH * RANKS): WINDOWS}


def test_the_model_inside_the_wrapper(outcomes: dict[str, Outcome]) -> None:
    found = outcomes["around_the_wrapper[ddp]"]
    assert found.findings == {"forward-around-engine": "warning"}
    assert found.apart


@pytest.mark.parametrize("kind", SHARDED)
@pytest.mark.parametrize(
    ("fault", "size", "steps"),
    [
        ("step_after_each", 1, WINDOWS * ACCUMULATION),
        ("step_after_twice_as_many", 2 * ACCUMULATION, WINDOWS),
    ],
)
def test_a_step_at_another_boundary(
    kind: str, fault: str, size: int, steps: int, outcomes: dict[str, Outcome]
) -> None:
    found = outcomes[f"{fault}[{kind}]"]
    assert found.findings == {"step-off-boundary": "error"}
    assert f"not after the {ACCUMULATION} " in found.messages["step-off-boundary"]
    assert found.optimizer_steps == steps
    assert found.windows == {str(size): steps}


@pytest.mark.parametrize("kind", SHARDED)
def test_gradients_cleared_before_every_micro_batch(
    kind: str, outcomes: dict[str, Outcome]
) -> None:
    found = outcomes[f"cleared_before_each[{kind}]"]
    assert found.findings == {"gradients-zeroed": "error"}
    in_effect = outcomes[f"cleared_before_each_in_effect[{kind}]"].weights
    assert found.weights == pytest.approx(in_effect, abs=1e-6)


def test_zero_grad_does_not_reach_gradients_before_their_reduction(
    outcomes: dict[str, Outcome],
) -> None:
    found = outcomes["cleared_while_unsharded[fsdp2]"]
    assert found.findings == {"gradients-zeroed": "info"}
    assert found.weights == outcomes["last_synchronised[fsdp2]"].weights


def test_gradients_cleared_by_somebody_else(outcomes: dict[str, Outcome]) -> None:
    found = outcomes["cleared_by_the_model[ddp]"]
    assert found.findings == {"gradients-zeroed": "error"}


def test_gradients_cleared_between_backward_and_step(outcomes: dict[str, Outcome]) -> None:
    found = outcomes["cleared_before_the_step[ddp]"]
    assert found.findings == {"gradients-zeroed": "error"}
    assert not found.moved


@pytest.mark.parametrize("kind", SHARDED)
def test_other_batches(kind: str, outcomes: dict[str, Outcome]) -> None:
    found = outcomes[f"other_batches[{kind}]"]
    assert found.findings == {"micro-batch-differs": "error"}
    assert found.samples == {str(2 * MICRO_BATCH * ACCUMULATION * RANKS): WINDOWS}
    assert (
        "one step trains on 16 samples per rank instead of 8"
        in (found.messages["micro-batch-differs"])
    )


@pytest.mark.parametrize("kind", SHARDED)
def test_ranks_that_expect_different_things(kind: str, outcomes: dict[str, Outcome]) -> None:
    found = outcomes[f"ranks_apart[{kind}]"]
    assert found.findings == found.other == {"ranks-differ": "error"}
    assert "2 on rank 0, 3 on rank 1" in found.messages["ranks-differ"]
    assert outcomes[f"ranks_alike[{kind}]"].findings == {}


def test_an_expectation_that_the_ranks_do_not_meet(outcomes: dict[str, Outcome]) -> None:
    found = outcomes["other_arithmetic[ddp]"]
    assert found.findings == {"expectation-differs": "error"}


def test_the_accumulation_follows_from_the_samples_of_a_step(
    outcomes: dict[str, Outcome],
) -> None:
    found = outcomes["expected_by_total[ddp]"]
    assert found.findings == {"step-off-boundary": "error"}
    assert f"not after the {ACCUMULATION} " in found.messages["step-off-boundary"]


def test_an_optimizer_made_before_sharding(outcomes: dict[str, Outcome]) -> None:
    found = outcomes["optimizer_made_too_early[fsdp2]"]
    assert found.findings == {
        "optimizer-of-other-parameters": "warning",
        "parameters-not-moving": "warning",
    }
    assert not found.moved


def test_several_ranks_need_something_that_synchronises(outcomes: dict[str, Outcome]) -> None:
    assert "neither DDP nor FSDP, and 2 ranks run" in outcomes["nothing_synchronises[plain]"].raised


def test_a_compiled_ddp_model(outcomes: dict[str, Outcome]) -> None:
    found = outcomes["compiled[ddp]"]
    assert found.findings == {}
    assert found.windows == {str(ACCUMULATION): WINDOWS}


@pytest.mark.parametrize("kind", ["fsdp", "fsdp2"])
def test_names_that_another_release_lacks_are_said_and_not_guessed(
    kind: str, outcomes: dict[str, Outcome]
) -> None:
    found = outcomes[f"unknown_names[{kind}]"]
    assert found.findings == {"sync-off-boundary": "info"}
    assert found.messages["sync-off-boundary"].startswith("gradient synchronisation is not judged")
