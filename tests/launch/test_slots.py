"""How the slots of a host are told: none of them is counted out one by one."""

from __future__ import annotations

import pytest

from dsguard.launch.slots import Slots

ANY_NUMBER = 10**15
"""As a hostfile or ``--num_gpus`` may claim; no memory holds a set of so many."""


@pytest.mark.parametrize(
    ("slots", "told"),
    [
        (Slots(None), "all devices"),
        (Slots(None, dropped=frozenset({1})), "the other devices"),
        (Slots(4, frozenset({2})), "device 2"),
        (Slots(4, frozenset({0, 1})), "devices 0 and 1"),
        (Slots(8, frozenset({0, 1, 2})), "devices 0 to 2"),
        (Slots(8, frozenset({5, 0, 1})), "devices 0, 1 and 5"),
        (Slots(0), "no device"),
        (Slots(1), "device 0"),
        (Slots(4), "devices 0 to 3"),
        (Slots(4, dropped=frozenset({3})), "devices 0 to 2"),
        (Slots(4, dropped=frozenset({1})), "devices 0, 2 and 3"),
        (Slots(2, dropped=frozenset({0, 1})), "no device"),
        (Slots(ANY_NUMBER), f"devices 0 to {ANY_NUMBER - 1}"),
        (Slots(ANY_NUMBER, dropped=frozenset({1})), f"{ANY_NUMBER - 1} devices"),
    ],
)
def test_the_devices_that_are_taken(slots: Slots, told: str) -> None:
    assert slots.described == told
