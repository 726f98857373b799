"""Putting any text into HTML."""

from __future__ import annotations

from html import escape

from dsguard.render.characters import visible


def safe(text: str) -> str:
    """The text for an element or a quoted attribute: no markup, nothing that moves the line."""
    return escape(visible(text, unicode=True))
