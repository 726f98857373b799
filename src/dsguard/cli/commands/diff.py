"""``dsguard diff``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dsguard.cli import options
from dsguard.cli.contracts import load_contract
from dsguard.cli.output import INCOMPLETE, complain, emit, stdout_look
from dsguard.comparing import compare
from dsguard.facts.contract import CHECKPOINT_NAME, Contract
from dsguard.reading.errors import ReadError
from dsguard.render.comparison import render_comparison
from dsguard.render.stream import ColorChoice


def diff(
    one: Annotated[str, typer.Argument(metavar="A.json", help="A contract, or a checkpoint.")],
    other: Annotated[str, typer.Argument(metavar="B.json", help="Another one.")],
    color: options.Color = ColorChoice.AUTO,
) -> None:
    """Show what differs between two run contracts, and who said so.

    Example: dsguard diff yesterday.dsguard.json today.dsguard.json

    A folder stands for the contract that the guard keeps in a checkpoint. Exit codes: 0 the runs
    are the same, 1 they differ, 2 wrong usage, 3 a contract cannot be read.
    """
    before, after = _load(one), _load(other)
    differences = compare(before, after)
    look = stdout_look(color)
    emit(render_comparison(before, after, differences, color=look.color, unicode=look.unicode))
    raise typer.Exit(1 if differences else 0)


def _load(name: str) -> Contract:
    path = Path(name)
    try:
        return load_contract(path / CHECKPOINT_NAME if path.is_dir() else path)
    except ReadError as error:
        way_out = f" ({error.help})" if error.help else ""
        complain(f"{error}{way_out}")
        raise typer.Exit(INCOMPLETE) from None
