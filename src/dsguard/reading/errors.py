"""What can go wrong while reading: no text at all, or a text that is no HJSON or YAML."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dsguard.model.source import Location


class ReadError(Exception):
    """Bytes could not be had, or are no text.

    ``subject`` is the path or name as the user gave it, ``message`` a clause without a full
    stop that says what is wrong with it, ``help`` a way out (may be empty).
    """

    def __init__(self, subject: str, message: str, help: str = "") -> None:
        super().__init__(f"{subject}: {message}")
        self.subject = subject
        self.message = message
        self.help = help


class HjsonSyntaxError(Exception):
    """The text is not HJSON: ``hjson.load`` raises an error for it.

    ``message`` is a clause without a full stop; ``location`` the place to repair, which may be
    an earlier one than where hjson gives up; ``help`` a way out (may be empty).
    """

    def __init__(self, message: str, location: Location, help: str = "") -> None:
        line, column = location.source.position(location.span.start)
        super().__init__(f"{location.source.name}:{line}:{column}: {message}")
        self.message = message
        self.location = location
        self.help = help


class HjsonCrashError(HjsonSyntaxError):
    """The hjson package fails by accident here, not with its own ``HjsonDecodeError``.

    It runs off the end of the text (IndexError), meets a number that Python cannot hold
    (ValueError, OverflowError) or nests too deep (RecursionError). The difference counts
    because only its own error lets hjson try a text without braces as a single value.
    """


class YamlSyntaxError(Exception):
    """The text is not YAML that ``yaml.safe_load`` reads.

    ``message`` is a clause without a full stop; ``location`` where the reader stopped; ``help`` a
    way out (may be empty).
    """

    def __init__(self, message: str, location: Location, help: str = "") -> None:
        line, column = location.source.position(location.span.start)
        super().__init__(f"{location.source.name}:{line}:{column}: {message}")
        self.message = message
        self.location = location
        self.help = help


class YamlUnavailableError(Exception):
    """The ``yaml`` extra is not installed."""

    def __init__(self) -> None:
        super().__init__("install dsguard[yaml] to read YAML files")
