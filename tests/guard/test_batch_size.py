"""How many samples a batch holds, from nothing but the shapes in it."""

from __future__ import annotations

from collections import UserDict
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dsguard.runtime.batch_size import PACKED, batch_size


class T:
    """Something with a shape, as a tensor has."""

    def __init__(self, *shape: int) -> None:
        self.shape = shape

    def __repr__(self) -> str:
        return f"T{self.shape}"


class Named(NamedTuple):
    inputs: Any
    labels: Any


@dataclass
class Sample:
    image: Any
    target: Any
    note: str = "as loaded"


class Thing:
    """An object of a data library, such as a graph batch."""

    def __init__(self) -> None:
        self.x = T(8, 3)
        self.y = T(8)


def size(*args: Any, micro_batch: int | None = 4, **kwargs: Any) -> int | None:
    return batch_size(args, kwargs, micro_batch)


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        (T(4, 10), 4),
        ([T(4, 10), T(4)], 4),
        ((T(4, 10), (T(4), T(4, 2))), 4),
        ({"input_ids": T(4, 10), "attention_mask": T(4, 10)}, 4),
        ({"x": T(4, 3), "y": T(4)}, 4),
        (UserDict({"input_ids": T(4, 10)}), 4),
        (Named(T(4, 3), T(4)), 4),
        (Sample(T(4, 3, 2, 2), T(4)), 4),
        (Thing(), 8),
        ({"pixel_values": T(2, 3, 8, 8), "names": ["a"] * 2000}, 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_sizes(batch: Any, expected: int) -> None:
    assert size(batch) == expected


def test_keywords() -> None:
    assert size(input_ids=T(4, 10), labels=T(4, 10)) == 4
    assert size(T(1), input_ids=T(4, 10)) == 4


@pytest.mark.parametrize(
    "batch",
    [
        None,
        3,
        "a text",
        ["a", "b", "c"],
        T(),
        {"input_ids": ["a", "b"]},
        [T(4, 10), T(5, 10)],
        [T(4), T(4), T(7), T(9)],
        {"input_ids": T(1, 100), "position_ids": T(1, 100)},
        {"input_ids": T(1, 100), "cu_seq_lens_q": T(5)},
        T(10, 4, 3),
        [list(range(2000))],
    ],
    ids=lambda batch: str(batch)[:60],
)
def test_no_size_or_more_than_one(batch: Any) -> None:
    """Rows packed with sequences, the sequence first, disagreeing tensors, no tensors at all."""
    assert size(batch) is None


KEYS = ("input_ids", "labels", "position_ids", "cu_seqlens", "x", "mask")


@given(
    samples=st.integers(1, 5),
    args=st.lists(st.integers(0, 7), max_size=2),
    kwargs=st.dictionaries(st.sampled_from(KEYS), st.integers(0, 7)),
)
def test_tensors_that_all_have_as_many_rows_as_the_engine_counts(
    samples: int, args: list[int], kwargs: dict[str, int]
) -> None:
    """What the hooks rely on where they count a batch without asking."""

    def part(number: int) -> Any:
        """Rows of so many, rows of one, a tensor of one number, or no tensor."""
        return {0: T(samples), 6: T(), 7: False}.get(number, T(samples, number))

    rows = tuple(part(number) for number in args)
    named = {key: part(number) for key, number in kwargs.items()}
    assume(any(number < 6 for number in [*args, *kwargs.values()]))
    assume(samples > 1 or PACKED.isdisjoint(kwargs))
    assert batch_size(rows, named, samples) == samples


def test_the_majority_counts() -> None:
    assert size([T(4, 10), T(4), T(1)]) == 4


def test_the_sequence_first_needs_a_micro_batch_to_be_seen() -> None:
    assert size(T(10, 4, 3), micro_batch=None) == 10
    assert size(T(4, 4), micro_batch=4) == 4


def test_a_huge_batch_costs_no_more_than_a_small_one() -> None:
    looked_at = 0

    class Counted:
        @property
        def shape(self) -> tuple[int, ...]:
            nonlocal looked_at
            looked_at += 1
            return (4, 2)

    assert size([[Counted() for _ in range(100)] for _ in range(100)]) == 4
    assert looked_at < 100


def test_a_real_batch_encoding() -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    encoded = transformers.BatchEncoding({"input_ids": torch.zeros(3, 5, dtype=torch.long)})
    assert size(encoded) == 3
    assert size(**encoded) == 3
    assert size(torch.zeros(6, 2)) == 6
