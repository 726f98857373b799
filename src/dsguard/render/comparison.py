"""What differs between two run contracts, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.render.characters import sentence
from dsguard.render.line import Line
from dsguard.render.paint import FAINT, paint
from dsguard.render.values import show_value
from dsguard.render.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dsguard.comparing import Difference
    from dsguard.facts.contract import Contract


def render_comparison(
    before: Contract,
    after: Contract,
    differences: Sequence[Difference],
    *,
    color: bool,
    unicode: bool,
) -> str:
    """One block a difference: the name, then both values with who said them."""

    def safe(text: str) -> str:
        return sentence(text, unicode=unicode)

    if not differences:
        return paint([Line(safe(f"{before.name} and {after.name} run the same"))], color=color)
    lines: list[Line] = [Line(safe(f"--- {before.name}")), Line(safe(f"+++ {after.name}"))]
    for difference in differences:
        lines.append(Line())
        lines.append(Line(safe(_title(difference)), "bold"))
        lines.extend(_lines(difference, safe))
    lines.append(Line())
    lines.append(Line(safe(counted(len(differences), "difference")), FAINT))
    return paint(lines, color=color)


def _title(difference: Difference) -> str:
    return difference.name if difference.kind == "fact" else f"{difference.kind} {difference.name}"


def _lines(difference: Difference, safe: Callable[[str], str]) -> Iterator[Line]:
    if difference.kind == "file":
        yield Line(safe(f"  ~ {_of_file(difference)}"))
        return
    yield Line(safe(f"  - {_value(difference, difference.before, difference.said_before)}"), "red")
    yield Line(safe(f"  + {_value(difference, difference.after, difference.said_after)}"), "green")


def _of_file(difference: Difference) -> str:
    if difference.before is None:
        return "read by the second run only"
    if difference.after is None:
        return "read by the first run only"
    return "its content has changed"


def _value(difference: Difference, value: object, said: str) -> str:
    if value is None:
        if difference.kind == "package":
            return "not installed"
        return f"unknown: {said}" if said else "none"
    shown = show_value(value) if difference.kind == "fact" else str(value)
    return f"{shown}  ({said})" if said else shown
