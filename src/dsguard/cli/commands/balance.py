"""``dsguard balance``."""

from __future__ import annotations

import math
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from dsguard.cli import options
from dsguard.cli.output import emit, emit_utf8, fail, stdout_look, write_page, wrong_usage
from dsguard.data.comparison import Comparison
from dsguard.render.balance_json import render_balance_json
from dsguard.render.balance_page import render_balance_page
from dsguard.render.balance_text import render_balance
from dsguard.render.stream import ColorChoice

_MOST_AT_ONCE = 1 << 22
"""Samples of all ranks in one optimizer step, and samples that an epoch repeats to fill steps."""

_LAID_OUT = "--world-size/--micro-batch/--accumulation"


class BalanceFormat(str, Enum):
    """What ``--output-format`` may say here."""

    TEXT = "text"
    JSON = "json"


def balance(
    lengths: Annotated[
        Path,
        typer.Argument(
            metavar="LENGTHS",
            help="Tokens of each sample: JSON lines, .csv, .npy, .parquet or .arrow.",
        ),
    ],
    world_size: Annotated[
        int,
        typer.Option(
            "--world-size",
            min=1,
            max=65_536,
            help="Data-parallel ranks: processes / (tensor x sequence x pipeline parallel size).",
        ),
    ],
    micro_batch: Annotated[
        int | None,
        typer.Option(
            "--micro-batch", min=1, max=65_536, help="Samples of one rank in one micro-batch."
        ),
    ] = None,
    accumulation: Annotated[
        int,
        typer.Option(
            "--accumulation", min=1, max=10_000, help="Micro-batches in one optimizer step."
        ),
    ] = 1,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens",
            min=1,
            max=10**12,
            help="Balanced: at most so many tokens in a micro-batch.",
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance", min=0.0, help="Balanced: lengths within this share count as equal."
        ),
    ] = 0.01,
    attention_length: Annotated[
        float | None,
        typer.Option(
            "--attention-length",
            min=1.0,
            max=1e12,
            metavar="TOKENS",
            help="Where attention costs as much as all else, about 6 x hidden size.",
        ),
    ] = None,
    field: Annotated[
        str | None,
        typer.Option("--field", help="What holds the length, or the list of tokens."),
    ] = None,
    modality_field: Annotated[
        str | None,
        typer.Option("--modality-field", help="What holds the modality of a sample."),
    ] = None,
    batches: Annotated[
        Path | None,
        typer.Option(
            "--batches",
            metavar="FILE",
            help='Audit these too: JSON lines {"rank": 0, "samples": [3, 17]}.',
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, max=2**64 - 1, help="Of every order.")] = 0,
    drop_last: Annotated[
        bool, typer.Option("--drop-last", help="Balanced: drop left-over samples, repeat none.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write one self-contained page with charts."),
    ] = None,
    output_format: Annotated[
        BalanceFormat, typer.Option("--output-format", "-o", help="How to report.")
    ] = BalanceFormat.TEXT,
    color: options.Color = ColorChoice.AUTO,
) -> None:
    """Show what padding and uneven ranks cost a data set.

    Shuffled, grouped by length and balanced, measured without a GPU.

    Example: dsguard balance lengths.jsonl --world-size 8 --micro-batch 4 --accumulation 4
    """
    if micro_batch is None and max_tokens is None:
        raise wrong_usage("say it, or --max-tokens", option="--micro-batch")
    if math.isinf(tolerance) and max_tokens is not None:
        raise wrong_usage("--max-tokens needs a finite one", option="--tolerance")
    at_once = world_size * (micro_batch or 1) * accumulation
    if at_once > _MOST_AT_ONCE:
        raise wrong_usage(
            f"one optimizer step takes {at_once} samples, and {_MOST_AT_ONCE} can be laid out",
            option=_LAID_OUT,
        )
    try:
        from dsguard.data.comparing import compare
        from dsguard.data.files import DataFileError, read_rank_batches, read_samples
        from dsguard.data.sampler import BalancedBatchSampler
        from dsguard.data.shape import Shape
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        fail("dsguard balance needs numpy", "pip install 'dsguard[data]'")
    try:
        samples = read_samples(lengths, field, modality_field)
        own = None if batches is None else read_rank_batches(batches, world_size)
        sampler = BalancedBatchSampler(
            samples.lengths,
            micro_batch,
            accumulation,
            rank=0,
            world_size=world_size,
            modality=samples.modality,
            max_tokens=max_tokens,
            attention_length=attention_length,
            tolerance=tolerance,
            seed=seed,
            drop_last=drop_last,
        )
        if sampler.repeated > _MOST_AT_ONCE:  # those of every modality fill a step of their own
            raise wrong_usage(
                f"an epoch would repeat {sampler.repeated} samples, and {_MOST_AT_ONCE} can be",
                option=_LAID_OUT,
            )
        told = compare(
            samples.lengths,
            sampler,
            Shape(world_size, micro_batch, accumulation),
            modality=samples.modality,
            attention_length=attention_length,
            seed=seed,
            own=own,
        )
    except DataFileError as error:
        fail(str(error), error.help)
    except ValueError as error:
        fail(str(error))
    _show(lengths, told, output_format, color)
    if html is not None:
        read = [lengths] if batches is None else [lengths, batches]
        write_page(html, render_balance_page(lengths.name, told), read)
    if "yours" in told.ways and told.ways["yours"].problems:
        raise typer.Exit(1)


def _show(
    lengths: Path, told: Comparison, output_format: BalanceFormat, color: ColorChoice
) -> None:
    if output_format is BalanceFormat.JSON:
        emit_utf8(render_balance_json(lengths.name, told))
    else:
        look = stdout_look(color)
        emit(render_balance(lengths.name, told, color=look.color, unicode=look.unicode))
