"""The directives in all files that one check reads."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dsguard.launch.context import LaunchContext
    from dsguard.model.directive import Directive
    from dsguard.model.source import Source
    from dsguard.model.tree import Document
    from dsguard.script.script import Script


_MARK = "dsguard:"
"""What every directive holds: a text without it needs no further look."""


def collect(
    document: Document | None, launch: LaunchContext | None, script: Script | None
) -> tuple[Directive, ...]:
    """The directives of the config, the job files, the file of the launch and the script."""
    found: dict[str, Sequence[Directive]] = {}
    for source, directives in _files(document, launch, script):
        if source.name not in found and _MARK in source.text:
            found[source.name] = directives()
    if launch is not None and launch.command.source.is_file:
        name = launch.command.source.name
        found[name] = [_of_command(directive, launch) for directive in found.get(name, ())]
    return tuple(directive for directives in found.values() for directive in directives)


def _files(
    document: Document | None, launch: LaunchContext | None, script: Script | None
) -> Iterator[tuple[Source, Callable[[], Sequence[Directive]]]]:
    """The files, each with what finds its directives."""
    if launch is not None:
        jobs = [job.document for job in launch.jobs]
        for job in (*jobs, launch.launcher_config):
            if job is not None:
                yield job.source, lambda job=job: _of_yaml(job)  # type: ignore[misc]
    if document is not None and document.in_code:
        yield document.source, lambda: _of_python(document.source)
    elif document is not None:
        yield document.source, lambda: _of_hjson(document)
    if launch is not None and launch.command.source.is_file:
        yield launch.command.source, lambda: _of_launches(launch.command.source)
    if script is not None:
        yield script.source, lambda: _of_python(script.source)


# Few files hold a directive, and most checks need no reader of comments. The launches of a file,
# and the configs in a script, are checked one by one, but share its text: it is read once.


def _of_hjson(document: Document) -> Sequence[Directive]:
    from dsguard.reading.directives import directives_in

    return directives_in(document.source, document.comments)


def _of_yaml(document: Document) -> Sequence[Directive]:
    from dsguard.reading.comments import yaml_comments
    from dsguard.reading.directives import directives_in

    return directives_in(document.source, yaml_comments(document))


@lru_cache(maxsize=4)
def _of_python(source: Source) -> Sequence[Directive]:
    from dsguard.reading.comments import python_comments
    from dsguard.reading.directives import directives_in

    return directives_in(source, python_comments(source))


@lru_cache(maxsize=4)
def _of_launches(source: Source) -> Sequence[Directive]:
    from dsguard.launch.shell.find import comments_of
    from dsguard.reading.directives import directives_in

    return directives_in(source, comments_of(source))


def _of_command(directive: Directive, launch: LaunchContext) -> Directive:
    """A command on several lines has no room for comments: one before it means all of it."""
    source, span = launch.command.source, launch.command.span
    first, last = (source.position(offset).line for offset in span)
    if not first <= directive.first_line <= last:
        return directive
    return replace(directive, first_line=first, last_line=last)
