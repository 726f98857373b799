"""What changes between two releases, as ``dsguard upgrade-check`` shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.model.fact import Fact, Known, Unknown
from dsguard.render.characters import sentence
from dsguard.render.line import Line
from dsguard.render.paint import FAINT, GOOD, SEVERITY, paint
from dsguard.render.values import show_value
from dsguard.render.wording import check_name, counted, place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.model.finding import Finding
    from dsguard.upgrading import Upgrade


def render_upgrade(upgrade: Upgrade, *, color: bool, unicode: bool) -> str:
    """What appears, what goes, which defaults and facts change; then how many of each."""

    def safe(text: str) -> str:
        return sentence(text, unicode=unicode)

    lines = [
        Line.assemble(
            (safe(check_name(upgrade.new)), "bold"),
            f": DeepSpeed {upgrade.old.target.version} -> {upgrade.new.target.version}",
        )
    ]
    if upgrade.appears:
        lines += [Line(), Line("Appears with the new release", "bold")]
        lines += [_finding(finding, safe(_told(finding))) for finding in upgrade.appears]
    if upgrade.goes:
        lines += [Line(), Line("Goes with the old release", "bold")]
        lines += [_finding(finding, safe(_told(finding))) for finding in upgrade.goes]
    changes = list(_changes(upgrade))
    if changes:
        lines += [Line(), Line("Means something else, because the config leaves it out", "bold")]
        lines += [Line(f"  {safe(change)}") for change in changes]
    lines += [Line(), _summary(upgrade, len(changes))]
    return paint(lines, color=color)


def _finding(finding: Finding, told: str) -> Line:
    style = SEVERITY[finding.severity]
    return Line.assemble(
        "  ",
        (f"{finding.severity.value}[{finding.code}]", style),
        f" {told}  ",
        (f"({finding.rule})", FAINT),
    )


def _told(finding: Finding) -> str:
    return f"{place(finding.location)}: {finding.message}"


def _changes(upgrade: Upgrade) -> Iterator[str]:
    """Defaults first; facts that follow from one of them are not said twice."""
    told = {default.dotted for default in upgrade.defaults}
    for default in upgrade.defaults:
        yield f"{default.dotted}: {show_value(default.old)} -> {show_value(default.new)}"
    for fact in upgrade.facts:
        if fact.name not in told:
            yield f"{fact.name}: {_value(fact.old)} -> {_value(fact.new)}"


def _value(fact: Fact) -> str:
    if isinstance(fact, Known):
        return show_value(fact.value)
    return "unknown" if isinstance(fact, Unknown) else "conflict"


def _summary(upgrade: Upgrade, changes: int) -> Line:
    if not (upgrade.appears or upgrade.goes or changes):
        return Line("Nothing changes for this config", GOOD)
    return Line(
        f"{counted(len(upgrade.appears), 'problem')} new, {len(upgrade.goes)} gone, "
        f"{counted(changes, 'value')} changed",
        "bold",
    )
