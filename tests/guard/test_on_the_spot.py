"""What is counted on the spot is what the windows would have been told event by event."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from dsguard.runtime.ordinary import BACKWARD, FORWARD, NOTHING, STEP, Ordinary
from dsguard.runtime.windows import Windows
from tests.guard.at_random import counts
from tests.guard.test_windows import play

SAMPLES, UNTOLD = 2, 5
AFTER = ("", "f", "fb")
"""What may have come of a micro-batch when somebody asks."""


def count(ordinary: Ordinary, events: str) -> None:
    """As hooks do."""
    for event in events:
        if event == "f":
            ordinary.awaits = BACKWARD
        elif event in "bu":
            ordinary.awaits = STEP
            if not ordinary.steps and ordinary.micro_batches + 1 < ordinary.accumulation:
                ordinary.micro_batches += 1
                ordinary.awaits = FORWARD
        elif event == "o":
            assert ordinary.closes()
        elif ordinary.awaits == STEP:
            ordinary.micro_batches += 1
            ordinary.awaits = FORWARD


@given(
    before=st.text("febusox"),
    accumulation=st.integers(1, 4),
    closed=st.integers(0, UNTOLD),
    begun=st.integers(0, 4),
    after=st.sampled_from(AFTER),
    steps=st.booleans(),
    synchronised=st.booleans(),
)
def test_told_at_once(
    before: str,
    accumulation: int,
    closed: int,
    begun: int,
    after: str,
    steps: bool,
    synchronised: bool,
) -> None:
    one_by_one, at_once = Windows(), Windows()
    for windows in one_by_one, at_once:
        play(windows, before + "os", accumulation, SAMPLES)
    assume(not at_once.pending)
    ordinary = Ordinary(_windows=at_once)
    synchronised |= steps  # an engine's are only counted on the spot where they are
    ordinary.expect(accumulation, SAMPLES, UNTOLD, steps=steps, synchronised=synchronised)
    each = "fbs" if steps else "fb" if synchronised else "fu"
    begun = min(begun, accumulation if steps else accumulation - 1)
    if not synchronised and begun + 1 < accumulation:
        after = after.replace("b", "u")
    events = (each * (accumulation - 1) + "fbos") * closed + each * begun
    count(ordinary, events + after)
    play(one_by_one, events + after, accumulation, SAMPLES)
    assert ordinary.open() == bool(one_by_one.open)
    awaits = ordinary.awaits
    assert counts(ordinary.snapshot()) == counts(one_by_one)
    assert ordinary.awaits == awaits
    assert counts(ordinary.windows()) == counts(one_by_one)
    assert ordinary.awaits == NOTHING
    # From now on they are told each event themselves.
    for windows in one_by_one, ordinary.windows():
        play(windows, "fbs")
    assert counts(ordinary.windows()) == counts(one_by_one)


def test_no_more_windows_close_untold_than_may() -> None:
    ordinary = Ordinary()
    ordinary.expect(1, SAMPLES, 1)
    count(ordinary, "fbos" + "fb")
    assert not ordinary.closes()
    assert (ordinary.windows().optimizer_steps, ordinary.windows().open) == (1, 1)


def test_only_the_last_micro_batch_closes_a_window() -> None:
    ordinary = Ordinary()
    ordinary.expect(2, SAMPLES, 1)
    count(ordinary, "fb")
    assert not ordinary.closes()
    count(ordinary, "s" + "fb")
    assert ordinary.closes()
