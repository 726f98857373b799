"""How numbers and words of a recorded run are written, in the terminal and on the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dsguard.records.report import Start, Violation, WindowKind


def number(value: float) -> str:
    """Four significant digits at most; whole numbers whole, with separators."""
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:.4g}"


def short(value: int) -> str:
    """A number for a place without room: ``514.6 M``; below ten millions in full."""
    for size, letter in ((10**12, "T"), (10**9, "G"), (10**6, "M")):
        if value >= 10 * 10**6 and value >= size:
            return f"{value / size:.4g} {letter}"
    return number(value)


def moment(text: str) -> str:
    """A time as RFC 3339 has it, for people: ``2026-03-01 08:30:00 UTC``."""
    return text[:19].replace("T", " ") + (" UTC" if text.endswith("+00:00") else text[19:])


def amount(count: int, noun: str, plural: str = "") -> str:
    """``1 step``, ``12,000 steps``."""
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def duration(seconds: float | None) -> str:
    """``3 h 12 min``; ``unknown`` where nobody says."""
    if seconds is None:
        return "unknown"
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def setting(start: Start) -> list[tuple[str, str]]:
    """What a start ran with, by name; what the record does not know is left out."""
    header = start.header
    known: list[tuple[str, object]] = [
        ("engine", header.engine),
        ("DeepSpeed", header.deepspeed),
        ("PyTorch", header.torch),
        ("ranks", header.world_size),
        ("ZeRO stage", header.zero_stage),
        ("precision", header.precision),
        ("accumulation", header.gradient_accumulation_steps),
        ("micro batch", header.micro_batch_size),
        ("train batch", header.train_batch_size),
        ("clipping", header.gradient_clipping),
    ]
    return [(name, str(value)) for name, value in known if value is not None]


def ending(start: Start) -> str:
    """How a start came to its end."""
    if start.finished is None:
        return "killed, or still running"
    return "finished" if start.finished else "ended by an exception or another guard"


def window(kind: WindowKind) -> str:
    """What is to be said about a window of this size."""
    if kind.expected is None:
        return "none was expected"
    if kind.micro_batches == kind.expected:
        return "as expected"
    apart = abs(kind.micro_batches - kind.expected)
    return f"{apart} too {'few' if kind.micro_batches < kind.expected else 'many'}"


def seen(violation: Violation) -> str:
    """Where and how often it was found."""
    step = violation.first_step
    words = f"first at step {step:,}" if step is not None else "after the last step"
    ranks = violation.ranks
    words += f", rank {ranks[0]}" if len(ranks) == 1 else f", {amount(len(ranks), 'rank')}"
    return words + (f", {amount(violation.times, 'time')}" if violation.times else "")


def place(violation: Violation) -> str:
    """``file:line`` of the script, or nothing."""
    if violation.file is None:
        return ""
    return violation.file + (f":{violation.line}" if violation.line is not None else "")
