"""Crews by their number of ranks, made when they are first asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.guard.scripts import Crew


class Crews(dict[int, Crew]):
    """A crew for each number of ranks."""

    def __missing__(self, ranks: int) -> Crew:
        self[ranks] = Crew(ranks)
        return self[ranks]


@contextmanager
def hired() -> Iterator[Crews]:
    """Crews that end with the ``with`` block."""
    pytest.importorskip("deepspeed")
    made = Crews()
    try:
        yield made
    finally:
        for crew in made.values():
            crew.end()
