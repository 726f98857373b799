"""Words that several rules of the guard use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Words:
    """How a message names what the script has in its hands.

    ``engine`` is what runs and ``counts`` (a verb) the micro batch, ``step`` the call that ends a
    window or a micro-batch, ``settles`` what says how the run is to be, ``skipped`` why a step was
    not taken; the others are ways out.
    """

    engine: str
    counts: str
    step: str
    settles: str
    skipped: str
    step_rightly: str
    set_micro_batch: str
    lower_loss_scale: str
    attach: str


ENGINE = Words(
    engine="the engine",
    counts="counts",
    step="engine.step()",
    settles="the config that deepspeed.initialize reads",
    skipped="because of an overflow",
    step_rightly="let the config's gradient_accumulation_steps be the only place that says how "
    "many micro-batches make a step, and call engine.step() after every micro-batch",
    set_micro_batch="the config train_micro_batch_size_per_gpu",
    lower_loss_scale="a lower initial_scale_power",
    attach="guard(engine) on every rank, right after deepspeed.initialize",
)
"""A loop around a DeepSpeed engine."""

LOOP = Words(
    engine="the loop",
    counts="is held to",
    step="optimizer.step()",
    settles="the launch or the loop",
    skipped="(gradients cleared without a step, as at an overflow)",
    step_rightly="call optimizer.step() and zero_grad() after as many micro-batches as are "
    "expected, or expect what the loop does",
    set_micro_batch="guard(expect=...) a micro_batch_size of",
    lower_loss_scale="a lower GradScaler(init_scale=...)",
    attach="guard(model, optimizer=...) on every rank, right after both are made",
)
"""A loop that steps its optimizer itself."""


def micro_batches(count: int) -> str:
    """``1 micro-batch``, ``2 micro-batches``."""
    return f"{count} micro-batch" + ("" if count == 1 else "es")


def samples(count: int) -> str:
    """``1 sample``, ``2 samples``."""
    return f"{count} sample" + ("" if count == 1 else "s")


def ordinal(number: int) -> str:
    """``2nd``, ``11th``: which one of a row."""
    if 10 <= number % 100 <= 20:
        return f"{number}th"
    return f"{number}" + {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def optimizer_steps(count: int) -> str:
    """``1 optimizer step``, ``2 optimizer steps``."""
    return f"{count} optimizer step" + ("" if count == 1 else "s")
