"""Words that several outputs share."""

from __future__ import annotations

from dsguard.model.fact import Origin, OriginKind
from dsguard.model.report import Check
from dsguard.model.source import Location

_SURROUNDINGS = {
    OriginKind.LAUNCH: "launch",
    OriginKind.ENVIRONMENT: "environment",
    OriginKind.OPTION: "option",
}


def place(location: Location) -> str:
    """``path:line:column`` of where something starts."""
    line, column = location.source.position(location.span.start)
    return f"{location.source.name}:{line}:{column}"


def said_by(origin: Origin) -> str:
    """Who said a value and where that stands, such as ``--nproc_per_node (launch)``."""
    words, location = origin.describe(), origin.location
    if location is not None and location.source.is_file:
        where = place(location)
        return words if words == where else f"{words} ({where})"
    if origin.argument and origin.kind in _SURROUNDINGS:
        return f"{words} ({_SURROUNDINGS[origin.kind]})"
    return "launch command" if origin.kind is OriginKind.LAUNCH else words


def check_name(check: Check) -> str:
    """What one check is about: the config and the launch command."""
    config = check.config or "no config"
    return f"{config}, launched by: {check.launch}" if check.launch is not None else config


def counted(number: int, noun: str) -> str:
    """A number with its noun, such as ``1 file`` or ``3 files``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
