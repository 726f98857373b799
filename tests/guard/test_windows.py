"""The state machine, by hand-written sequences and by sequences that hypothesis makes up."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsguard.runtime.windows import Histogram, Windows


def play(windows: Windows, events: str, accumulation: int = 4, size: int | None = 2) -> list:
    """``f`` forward, ``e`` evaluation, ``b`` backward, ``u`` unsynchronised backward, ``s`` step()
    returns, ``o`` optimizer step, ``x`` a skipped one."""
    closed = []
    for event in events:
        if event == "f":
            windows.forward(size)
        elif event == "e":
            windows.forward_without_gradient()
        elif event in "bu":
            windows.backward(accumulation, synchronised=event == "b")
        elif event == "s":
            windows.step_returned()
        else:
            closed.append(windows.optimizer_step(applied=event == "o"))
    return closed


def test_a_whole_window() -> None:
    windows = Windows()
    (window,) = play(windows, "fbs" * 3 + "fbos")
    assert (window.micro_batches, window.expected, window.samples) == (4, 4, 8)
    assert window.applied
    assert (windows.open, windows.since_step, windows.optimizer_steps) == (0, 0, 1)
    assert dict(windows.sizes) == {4: 1}
    assert dict(windows.samples) == {8: 1}


def test_windows_alike_are_counted_in_a_row() -> None:
    closed = play(Windows(), "fbo" * 3 + "fbfbo" + "fbo")
    assert [window.alike for window in closed] == [1, 2, 3, 1, 1]


def test_a_skipped_step_closes_its_window() -> None:
    windows = Windows()
    closed = play(windows, "fbx" * 2 + "fbo" + "fbx")
    assert [window.applied for window in closed] == [False, False, True, False]
    assert (windows.skipped_steps, windows.skipped_in_a_row) == (3, 1)


def test_the_accumulation_at_the_start_of_a_window_is_its_own() -> None:
    windows = Windows()
    play(windows, "fb", accumulation=4)
    assert windows.expected == 4
    (window,) = play(windows, "fbfbo", accumulation=3)
    assert (window.expected, window.micro_batches) == (4, 3)


def test_unknown_sizes_leave_the_samples_of_a_window_open() -> None:
    windows = Windows()
    windows.forward(2)
    windows.forward(None)
    (window,) = play(windows, "bbo")
    assert window.samples is None
    assert dict(windows.samples) == {}
    assert windows.batches == {2}


def test_batches_alike_are_counted_in_a_row() -> None:
    windows = Windows()
    seen = []
    for size in (4, 4, 3, None, None, 4):
        windows.forward(size)
        seen.append(windows.alike_batches)
    assert seen == [1, 2, 1, 1, 2, 1]


def test_evaluation_counts_for_nothing() -> None:
    windows = Windows()
    play(windows, "eee")
    assert (windows.forwards, windows.forwards_since_step, windows.micro_batches) == (3, 0, 0)
    assert windows.batches == set()


def test_unsynchronised_backwards() -> None:
    windows = Windows()
    play(windows, "ub")
    assert (windows.unsynchronised, windows.unsynchronised_since_step) == (1, 1)
    (window,) = play(windows, "so")
    assert window.unsynchronised == 1
    assert (windows.unsynchronised, windows.unsynchronised_since_step) == (0, 0)


def test_forwards_that_a_pass_is_seen_to_go_through() -> None:
    for joined, samples, tokens in ((0, None, None), (1, None, None), (2, 6, 10)):
        windows = Windows()
        windows.forward(2)
        windows.tokens(10, 5)
        play(windows, "ff")
        windows.backward(1)
        for _ in range(joined):
            windows.backward_joined()
        (window,) = play(windows, "o")
        assert (window.samples, window.tokens) == (samples, tokens)


def test_a_residue_is_of_unknown_samples() -> None:
    windows = Windows()
    play(windows, "fb")
    windows.reopen(2, 4)
    assert (windows.open, windows.expected) == (2, 4)
    (window,) = play(windows, "fbfbo")
    assert (window.micro_batches, window.samples) == (4, None)


def test_a_histogram_forgets_no_value_and_grows_no_further() -> None:
    histogram = Histogram()
    for value in range(1000):
        histogram.add(value)
        histogram.add(7)
    assert len(histogram) == 64
    assert sum(histogram.values()) + histogram.others == 2000
    assert histogram[7] == 1001
    assert list(histogram) == sorted(histogram)


def test_state_goes_through_json() -> None:
    windows, later = Windows(), Windows()
    play(windows, "fbo" * 3 + "fbfbx" + "fb")
    later.load_state_dict(json.loads(json.dumps(windows.state_dict())))
    assert later.state_dict() == windows.state_dict()
    assert later.open == 0  # its gradients are in no checkpoint


def test_a_state_of_something_else() -> None:
    with pytest.raises(KeyError):
        Windows().load_state_dict({"model": {}})


@given(st.lists(st.sampled_from("febusox"), max_size=200), st.integers(1, 8))
def test_nothing_is_lost_and_nothing_counted_twice(events: list[str], accumulation: int) -> None:
    windows = Windows()
    closed = play(windows, "".join(events), accumulation, size=3)
    backwards = sum(event in "bu" for event in events)
    steps = sum(event in "ox" for event in events)
    assert windows.micro_batches == backwards
    assert sum(window.micro_batches for window in closed) + windows.open == backwards
    assert windows.optimizer_steps == len(closed) == steps == sum(windows.sizes.values())
    assert windows.skipped_steps == events.count("x")
    assert sum(size * times for size, times in windows.sizes.items()) == backwards - windows.open
    assert 0 <= windows.since_step <= backwards
    assert 0 <= windows.unsynchronised <= windows.open
    forwards = sum(event == "f" for event in events)
    assert windows.batches == ({3} if forwards else set())
    inside = sum(window.samples or 0 for window in closed)
    assert inside <= 3 * forwards
