"""``dsguard explain``."""

from __future__ import annotations

import difflib
from typing import Annotated

import typer

from dsguard.cli import options
from dsguard.cli.output import emit, stdout_look
from dsguard.render.page import render_page
from dsguard.render.stream import ColorChoice
from dsguard.rules import all_rules, find_rule, page


def explain(
    rule: Annotated[str, typer.Argument(metavar="RULE", help="A slug or a code.")],
    color: options.Color = ColorChoice.AUTO,
) -> None:
    """Show the page of a rule: what it finds, why it matters, how to fix it."""
    found = find_rule(rule)
    if found is None:
        known = [name for r in all_rules() for name in (r.meta.slug, r.meta.code)]
        close = difflib.get_close_matches(rule, known, n=1)
        hint = f"did you mean {close[0]}?" if close else "`dsguard rules` lists them"
        raise typer.BadParameter(f"no rule is called {rule}; {hint}", param_hint="RULE")
    look = stdout_look(color)
    text = render_page(page(found), color=look.color, unicode=look.unicode, columns=look.columns)
    emit(text)
