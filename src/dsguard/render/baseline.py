"""What a baseline accepts, by file."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from dsguard.render.characters import sentence
from dsguard.render.line import Line
from dsguard.render.paint import FAINT, paint
from dsguard.render.wording import counted

if TYPE_CHECKING:
    from dsguard.baseline import Baseline


def render_baseline(baseline: Baseline, *, color: bool, unicode: bool) -> str:
    """The entries under their files, and how many there are."""
    lines: list[Line] = []
    width = max((len(entry.rule) for entry in baseline.entries), default=0)
    for file, entries in groupby(sorted(baseline.entries), key=lambda entry: entry.file):
        lines.append(Line(sentence(file or "launch command", unicode=unicode), "bold"))
        for entry in entries:
            place = sentence(entry.pointer, unicode=unicode)
            lines.append(Line.assemble(f"  {entry.rule:{width}}", (f"  {place}".rstrip(), FAINT)))
        lines.append(Line())
    number = counted(len(baseline.entries), "accepted finding")
    name = sentence(baseline.source.name, unicode=unicode)
    lines.append(Line(f"{name}: {number}", "bold"))
    return paint([line.trimmed() for line in lines], color=color)
