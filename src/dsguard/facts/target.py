"""The DeepSpeed release that a config is judged by."""

from __future__ import annotations

from pathlib import Path

from packaging.version import Version

from dsguard.frontends.installed import installed
from dsguard.frontends.pinned import pinned
from dsguard.model.report import Target, TargetOrigin
from dsguard.schema.history import NEWEST_KNOWN, OLDEST_KNOWN


class TargetError(ValueError):
    """A ``--target`` that is no release dsguard can judge by; the message says which are."""


def resolve_target(
    requested: str | None, folder: Path | None = None, *, look_here: bool = True
) -> Target:
    """The release given with ``--target``, else the installed, the pinned or the newest known one.

    The installed release is read from its metadata; DeepSpeed is not imported. Without
    ``look_here`` it does not count. A pin is looked for in the project that ``folder`` belongs to,
    the current folder by default.

    Raises:
        TargetError: ``requested`` is not a version, or older than what dsguard knows.
    """
    if requested is not None:
        try:
            version = Version(requested)
        except ValueError:  # InvalidVersion, or more digits than Python converts
            raise TargetError(
                f"{requested!r} is not a DeepSpeed version; write it like {NEWEST_KNOWN}"
            ) from None
        if version < OLDEST_KNOWN:
            raise TargetError(
                f"DeepSpeed {requested} is older than {OLDEST_KNOWN}, the first that dsguard knows"
            )
        return Target(str(version), TargetOrigin.OPTION)
    here = installed("deepspeed") if look_here else None
    if here is not None and here >= OLDEST_KNOWN:
        return Target(str(here), TargetOrigin.INSTALLED)
    pin = pinned("deepspeed", folder or Path.cwd())
    if pin is not None and pin.version >= OLDEST_KNOWN:
        return Target(str(pin.version), TargetOrigin.PINNED, pin.file.name)
    return Target(str(NEWEST_KNOWN), TargetOrigin.NEWEST_KNOWN)


def release_beside(package: str, target: Target, folder: Path) -> Version | None:
    """The release of another package that the target release runs beside, None where not known.

    What is installed here says so only where the target release is installed here as well. A
    target that was asked for or is pinned belongs to another environment, which pins describe.
    """
    if target.origin is TargetOrigin.INSTALLED:
        return installed(package)
    pin = pinned(package, folder)
    return pin.version if pin is not None else None
