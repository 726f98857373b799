"""Ranks that do different things; see ranks_differ.md."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.runtime.moments import CountsCompared, RanksCompared
from dsguard.runtime.rule import guard_rule

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dsguard.model.rule import Reporter

_HANG = ("gradient_accumulation_steps", "dataloader_length", "micro_batches", "optimizer_steps")
_CONFIG = "config: "
_SHOWN = 4


@guard_rule(
    code="DSG904",
    slug="ranks-differ",
    summary="the ranks of one run do not agree on what they run with",
    severity=Severity.ERROR,
    since="0.1.0",
    on=(RanksCompared, CountsCompared),
)
def ranks_differ(moment: RanksCompared | CountsCompared, report: Reporter) -> Iterator[Finding]:
    """Name what differs, and the ranks that stand apart."""
    values = {name: told for name, told in moment.apart.items() if not name.startswith(_CONFIG)}
    blocks = [name.removeprefix(_CONFIG) for name in moment.apart if name.startswith(_CONFIG)]
    if values:
        parted = _parted(values.get("dataloader_length", {}))
        yield report(
            moment.run.here(),
            "the ranks do not agree: "
            + "; ".join(f"{name} is {_listed(told)}" for name, told in values.items())
            + parted,
            Consequence.HANGS if any(name in _HANG for name in values) else Consequence.DIFFERS,
            help="build config, model and loader from the same values on every rank"
            + ("; a sampler that splits the data evenly has as many batches on all" * bool(parted)),
        )
    elif blocks:
        yield report(
            moment.run.here(),
            f"the ranks were given different configs: they differ in {', '.join(blocks)}",
            Consequence.DIFFERS,
            severity=Severity.WARNING,
            help="read the config from one file, or build it from the same values on every rank",
        )


def _listed(told: Mapping[int, Any]) -> str:
    """``4 on rank 0 and 6 others, 2 on rank 3``: the usual value once, the others by rank."""
    shown = {rank: repr(value) for rank, value in told.items()}
    usual, often = Counter(shown.values()).most_common(1)[0]
    first = next(rank for rank, value in shown.items() if value == usual)
    others = [f"{value} on rank {rank}" for rank, value in shown.items() if value != usual]
    if len(others) > _SHOWN:
        others[_SHOWN:] = [f"another on {len(others) - _SHOWN} ranks"]
    company = f" and {often - 1} more" if often > 1 else ""
    return f"{usual} on rank {first}{company}, " + ", ".join(others)


def _parted(lengths: Mapping[int, Any]) -> str:
    """Who runs out of batches first, and what becomes of the others."""
    known = {rank: length for rank, length in lengths.items() if isinstance(length, int)}
    if not known or min(known.values()) == max(known.values()):
        return ""
    first, most = min(known.values()), max(known.values())
    ended = [rank for rank, length in known.items() if length == first]
    others = next(rank for rank, length in known.items() if length == most)
    who = f"rank {ended[0]}" + (f" and {len(ended) - 1} more" if len(ended) > 1 else "")
    return (
        f"; {who} will have no batch left after {first}, {most - first} before rank {others}, "
        f"which waits for it from batch {first + 1} on"
    )
