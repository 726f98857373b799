"""Questions about the command line of a script."""

from __future__ import annotations

from msgspec import Struct

from dsguard.script.declaration import Declaration, Unreadable
from dsguard.script.script import ABBREVIATING, Script
from dsguard.script.training_arguments import (
    OLDER_NAMES,
    FrameworkDefault,
    framework_default,
    framework_names,
)


class Ambiguous(Struct, frozen=True):
    """An abbreviation that the parser refuses, and the flags it could mean."""

    flags: tuple[str, ...]


def argument_value(script: Script, name: str) -> Declaration | None:
    """The declaration that gives ``name`` its default, None where the script declares none.

    Of several declarations with one name the first counts, as in argparse.
    """
    return next((d for d in script.arguments if d.name == name), None)


def framework_value(script: Script, name: str) -> FrameworkDefault | None:
    """The default of a training argument that the script leaves to transformers or TRL."""
    if script.framework is None or argument_value(script, name) is not None:
        return None
    return framework_default(script.framework, name)


def expand(script: Script, flag: str) -> str | Ambiguous | Unreadable | None:
    """The name of the argument that a flag on the command line means.

    A flag that is no exact one is taken as an abbreviation where the parser allows it.
    ``=value`` must have been cut off.

    Returns:
        The name; Ambiguous or None where the parser refuses the flag; Unreadable where what
        could be read of the script does not settle it.

    Source: ``argparse.py``, ``_parse_optional`` and ``_get_option_tuples``.
    """
    known = script.flags
    if flag in known:
        return known[flag]
    unclear = _unclear(script)
    if script.parser not in ABBREVIATING:
        return unclear
    found = [other for other in known if _matches(flag, other)] if script.abbreviations else []
    if len(found) > 1:
        return Ambiguous(tuple(found))
    if unclear is not None:
        return unclear
    if script.is_training_arguments and any(f"--{n}".startswith(flag) for n in OLDER_NAMES):
        return Unreadable(f"what {flag} means differs between releases of transformers")
    return known[found[0]] if found else None


def _matches(flag: str, other: str) -> bool:
    if other.startswith(flag):
        return True
    return not flag.startswith("--") and other == flag[:2]


def _unclear(script: Script) -> Unreadable | None:
    """Why the flags of a script are not all known."""
    if script.unreadable is not None:
        return Unreadable(script.unreadable)
    if script.gaps:
        return Unreadable(script.gaps[0].reason)
    if not script.arguments and script.framework is None:
        return Unreadable("what the script makes of its command line could not be read")
    if script.framework is not None and framework_names(script.framework) is None:
        return Unreadable(f"the arguments that {script.framework} adds are not known")
    return None
