"""A comparison of ways of batching as JSON, version 1."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter

from dsguard.data.comparison import Comparison, Lengths
from dsguard.data.report import Audit
from dsguard.records.schema import published_schema


@dataclass(frozen=True)
class WayReport:
    """One way of batching. ``relative_time``: of an epoch, as a share of a shuffled one."""

    relative_time: float
    problems: tuple[str, ...]
    audit: Audit


@dataclass(frozen=True)
class BalanceReport:
    """What ``dsguard balance -o json`` says; shares are of 1, lengths are tokens."""

    version: Literal[1]
    file: str
    world_size: int
    micro_batch_size: int
    gradient_accumulation_steps: int
    attention_length: float | None
    lengths: Lengths
    ways: dict[str, WayReport]


@cache
def _adapter() -> TypeAdapter[BalanceReport]:
    """Made when it is used: the other commands do not pay for it."""
    return TypeAdapter(BalanceReport)


def render_balance_json(name: str, told: Comparison) -> str:
    """The figures of every way of batching, indented by two spaces."""
    report = BalanceReport(
        version=1,
        file=name,
        world_size=told.world_size,
        micro_batch_size=told.micro_batch_size,
        gradient_accumulation_steps=told.gradient_accumulation_steps,
        attention_length=told.attention_length,
        lengths=told.lengths,
        ways={
            way: WayReport(told.relative_time(way), audit.problems, audit)
            for way, audit in told.ways.items()
        },
    )
    return _adapter().dump_json(report, indent=2).decode("utf-8") + "\n"


def balance_report_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of it."""
    return published_schema(_adapter(), "dsguard balance on the lengths of a data set")
