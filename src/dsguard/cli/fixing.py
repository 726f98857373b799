"""``--fix`` and ``--diff``: fixing the configs of one call."""

from __future__ import annotations

import difflib
import os
from io import StringIO
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from dsguard.fixing.passes import FixError, fix_config
from dsguard.model.finding import Finding, Safety
from dsguard.model.report import Check, Failure
from dsguard.model.source import Source
from dsguard.pairing import check_all
from dsguard.policy import Policy, make_report
from dsguard.render.characters import visible
from dsguard.render.line import Line
from dsguard.render.paint import paint
from dsguard.writing import WriteError, rewrite

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from dsguard.pairing import Input


class FixedConfig(Struct, frozen=True):
    """A config whose text changes; ``path`` is None for standard input.

    ``places`` are the indices of its checks, ``count`` is how many fixes were applied.
    """

    path: Path | None
    old: Source
    new: Source
    places: tuple[int, ...]
    count: int

    def write(self) -> None:
        """Put the new text into the file.

        Raises:
            WriteError: it cannot be written and is left alone.
        """
        if self.path is not None:
            rewrite(self.path, self.old.name, self.old.text, self.new.text)

    def diff(self, *, color: bool, terminal: bool = False) -> str:
        """The difference as a unified diff, which ``patch`` takes.

        On a terminal the lines of the file are made safe to show, and are for reading only.
        """
        lines = difflib.unified_diff(
            # Lines end where patch ends them: str.splitlines knows eight more ends.
            list(StringIO(self.old.text, newline="\n")),
            list(StringIO(self.new.text, newline="\n")),
            visible(self.old.name, unicode=True),
            visible(self.new.name, unicode=True),
        )
        return "".join(_diff_line(line, color=color, terminal=terminal) for line in lines)


def fix_inputs(
    inputs: Sequence[Input], checks: Sequence[Check], policy: Policy, *, unsafe: bool
) -> tuple[list[FixedConfig], list[Failure]]:
    """The configs that the fixes of some checks change, nothing of it written yet.

    A config that several pairs share is fixed once, until none of its checks offers a fix; one
    with more findings than can be told is not fixed.
    """
    fixed: list[FixedConfig] = []
    failures: list[Failure] = []
    kinds = (Safety.SAFE, Safety.UNSAFE) if unsafe else (Safety.SAFE,)
    report = make_report(checks, policy)
    for places in _by_file(inputs):
        if not any(report.checks[index].fixable(kind) for index in places for kind in kinds):
            continue
        group = [inputs[index] for index in places]
        # A link is not replaced, and the file that it leads to may be named as well.
        shown = next((one for one in group if one.path and not one.path.is_symlink()), group[0])
        first = shown.config
        assert isinstance(first, Source)
        if any(report.checks[index].untold for index in places):
            # Each pass would check all of it to fix the few that are told.
            message = "it is left alone: more is wrong with it than can be told"
            failures.append(Failure(first.name, message, "mend some of it by hand"))
            continue

        def find(source: Source, group: Sequence[Input] = group) -> Iterable[Finding]:
            again = check_all(replace(one, config=source) for one in group)
            return [finding for _, finding in make_report(again, policy).findings]

        try:
            result = fix_config(first, find, unsafe=unsafe)
        except FixError as error:
            failures.append(Failure(first.name, error.message, error.help))
            continue
        if result.source.text != first.text:
            fixed.append(FixedConfig(shown.path, first, result.source, tuple(places), result.count))
    return fixed, failures


def write_all(fixed: Sequence[FixedConfig]) -> tuple[list[FixedConfig], list[Failure]]:
    """Write the fixed configs: those that are written, and why others are not."""
    written: list[FixedConfig] = []
    failures: list[Failure] = []
    for one in fixed:
        try:
            one.write()
        except WriteError as error:
            failures.append(Failure(error.subject, error.message, error.help))
        else:
            written.append(one)
    return written, failures


def check_again(
    inputs: Sequence[Input], checks: Sequence[Check], fixed: Sequence[FixedConfig]
) -> list[Check]:
    """The checks, those of fixed configs made anew."""
    again = list(checks)
    for one in fixed:
        for index in one.places:
            config = inputs[index].config
            assert isinstance(config, Source)
            source = replace(config, text=one.new.text)
            again[index] = replace(inputs[index], config=source).check()
    return again


def _by_file(inputs: Sequence[Input]) -> Iterator[list[int]]:
    groups: dict[str | None, list[int]] = {}
    for index, item in enumerate(inputs):
        if item.editable:
            # One file may have several names: links lead to it.
            key = None if item.path is None else os.path.realpath(item.path)
            groups.setdefault(key, []).append(index)
    yield from groups.values()


def _diff_line(line: str, *, color: bool, terminal: bool) -> str:
    whole = line.endswith("\n")
    if terminal:
        shown = (visible(part, unicode=True) for part in line.rstrip("\r\n").split("\t"))
        line = "\t".join(shown) + ("\n" if whole else "")
    if color:
        style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
        styled = Line(line.rstrip("\r\n"), "bold" if line.startswith(("+++", "---")) else style)
        painted = paint([styled], color=True).rstrip("\n")
        line = painted + line[len(line.rstrip("\r\n")) :]
    return line if whole else f"{line}\n\\ No newline at end of file\n"
