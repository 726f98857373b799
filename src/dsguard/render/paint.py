"""Styles, and turning styled lines into a string."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from dsguard.model.finding import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from dsguard.render.line import Line

SEVERITY = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
FRAME = "blue"
REASON = "bold blue"
FAINT = "dim"
GOOD = "green"


def console(*, color: bool, width: int) -> Console:
    """A console that writes into a string and asks nothing of the environment."""
    from rich.console import Console

    return Console(
        file=StringIO(),
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        force_jupyter=False,
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
    )


def written(out: Console) -> str:
    """What was printed to a console of :func:`console`."""
    file = out.file
    assert isinstance(file, StringIO)
    return file.getvalue()


def paint(lines: Iterable[Line], *, color: bool) -> str:
    """Lines as one string, each ending in a line feed; never wrapped and never cut."""
    if not color:
        return "".join(line.plain + "\n" for line in lines)
    from rich.text import Text

    out = console(color=True, width=1_000_000)
    for line in lines:
        out.print(Text.assemble(*line.pieces), soft_wrap=True)
    return written(out)
