"""Which release of a package a project pins, read from its lock file or its requirements."""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from packaging.version import Version

from dsguard.reading.errors import ReadError
from dsguard.reading.load import load_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class Pin(Struct, frozen=True):
    """The one release of a package that a project is run with, and the file that says so."""

    version: Version
    file: Path


def pinned(package: str, folder: Path) -> Pin | None:
    """The pin of the project that a folder belongs to, None where there is none or several.

    ``package`` is the name as indexes write it: lower case, with hyphens.
    The nearest folder upwards with a pin counts, up to the root of the repository. A lock file
    counts before requirements files, and those before ``pyproject.toml``. Only an exact release
    (``==``) is a pin. A file that cannot be read says nothing.
    """
    for here in (folder, *folder.parents):
        for patterns, read in _SOURCES:
            found = {
                version: path
                for pattern in patterns
                for path in _matching(here, pattern)
                for version in _versions(package, path, read)
            }
            if len(found) == 1:
                ((version, path),) = found.items()
                return Pin(version, path)
            if found:
                return None
        if (here / ".git").exists():
            return None
    return None


def _matching(here: Path, pattern: str) -> tuple[Path, ...]:
    """The files of a pattern, in order; a folder that has not changed is not listed again.

    Every check asks, and its folder may hold thousands of configs.
    """
    folder, name = (here / pattern).parent, PurePath(pattern).name
    try:
        return _listed(folder, folder.stat().st_mtime_ns, name)
    except OSError:
        return ()


@lru_cache(maxsize=1024)
def _listed(folder: Path, changed: int, name: str) -> tuple[Path, ...]:
    return tuple(sorted(folder.glob(name)))


def _versions(
    package: str, path: Path, read: Callable[[str, str], Iterable[str]]
) -> Iterator[Version]:
    try:
        text = load_path(path).text
        # A lock file is long, and most do not hold the package at all.
        texts = list(read(text, package)) if package in text.lower() else []
    except (ReadError, ValueError, RecursionError):  # an int of 5000 digits is a ValueError
        return
    for version in texts:
        try:
            yield Version(Version(version).public)
        except ValueError:  # InvalidVersion, or more digits than Python converts
            continue


def _locked(text: str, name: str) -> Iterator[str]:
    """uv.lock, poetry.lock and pdm.lock hold tables ``package``, pylock.toml ``packages``."""
    lock = _toml(text)
    for table in ("package", "packages"):
        for package in _items(lock.get(table)):
            if isinstance(package, dict) and package.get("name") == name:
                yield str(package.get("version"))


def _toml(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    content: dict[str, Any] = tomllib.loads(text)
    return content


def _required(text: str, name: str) -> Iterator[str]:
    lines = (line.partition(" #")[0].strip() for line in text.splitlines())
    return _exact((line.rstrip("\\").partition(" --hash")[0] for line in lines), name)


def _project(text: str, name: str) -> Iterator[str]:
    content = _toml(text)
    project = content.get("project")
    if isinstance(project, dict):
        yield from _exact(_items(project.get("dependencies")), name)
        for extra in _values(project.get("optional-dependencies")):
            yield from _exact(_items(extra), name)
    for group in _values(content.get("dependency-groups")):
        yield from _exact(_items(group), name)


def _exact(requirements: Iterable[Any], name: str) -> Iterator[str]:
    for text in requirements:
        # Parsing takes long, importing the parser longer, and of all lines few are exact ones
        # about the package.
        if not isinstance(text, str) or "==" not in text or name not in _canonical(text):
            continue
        from packaging.requirements import Requirement

        try:
            requirement = Requirement(text)
            clauses = list(requirement.specifier)
        except ValueError:
            continue  # an option of pip, a group of requirements, a path, a number that is too long
        if _canonical(requirement.name) == name and len(clauses) == 1:
            (clause,) = clauses
            if clause.operator in ("==", "===") and "*" not in clause.version:
                yield clause.version


def _canonical(name: str) -> str:
    """As ``packaging.utils.canonicalize_name``, which is slow to import."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _values(value: Any) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else []


_SOURCES: tuple[tuple[tuple[str, ...], Callable[[str, str], Iterable[str]]], ...] = (
    (("uv.lock", "pylock.toml", "poetry.lock", "pdm.lock"), _locked),
    (("requirements*.txt", "requirements/*.txt", "constraints*.txt"), _required),
    (("pyproject.toml",), _project),
)
