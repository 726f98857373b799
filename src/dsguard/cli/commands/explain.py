"""``dsguard explain``."""

from __future__ import annotations

import difflib
import re
from typing import Annotated, Any

import typer

from dsguard.catalogue import find, page, rules, symptoms
from dsguard.cli import options
from dsguard.cli.output import emit, stdout_look, wrong_usage
from dsguard.model.rule import Rule
from dsguard.render.page import render_page
from dsguard.render.rule_table import render_rules
from dsguard.render.stream import ColorChoice

_TELLING = 10
"""How many letters a piece of a message needs to tell it from others."""


def complete_rule(incomplete: str) -> list[str]:
    """The slugs that a shell offers, those of the guard too."""
    return [rule.meta.slug for rule in rules() if rule.meta.slug.startswith(incomplete)]


def explain(
    rule: Annotated[
        str,
        typer.Argument(
            metavar="RULE|MESSAGE",
            help="A slug, a code, or the error message or symptom to look for.",
            autocompletion=complete_rule,
        ),
    ],
    color: options.Color = ColorChoice.AUTO,
) -> None:
    """Show the page of a rule, or the rules behind a message.

    The page says what the rule finds, why it matters and how to fix it. An error message or
    a symptom lists the rules that explain it.

    Example: dsguard explain batch-size-mismatch

    Example: dsguard explain "is not equal to micro_batch_per_gpu"
    """
    look = stdout_look(color)
    found = find(rule)
    if found is not None:
        text = page(found)
        emit(render_page(text, color=look.color, unicode=look.unicode, columns=look.columns))
        return
    metas = [other.meta for other in rules() if _shows(other, rule)]
    if not metas:
        raise wrong_usage(_nothing_called(rule), option="RULE")
    emit(render_rules(metas, color=look.color, unicode=look.unicode, columns=look.columns))


def _nothing_called(name: str) -> str:
    known = [it for rule in rules() for it in (rule.meta.slug, rule.meta.code)]
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]}?" if close else "`dsguard rules` lists them"
    return f"no rule or symptom is called {name}; {hint}"


def _shows(rule: Rule[Any], text: str) -> bool:
    """Whether a text is a part of a symptom, or a message that has a symptom's own words."""
    wanted = _plain(text)
    if len(wanted) < _TELLING or ("-" in text and " " not in text):
        return False
    for symptom in symptoms(rule):
        if wanted in _plain(symptom):
            return True
        # Log lines hold more than the message, and other numbers where the symptom has dots.
        message = re.sub(r"^`\w+(Error|Exception): ", "`", symptom)
        pieces = [_plain(piece) for piece in message.split("...")]
        telling = [piece for piece in pieces if len(piece) >= _TELLING]
        if telling and all(piece in wanted for piece in telling):
            return True
    return False


def _plain(text: str) -> str:
    return " ".join(text.replace("`", "").lower().split())
