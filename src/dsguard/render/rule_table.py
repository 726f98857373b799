"""All rules in a table, as ``dsguard rules`` shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.render.characters import sentence
from dsguard.render.line import Line, cells
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
    lines: list[Line] = []
    family = ""
    for rule in rules:
        if rule.family != family:
            lines += [Line(), Line(rule.family, "bold")] if family else [Line(rule.family, "bold")]
            family = rule.family
        summary = sentence(rule.summary, unicode=unicode)
        line = Line.assemble(
            f"  {rule.code}  {rule.slug:{width}}  ",
            (f"{rule.severity.value:8}", SEVERITY[rule.severity]),
        )
        if columns is not None and cells(line.plain) + 1 + cells(summary) > columns:
            lines += [line, Line(f"          {summary}", FAINT)]
        else:
            lines.append(Line.assemble(line, f" {summary}"))
    return paint(lines, color=color)
