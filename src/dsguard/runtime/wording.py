"""Words that several rules of the guard use."""

from __future__ import annotations


def micro_batches(count: int) -> str:
    """``1 micro-batch``, ``2 micro-batches``."""
    return f"{count} micro-batch" + ("" if count == 1 else "es")


def ordinal(number: int) -> str:
    """``2nd``, ``11th``: which one of a row."""
    if 10 <= number % 100 <= 20:
        return f"{number}th"
    return f"{number}" + {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
