"""The document of a job file: JSON by its suffix, YAML otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.launch.jobs.job import JobFileError
from dsguard.model.source import Location, Source
from dsguard.reading.errors import HjsonSyntaxError, ReadError, YamlSyntaxError
from dsguard.reading.hjson import parse
from dsguard.reading.load import load_path

if TYPE_CHECKING:
    from pathlib import Path

    from dsguard.model.tree import Document


def load_job(path: Path, name: str, named_at: Location) -> Document:
    """Read a job file; ``named_at`` is where the launch names it.

    Raises:
        JobFileError: there is no such file, or it is no YAML (no JSON, by its suffix).
        dsguard.reading.errors.YamlUnavailableError: it is YAML, and no reader is installed.
    """
    try:
        source = load_path(path, name)
    except ReadError as error:
        raise JobFileError("job-file-missing", f"{name} {error.message}", named_at) from None
    return parse_job(source)


def parse_job(source: Source) -> Document:
    """The document of a job file's text.

    Raises:
        JobFileError: it is no YAML (no JSON, by its suffix).
        dsguard.reading.errors.YamlUnavailableError: it is YAML, and no reader is installed.
    """
    try:
        if source.name.lower().endswith(".json"):
            return _parse_json(source)
        from dsguard.reading.yaml import parse_yaml

        return parse_yaml(source)
    except (HjsonSyntaxError, YamlSyntaxError) as error:
        message = f"{source.name} cannot be read: {error.message}"
        raise JobFileError("job-file-syntax", message, error.location) from None


def _parse_json(source: Source) -> Document:
    document = parse(source)
    stop = next((deviation for deviation in document.deviations if deviation.stops), None)
    if stop is not None:
        message = f"{source.name} is not strict JSON: {stop.detail or stop.kind.value}"
        raise JobFileError("job-file-syntax", message, Location(source, stop.span))
    return document
