"""What the rules of this family share: settings as DeepSpeed's blocks read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.values import as_switch, written
from dsguard.model.fact import Candidate, Known
from dsguard.model.finding import Because

if TYPE_CHECKING:
    from dsguard.facts.case import Case
    from dsguard.model.source import Location

OFFLOADED = ("cpu", "nvme")
"""The devices that offloaded numbers can go to."""

CPU_CLASSES = ("adam", "adamw", "lion")
"""The optimizer names that DeepSpeed builds under optimizer offload as a CPU class which refuses
parameters on a GPU (``step`` in deepspeed/ops/adam/cpu_adam.py and ops/lion/cpu_lion.py)."""


def zero(name: str) -> str:
    """The dotted key of a setting of zero_optimization."""
    return f"zero_optimization.{name}"


def switch(case: Case, key: str, default: bool) -> bool | None:
    """A true/false setting; None where its value is none or is not decided yet (``"auto"``)."""
    given = written(case.document, key)
    return default if given is None else as_switch(given.value)


def number(case: Case, key: str) -> float | None:
    """A written number, or None; a switch is no number, and text is not read."""
    given = written(case.document, key)
    if given is None or isinstance(given.value, bool):
        return None
    return given.value if isinstance(given.value, (int, float)) else None


def place(case: Case, key: str) -> Location:
    """Where a written setting stands; the caller has seen that it is written."""
    given = written(case.document, key)
    if given is None or given.origin.location is None:
        raise LookupError(f"{key} is not in the config")
    return given.origin.location


def reason(case: Case, key: str) -> tuple[Because, ...]:
    """The written setting as a reason; nothing where DeepSpeed's default counts."""
    given: Candidate | None = written(case.document, key)
    return (Because(key, given.value, given.origin),) if given else ()


def stage_of(case: Case) -> int:
    """The ZeRO stage of a case whose rule needs it."""
    return int(case.facts.known("zero_stage").value)


def stage_reason(case: Case) -> tuple[Because, ...]:
    """The stage as a reason."""
    return (Because.of("zero_stage", case.facts.known("zero_stage")),)


def release(case: Case) -> Version:
    """The DeepSpeed release that the case is judged by."""
    return Version(case.target.version)


def named_optimizer(case: Case) -> str | None:
    """The optimizer the config names, in lower case; None where it names none."""
    fact = case.facts["optimizer"]
    if isinstance(fact, Known) and isinstance(fact.value, str):
        return fact.value.lower()
    return None
