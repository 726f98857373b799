"""The DeepSpeed release that a config is judged by."""

from __future__ import annotations

from packaging.version import InvalidVersion, Version

from dsguard.frontends.installed import installed
from dsguard.model.report import Target, TargetOrigin
from dsguard.schema.keys import NEWEST_KNOWN, OLDEST_KNOWN


class TargetError(ValueError):
    """A ``--target`` that is no release dsguard can judge by; the message says which are."""


def resolve_target(requested: str | None) -> Target:
    """The release given with ``--target``, else the installed one, else the newest known.

    The installed release is read from its metadata; DeepSpeed is not imported.

    Raises:
        TargetError: ``requested`` is not a version, or older than what dsguard knows.
    """
    if requested is not None:
        try:
            version = Version(requested)
        except InvalidVersion:
            raise TargetError(
                f"{requested!r} is not a DeepSpeed version; write it like {NEWEST_KNOWN}"
            ) from None
        if version < OLDEST_KNOWN:
            raise TargetError(
                f"DeepSpeed {requested} is older than {OLDEST_KNOWN}, the first that dsguard knows"
            )
        return Target(str(version), TargetOrigin.OPTION)
    here = installed("deepspeed")
    if here is not None and here >= OLDEST_KNOWN:
        return Target(str(here), TargetOrigin.INSTALLED)
    return Target(str(NEWEST_KNOWN), TargetOrigin.NEWEST_KNOWN)
