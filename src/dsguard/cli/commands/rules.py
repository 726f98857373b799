"""``dsguard rules``."""

from __future__ import annotations

from dsguard import catalogue
from dsguard.cli import options
from dsguard.cli.output import emit, stdout_look
from dsguard.render.rule_table import render_rules
from dsguard.render.stream import ColorChoice


def rules(color: options.Color = ColorChoice.AUTO) -> None:
    """List all rules."""
    look = stdout_look(color)
    metas = [rule.meta for rule in catalogue.rules()]
    text = render_rules(metas, color=look.color, unicode=look.unicode, columns=look.columns)
    emit(text)
