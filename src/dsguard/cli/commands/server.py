"""``dsguard server``."""

from __future__ import annotations

from importlib.util import find_spec

import typer

from dsguard.cli.output import complain

NEEDED = "the language server needs pygls: pip install 'dsguard[lsp]'"


def server() -> None:
    """Serve an editor: diagnostics, explanations and fixes.

    The editor starts it and speaks the Language Server Protocol over standard input and
    output. Needs dsguard[lsp].
    """
    if find_spec("pygls") is None:
        complain(NEEDED)
        raise typer.Exit(2)
    from dsguard.server.language_server import make_server

    make_server().start_io()
