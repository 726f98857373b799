"""The files that a command has read, which nothing that it writes may take the place of."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dsguard.baseline import Baseline
    from dsguard.model.report import Failure
    from dsguard.pairing import Input
    from dsguard.settings.project import Project


def files_read(
    names: Sequence[str],
    inputs: Sequence[Input],
    failures: Sequence[Failure],
    project: Project,
    baseline: Baseline | None = None,
) -> Iterator[Path]:
    """Configs, scripts, job files, hostfiles, settings and the baseline in force.

    What could not be read counts too, and what a shell has put behind standard input. Some of the
    paths may lead nowhere.

    Args:
        names: the words of the command line that name files.
        inputs: what they have become.
        failures: what could not be read.
        project: the settings in force.
        baseline: the baseline in force.
    """
    yield from (Path(name if name != "-" else "/dev/stdin") for name in names)
    yield from (Path(failure.subject) for failure in failures)
    for pair in inputs:
        yield from (path for _, path in pair.files())
        if pair.script is not None:
            yield pair.settings.folder / pair.script.source.name
        if pair.settings.hostfile is not None:
            yield pair.settings.hostfile
    if project.source is not None:
        yield Path(project.source.name)
    if baseline is not None:
        yield Path(baseline.source.name)
