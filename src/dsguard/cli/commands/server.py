"""``dsguard server``."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import TextIO

from dsguard.cli.output import fail


def server() -> None:
    """Serve an editor: diagnostics, explanations and fixes.

    The editor starts it and speaks the Language Server Protocol over standard input and
    output. Needs dsguard[lsp].
    """
    if find_spec("pygls") is None:
        fail("dsguard server needs pygls", "pip install 'dsguard[lsp]'")
    for name, stream in (("input", sys.stdin), ("output", sys.stdout)):
        if not _is_open(stream):
            fail(f"standard {name} is closed, over which an editor speaks")
    from dsguard.server.language_server import make_server

    make_server().start_io()


def _is_open(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.fileno() >= 0
    except (OSError, ValueError):
        return False
