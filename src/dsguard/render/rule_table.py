"""All rules in a table, as ``dsguard rules`` shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

from dsguard.render.characters import sentence
from dsguard.render.paint import FAINT, SEVERITY, paint

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dsguard.model.rule import RuleMeta


def render_rules(
    rules: Iterable[RuleMeta], *, color: bool, unicode: bool, columns: int | None = None
) -> str:
    """One line a rule, grouped by family: code, slug, severity and summary.

    Where a line does not fit into ``columns`` the summary goes below it.
    """
    rules = list(rules)
    width = max(len(rule.slug) for rule in rules)
    lines: list[Text] = []
    family = ""
    for rule in rules:
        if rule.family != family:
            lines += [Text(), Text(rule.family, "bold")] if family else [Text(rule.family, "bold")]
            family = rule.family
        summary = sentence(rule.summary, unicode=unicode)
        line = Text.assemble(
            f"  {rule.code}  {rule.slug:{width}}  ",
            (f"{rule.severity.value:8}", SEVERITY[rule.severity]),
        )
        if columns is not None and cell_len(line.plain) + 1 + cell_len(summary) > columns:
            lines += [line, Text(f"          {summary}", FAINT)]
        else:
            lines.append(Text.assemble(line, f" {summary}"))
    return paint(lines, color=color)
