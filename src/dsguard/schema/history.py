"""How a key changed from release to release.

A field of a block describes its key as the newest known release reads it. Its :class:`History`
says which releases have the key, and what was different in older ones.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from msgspec import Struct
from packaging.version import Version

from dsguard.model.finding import Consequence

OLDEST_KNOWN = Version("0.9.0")
"""The first release of DeepSpeed whose keys are recorded; ``since`` 0.9.0 means then or before."""

NEWEST_KNOWN = Version("0.19.8")
"""The newest release whose keys are recorded."""

SAME: Any = object()
"""Stands for "as in the newest known release"."""

numbered = cache(Version)
"""The release with a number. The same few numbers stand at hundreds of keys."""


class Was(Struct, frozen=True):
    """What was different about a key in the releases before ``before``.

    Each says how those releases differed from the newest known one, not from the next older form.
    ``type`` is another annotation, with its marks in ``Annotated``, or its text where that names
    what is not imported; ``wrong`` as in :func:`~dsguard.schema.block.key`; ``absent`` says that
    the releases did not read the key although older ones did.
    """

    before: str
    type: Any = SAME
    default: Any = SAME
    wrong: Consequence | None = None
    absent: bool = False


class History(Struct, frozen=True):
    """The releases that read a key, and what they made of it.

    ``since`` is the first release with the key and ``removed`` the first without it. ``was`` is
    in the order of the releases. See :func:`~dsguard.schema.block.key` for the rest.
    """

    since: Version
    removed: Version | None
    refused_when_gone: bool
    deprecated: Version | None
    replaced_by: str | None
    wrong: Consequence | None
    outdated: Consequence | None
    expected: str | None
    was: tuple[Was, ...]

    def form(self, release: Version) -> Was | None:
        """What was different in a release; None where nothing was."""
        return next((was for was in self.was if release < numbered(was.before)), None)

    def exists_in(self, release: Version) -> bool:
        """Whether a release reads the key."""
        if release < self.since or (self.removed is not None and release >= self.removed):
            return False
        form = self.form(release)
        return form is None or not form.absent

    @property
    def changes(self) -> tuple[Version, ...]:
        """The releases in which something about the key changed, oldest first."""
        changed = tuple(numbered(was.before) for was in self.was)
        return changed if self.removed is None else (*changed, self.removed)

    def gone_since(self, release: Version) -> Version | None:
        """The release that dropped the key, for one that no longer has it."""
        if release < self.since or self.exists_in(release):
            return None
        if self.removed is not None and release >= self.removed:
            return self.removed
        older = [numbered(was.before) for was in self.was if numbered(was.before) <= release]
        return max(older, default=self.since)
