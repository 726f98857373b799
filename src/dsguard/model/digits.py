"""Whole numbers in texts."""

from __future__ import annotations

MOST_DIGITS = 4300
"""Python's own limit, which not every Python has and an environment variable lifts.

Without a limit the time that a number takes grows with the square of its digits.
"""


def whole_number(text: str) -> int | None:
    """The number that decimal digits spell; None for other texts and for too many digits."""
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None
