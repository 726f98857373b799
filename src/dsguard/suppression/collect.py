"""The directives in all files that one check reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from dsguard.launch.shell.find import comments_of
from dsguard.reading.comments import python_comments, yaml_comments
from dsguard.reading.directives import MARK, directives_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dsguard.launch.context import LaunchContext
    from dsguard.model.directive import Directive
    from dsguard.model.source import Source, Span
    from dsguard.model.tree import Document
    from dsguard.script.script import Script


def collect(
    document: Document | None, launch: LaunchContext | None, script: Script | None
) -> tuple[Directive, ...]:
    """The directives of the config, the job files, the file of the launch and the script."""
    found: dict[str, list[Directive]] = {}
    for source, comments in _files(document, launch, script):
        if source.name not in found and MARK in source.text:
            found[source.name] = directives_in(source, comments())
    if launch is not None and launch.command.source.is_file:
        name = launch.command.source.name
        found[name] = [_of_command(directive, launch) for directive in found.get(name, ())]
    return tuple(directive for directives in found.values() for directive in directives)


def _files(
    document: Document | None, launch: LaunchContext | None, script: Script | None
) -> Iterator[tuple[Source, Callable[[], list[Span]]]]:
    if launch is not None:
        jobs = [job.document for job in launch.jobs]
        for job in (*jobs, launch.launcher_config):
            if job is not None:
                yield job.source, lambda job=job: yaml_comments(job)  # type: ignore[misc]
    if document is not None and document.in_code:
        yield document.source, lambda: python_comments(document.source)
    elif document is not None:
        yield document.source, lambda: list(document.comments)
    if launch is not None and launch.command.source.is_file:
        yield launch.command.source, lambda: comments_of(launch.command.source)
    if script is not None:
        yield script.source, lambda: python_comments(script.source)


def _of_command(directive: Directive, launch: LaunchContext) -> Directive:
    """A command on several lines has no room for comments: one before it means all of it."""
    source, span = launch.command.source, launch.command.span
    first, last = (source.position(offset).line for offset in span)
    if not first <= directive.first_line <= last:
        return directive
    return replace(directive, first_line=first, last_line=last)
