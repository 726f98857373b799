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


class TextError(Exception):
    """A text that a reader refuses.

    ``message`` is a clause without a full stop, ``location`` the place to repair, ``help`` a way
    out (may be empty).
    """

    def __init__(self, message: str, location: Location, help: str = "") -> None:
        line, column = location.source.position(location.span.start)
        super().__init__(f"{location.source.name}:{line}:{column}: {message}")
        self.message = message
        self.location = location
        self.help = help


class HjsonSyntaxError(TextError):
    """The text is not HJSON: ``hjson.load`` raises an error for it.

    ``location`` may be an earlier place than where hjson gives up.
    """


class HjsonCrashError(HjsonSyntaxError):
    """The hjson package fails by accident here, not with its own ``HjsonDecodeError``.

    It runs off the end of the text (IndexError), meets a number that Python cannot hold
    (ValueError, OverflowError) or nests too deep (RecursionError). The difference counts
    because only its own error lets hjson try a text without braces as a single value.
    """


class YamlSyntaxError(TextError):
    """The text is not YAML that ``yaml.safe_load`` reads; ``location`` is where it stopped."""


class YamlUnavailableError(Exception):
    """The ``yaml`` extra is not installed."""

    def __init__(self) -> None:
        super().__init__("install dsguard[yaml] to read YAML files")
