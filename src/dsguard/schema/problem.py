"""What can be wrong with a config value, as data.

A :class:`Problem` knows the JSON pointer it is about, never a line or a column: whoever
holds the document turns the pointer into a place.
"""

from __future__ import annotations

import json
import re
from enum import Enum
from typing import Any, Literal

from msgspec import Struct

from dsguard.model.finding import Consequence
from dsguard.model.tree import Trail, shown_name


class ProblemKind(str, Enum):
    """The sort of a problem.

    ``conflicting-keys``: two spellings of one setting, or a deprecated key together with its
    replacement. ``refused-combination``: each value is fine, but not together.
    ``failing-combination``: the same, and DeepSpeed only notices when it uses them.
    ``unused-setting``: a value that another one leaves without effect.
    ``unfilled-auto``: the string ``"auto"`` where DeepSpeed itself gives it no meaning.
    ``placeholder``: a value that is filled in before DeepSpeed reads the config; one for each
    config, at the first of them.
    """

    UNKNOWN_KEY = "unknown-key"
    MISPLACED_KEY = "misplaced-key"
    MISTYPED_VALUE = "mistyped-value"
    OUT_OF_RANGE_VALUE = "out-of-range-value"
    REMOVED_KEY = "removed-key"
    TOO_NEW_KEY = "too-new-key"
    DEPRECATED_KEY = "deprecated-key"
    CONFLICTING_KEYS = "conflicting-keys"
    REFUSED_COMBINATION = "refused-combination"
    FAILING_COMBINATION = "failing-combination"
    UNUSED_SETTING = "unused-setting"
    UNFILLED_AUTO = "unfilled-auto"
    PLACEHOLDER = "placeholder"


class Problem(Struct, frozen=True):
    """One thing DeepSpeed refuses, ignores or reads otherwise than written.

    ``at`` uses the spelling found in the config; ``part`` says whether the key or the value is at
    fault. ``consequence`` is ``refused`` exactly when
    ``DeepSpeedConfig`` raises while it reads the config, ``late`` when it reads the config
    and a later step fails. ``message`` is one sentence without a full stop. Where they
    apply: ``suggestions`` are spellings that may have been meant, best first; ``belongs`` are
    dotted paths of the blocks where the key is known (empty for
    the top level); ``replacement`` is what to use
    instead; ``expected`` says in words which values are taken; ``other`` is the pointer of the
    second key of a conflict or combination.
    """

    kind: ProblemKind
    at: Place
    part: Literal["key", "value"]
    consequence: Consequence
    message: str
    value: Any
    suggestions: tuple[str, ...] = ()
    belongs: tuple[str, ...] = ()
    replacement: str | None = None
    expected: str = ""
    other: str | None = None

    @property
    def pointer(self) -> str:
        """The JSON pointer (RFC 6901) of the place."""
        return self.at.pointer


class Place(Struct, frozen=True):
    """A key's place in the config."""

    trail: Trail

    def child(self, key: str | int) -> Place:
        """The place of a key or list item inside this one."""
        return Place(Trail(self.trail, key))

    @property
    def tokens(self) -> tuple[str, ...]:
        """The keys and indices on the way to it."""
        return self.trail.tokens

    @property
    def pointer(self) -> str:
        """The JSON pointer; made anew each time, as it repeats every key on its way."""
        return self.trail.pointer

    @property
    def dotted(self) -> str:
        """The dotted path, for messages; empty for the whole config."""
        return ".".join(map(_readable, self.tokens))

    @property
    def parent(self) -> str:
        """The dotted path of the block that holds this key, in words for the whole config."""
        return self.dotted.rpartition(".")[0] or "the config"


ROOT = Place(Trail(None, ""))


def _readable(key: str) -> str:
    if (key.isascii() and key.isidentifier()) or re.fullmatch(r"[\w#/$-]+", key):
        return shown_name(key)
    return json.dumps(shown_name(key))  # a dot, a space, a line end: the path stays readable


def show(value: Any, limit: int = 60) -> str:
    """A value as JSON on one line, cut where it gets long."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "a value nested too deep to show"
    return text if len(text) <= limit else text[: limit - 3] + "..."
