"""Reading the settings."""

from __future__ import annotations

import dataclasses
import difflib
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from packaging.specifiers import SpecifierSet
from pydantic import TypeAdapter, ValidationError

from dsguard import __version__
from dsguard.model.source import Location, Source, Span
from dsguard.reading.load import load_path
from dsguard.settings.find import SHARED_FILE, SHARED_TABLE
from dsguard.settings.model import (
    IgnoreAtSettings,
    JobSettings,
    ProjectSettings,
    key_of,
)
from dsguard.settings.places import TomlPath, tomllib, value_at
from dsguard.settings.project import Mistake, Project, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_WORDS = {
    "string_pattern_mismatch": "must be a JSON pointer such as /optimizer/params/lr",
    "string_too_short": "must not be empty",
}
"""What pydantic would not say in words of the settings."""


def read_project(path: Path, name: str) -> Project:
    """The settings in a file; ``name`` is the path as the user knows it.

    Raises:
        dsguard.reading.errors.ReadError: the file cannot be read.
        SettingsError: it is no TOML, or says what settings cannot.
    """
    source = load_path(path, name)
    try:
        data = tomllib.loads(source.text.removeprefix("\ufeff"))
    except (ValueError, RecursionError) as error:
        raise SettingsError([_syntax(source, error)]) from None
    table = SHARED_TABLE if path.name == SHARED_FILE or set(data) == {"tool"} else ()
    try:
        given = value_at(data, table)
    except LookupError:
        given = {}
    bare = Project(path.parent, source=source, table=table)
    if not isinstance(given, dict):
        raise bare.mistake("tool.dsguard must be a table")
    _require_version(bare, given.get("required-version"))
    try:
        settings = _reader().validate_python(given)
    except ValidationError as error:
        mistakes = sorted(_mistakes(bare, given, error), key=lambda one: one.at.span)
        raise SettingsError(mistakes) from None
    return Project(path.parent, settings, source, table)


@cache
def _reader() -> TypeAdapter[ProjectSettings]:
    return TypeAdapter(ProjectSettings)


def _syntax(source: Source, error: Exception) -> Mistake:
    """The message of the reader, with its place taken out of the words."""
    if not isinstance(error, tomllib.TOMLDecodeError):  # the limits of Python
        deep = isinstance(error, RecursionError)
        what = (
            "its tables and lists nest too deep" if deep else "it holds a number that is too long"
        )
        return Mistake(Location(source, Span(0, 0)), f"this cannot be read: {what}")
    message = str(error)
    found = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
    start = len(source.text)
    if found is not None and found[1] is not None:
        start = source.start_of(int(found[1])) + int(found[2]) - 1
        message = message[: found.start()]
    message = f"this is no TOML: {message[:1].lower()}{message[1:]}"
    return Mistake(Location(source, Span(start, start)), message)


def _require_version(project: Project, wanted: Any) -> None:
    """Check this before all else: settings for another release may have other keys."""
    if wanted is None:
        return
    try:
        fits = SpecifierSet(str(wanted)).contains(__version__, prereleases=True)
    except ValueError:  # InvalidSpecifier, or more digits than Python converts
        raise project.mistake(
            f"required-version {wanted!r} is no version specifier",
            "required-version",
            help='write it as in ">=0.1,<1"',
        ) from None
    if not fits:
        raise project.mistake(
            f"these settings are for dsguard {wanted}, and this is {__version__}",
            "required-version",
            help=f'pip install "dsguard{wanted}"',
        )


def _mistakes(project: Project, given: dict[str, Any], error: ValidationError) -> Iterator[Mistake]:
    seen: set[TomlPath] = set()
    for one in error.errors():
        path = _existing(given, one["loc"])
        if one["type"] == "missing":
            key = one["loc"][-1]
            yield Mistake(project.place(*path), f"{_dotted(path)} has no key {key}")
        elif path not in seen:
            seen.add(path)
            if one["type"] == "unexpected_keyword_argument":
                yield _unknown(project, path)
            else:
                message = _WORDS.get(one["type"], one["msg"].replace("Input should be", "must be"))
                yield Mistake(project.place(*path), f"{_dotted(path)} {message}")


def _existing(given: Any, path: tuple[str | int, ...]) -> TomlPath:
    """The part of a path that is there: pydantic adds the names of types it has tried."""
    for end in range(len(path), 0, -1):
        try:
            value_at(given, path[:end])
        except LookupError:
            continue
        return path[:end]
    return ()


def _unknown(project: Project, path: TomlPath) -> Mistake:
    known = _keys_at(path[:-1])
    close = difflib.get_close_matches(str(path[-1]).replace("_", "-"), known, n=1)
    help = f"did you mean {close[0]}?" if close else f"the keys are: {', '.join(known)}"
    return Mistake(project.place(*path), f"there is no setting {_dotted(path)}", help)


def _keys_at(path: TomlPath) -> list[str]:
    """The keys of the table at a path."""
    tables = {"job": JobSettings, "ignore-at": IgnoreAtSettings}
    table = tables[str(path[0])] if path else ProjectSettings
    return [key_of(one.name) for one in dataclasses.fields(table)]


def _dotted(path: TomlPath) -> str:
    """``job[1].launch``; the whole settings where the path is empty."""
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "the settings"
