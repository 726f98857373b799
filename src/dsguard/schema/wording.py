"""The sentences of schema problems, one function for each sort.

Each message names the key by its dotted path, shows what was found, and says what DeepSpeed
does with it.
"""

from __future__ import annotations

from typing import Any, Literal

from packaging.version import Version

from dsguard.model.finding import Consequence
from dsguard.schema.history import NEWEST_KNOWN
from dsguard.schema.problem import Place, Problem, ProblemKind, show

_WHAT_HAPPENS = {
    Consequence.REFUSED: "DeepSpeed stops when it reads the config",
    Consequence.LATE: "DeepSpeed reads it unchecked and fails once it is used",
    Consequence.IGNORED: "DeepSpeed does not use it",
    Consequence.DIFFERS: "DeepSpeed uses it as it is, with another meaning",
}

TRUE_WORDS = frozenset({"1", "on", "t", "true", "y", "yes"})
"""Text that means true to its author, so that reading it as true changes nothing."""


def wrong_value(
    at: Place,
    value: Any,
    expected: str,
    consequence: Consequence = Consequence.REFUSED,
    kind: ProblemKind = ProblemKind.MISTYPED_VALUE,
) -> Problem:
    """A value of a type that is not taken or, by ``kind``, one out of range."""
    fate = _WHAT_HAPPENS[consequence]
    message = f"{at.dotted} is {show(value)} but must be {expected}; {fate}"
    return Problem(kind, at, "value", consequence, message, value, expected=expected)


def out_of_range(
    at: Place, value: Any, expected: str, consequence: Consequence = Consequence.REFUSED
) -> Problem:
    """A value of a good type that is too small, too large or not one of the choices."""
    return wrong_value(at, value, expected, consequence, ProblemKind.OUT_OF_RANGE_VALUE)


def not_a_boolean(at: Place, value: Any) -> Problem:
    """Text, a list or an object where DeepSpeed only asks whether the value counts as true."""
    truth = "true" if value else "false"
    harmless = isinstance(value, str) and value.lower() in TRUE_WORDS
    what = f"the string {show(value)}" if isinstance(value, str) else show(value)
    return Problem(
        ProblemKind.MISTYPED_VALUE,
        at,
        "value",
        Consequence.NOTE if harmless else Consequence.DIFFERS,
        f"{at.dotted} is {what}, not true or false; DeepSpeed does not convert it here and "
        f"takes it for {truth}",
        value,
        expected="true or false",
    )


def unfilled_auto(at: Place, consequence: Consequence, expected: str = "") -> Problem:
    """``"auto"`` that DeepSpeed keeps as a string."""
    happens = {
        Consequence.REFUSED: "fills nothing in and stops when it reads the config",
        Consequence.LATE: "fills nothing in, keeps the string and fails once it is used",
        Consequence.IGNORED: "fills nothing in and does not use it",
        Consequence.DIFFERS: "fills nothing in and reads the string as written",
    }
    return _auto(at, consequence, f"DeepSpeed itself {happens[consequence]}", expected)


def dropped_auto(at: Place, default: Any, expected: str) -> Problem:
    """``"auto"`` in a block whose model drops it, so that the default counts."""
    fate = f"DeepSpeed drops it and uses the default, {show(default)}"
    return _auto(at, Consequence.IGNORED, fate, expected)


def auto_counts_as_true(at: Place) -> Problem:
    """``"auto"`` in a true/false setting that is not converted: any text counts as true."""
    fate = "DeepSpeed itself fills nothing in and takes the string for true"
    return _auto(at, Consequence.DIFFERS, fate, "true or false")


def _auto(at: Place, consequence: Consequence, fate: str, expected: str) -> Problem:
    return Problem(
        ProblemKind.UNFILLED_AUTO,
        at,
        "value",
        consequence,
        f'{at.dotted} is "auto"; {fate}',
        "auto",
        expected=expected,
    )


def unknown_key(
    at: Place,
    value: Any,
    consequence: Consequence,
    *,
    newer_than_known: Version | None,
    dropped: bool,
    suggestions: tuple[str, ...],
    belongs: tuple[str, ...],
    misplaced: bool,
) -> Problem:
    """A key that DeepSpeed does not know where it stands."""
    known = "that DeepSpeed knows"
    if newer_than_known is not None:
        known = f"of any release up to {NEWEST_KNOWN}, the newest that this dsguard knows"
        fate = f"whether DeepSpeed {newer_than_known} has it is not known"
    elif consequence is Consequence.REFUSED:
        fate = f"DeepSpeed refuses unknown keys in {at.parent} and stops when it reads the config"
    elif dropped:
        fate = 'DeepSpeed drops it unseen, because its value is "auto"'
    else:
        fate = "DeepSpeed ignores it"
    name = at.dotted.rpartition(".")[2]
    if misplaced:
        where = " or ".join(_in_words(parent) for parent in belongs)
        said = f"{at.dotted} is in the wrong place: {name} belongs {where}; {fate}"
    else:
        said = f"{at.dotted} is not a key {known}; {fate}"
    return Problem(
        ProblemKind.MISPLACED_KEY if misplaced else ProblemKind.UNKNOWN_KEY,
        at,
        "key",
        consequence,
        said,
        value,
        suggestions=suggestions,
        belongs=belongs,
    )


def _in_words(parent: str) -> str:
    return f"under {parent}" if parent else "at the top level"


def removed_key(
    at: Place,
    value: Any,
    consequence: Consequence,
    *,
    removed_in: Version,
    target: Version,
    replacement: str | None,
) -> Problem:
    """A key that the target release no longer has."""
    if consequence is Consequence.REFUSED:
        fate = f"DeepSpeed {target} stops when it finds the key"
    else:
        fate = f"DeepSpeed {target} ignores it"
    return Problem(
        ProblemKind.REMOVED_KEY,
        at,
        "key",
        consequence,
        f"{at.dotted} was removed in DeepSpeed {removed_in}; {fate}",
        value,
        replacement=replacement,
    )


def too_new_key(
    at: Place, value: Any, consequence: Consequence, *, since: Version, target: Version
) -> Problem:
    """A key that the target release does not have yet."""
    fate = "refuses" if consequence is Consequence.REFUSED else "ignores"
    return Problem(
        ProblemKind.TOO_NEW_KEY,
        at,
        "key",
        consequence,
        f"{at.dotted} exists since DeepSpeed {since}; DeepSpeed {target} does not know it and "
        f"{fate} it",
        value,
    )


def deprecated_key(
    at: Place,
    value: Any,
    consequence: Consequence,
    replacement: str | None,
    fate: str = "",
) -> Problem:
    """An old key or form that DeepSpeed still accepts."""
    fates = {
        Consequence.NOTE: "DeepSpeed still reads it",
        Consequence.IGNORED: "it has no effect any more",
        Consequence.LATE: "DeepSpeed accepts it when it reads the config and fails later",
    }
    return Problem(
        ProblemKind.DEPRECATED_KEY,
        at,
        "key",
        consequence,
        f"{at.dotted} is deprecated; {fate or fates[consequence]}",
        value,
        replacement=replacement,
    )


def conflict(
    at: Place, value: Any, other: Place, consequence: Consequence, fate: str, replacement: str = ""
) -> Problem:
    """Two keys that say the same thing; ``at`` is the one that should go."""
    return Problem(
        ProblemKind.CONFLICTING_KEYS,
        at,
        "key",
        consequence,
        f"{at.dotted} and {other.dotted} are the same setting; {fate}",
        value,
        replacement=replacement or None,
        other=other.pointer,
    )


def placeholder(at: Place, value: str, count: int, *, refused: bool) -> Problem:
    """The first of the placeholders that make a config a template.

    ``refused`` says whether DeepSpeed would stop if it were given the template itself.
    """
    rest = "the value it stands for is" if count == 1 else f"this and {count - 1} more are"
    return Problem(
        ProblemKind.PLACEHOLDER,
        at,
        "value",
        Consequence.REFUSED if refused else Consequence.NOTE,
        f"{at.dotted} is {show(value)}, a placeholder, so this file is a template; {rest} not "
        "judged",
        value,
    )


def combination(at: Place, value: Any, other: Place | None, message: str) -> Problem:
    """Values that DeepSpeed refuses together when it reads the config."""
    return Problem(
        ProblemKind.REFUSED_COMBINATION,
        at,
        "value",
        Consequence.REFUSED,
        f"{message}; DeepSpeed stops when it reads the config",
        value,
        other=other.pointer if other else None,
    )


def failing(at: Place, value: Any, other: Place | None, message: str, stops: str) -> Problem:
    """Values that the config reader takes and that stop DeepSpeed where it uses them.

    ``stops`` names that place, completing "... stops".
    """
    return Problem(
        ProblemKind.FAILING_COMBINATION,
        at,
        _part(value),
        Consequence.LATE,
        f"{message}; {stops} stops",
        value,
        other=other.pointer if other else None,
    )


def unused(
    at: Place,
    value: Any,
    other: Place | None,
    message: str,
    consequence: Consequence = Consequence.IGNORED,
) -> Problem:
    """A value that is fine and does nothing, as ``message`` says."""
    return Problem(
        ProblemKind.UNUSED_SETTING,
        at,
        _part(value),
        consequence,
        message,
        value,
        other=other.pointer if other else None,
    )


def _part(value: Any) -> Literal["key", "value"]:
    """An object is pointed at by its key, because it may be long."""
    return "key" if isinstance(value, dict) else "value"
