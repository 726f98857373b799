"""Writing to standard output."""

from __future__ import annotations

import os
import sys

from dsguard.render.stream import ColorChoice, Look, look_of


def stdout_look(color: ColorChoice) -> Look:
    """How standard output wants to be written."""
    return look_of(sys.stdout, os.environ, color)


def emit(text: str) -> None:
    """Write text made for standard output's own look."""
    sys.stdout.write(text)


def emit_json(text: str) -> None:
    """Write JSON, which is UTF-8 whatever the terminal's encoding (RFC 8259)."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8"))
