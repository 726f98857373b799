"""Words that several outputs share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.fact import Origin, OriginKind
from dsguard.model.finding import Because, Confidence, Finding, Fix, Safety
from dsguard.render.values import show_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.report import Check, Failure
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


def reason(because: Because) -> str:
    """A number that a finding rests on, such as ``world_size is 4``."""
    return f"{because.fact} is {show_value(because.value)}"


def fix_title(fix: Fix) -> str:
    """What a fix does, and a warning where it changes what is trained."""
    unsafe = " (unsafe: changes training arithmetic)" if fix.safety is Safety.UNSAFE else ""
    return fix.title + unsafe


def notes(finding: Finding, *, pictured: bool = False) -> Iterator[tuple[str, str]]:
    """What is said below the message: kinds of notes and their texts.

    ``pictured``: reasons that stand in a source are drawn there and need no words.
    """
    for because in finding.because:
        if because.origin.location is None or not pictured:
            yield "because", f"{reason(because)} ({because.origin.describe()})"
    if finding.help:
        yield "help", finding.help
    if finding.fix is not None:
        yield "help", fix_title(finding.fix)
    if finding.confidence is not Confidence.HIGH:
        yield "note", f"confidence is {finding.confidence.value}"


def failed(failure: Failure) -> str:
    """What could not be checked, and why."""
    return f"{failure.subject}: {failure.message}" if failure.subject else failure.message


def check_name(check: Check) -> str:
    """What one check is about: the config and the launch command."""
    config = check.config or "no config"
    return f"{config}, launched by: {check.launch}" if check.launch is not None else config


def counted(number: int, noun: str, nouns: str = "") -> str:
    """A number with its noun, such as ``1 file`` or ``3 files``; ``nouns`` if not by an s."""
    return f"{number} {noun}" if number == 1 else f"{number} {nouns or noun + 's'}"
