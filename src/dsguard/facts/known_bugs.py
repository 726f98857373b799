"""Releases of DeepSpeed that train wrongly, or fail, under some conditions: one row a bug.

A row is a range of releases and a condition on each of a few named facts. Facts are given as plain
values, so a config that is read and an engine that runs are judged by the same table; a row shows
only where every fact it asks about is given. To add a bug, add a row and, where a config and its
launch can tell, a pair of fixtures. This module imports the standard library and the model only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, TypeAlias, get_args

from msgspec import Struct

from dsguard.model.fact import FACT_NAMES, FactName
from dsguard.model.finding import Consequence, Severity

BugFact: TypeAlias = (
    FactName
    | Literal[
        "zero_hpz_partition_size",
        "grad_accum_dtype",
        "immediate_grad_update",
        "total_and_micro_batch_given",
        "transformers_version",
        "accelerate_version",
        "backwards_per_step",
        "forward_through",
        "backward_through",
    ]
)
"""What a condition may ask about: any fact of :data:`~dsguard.model.fact.FACT_NAMES`, and

- ``zero_hpz_partition_size``: ranks that share a secondary copy of the weights; 1 without one
- ``grad_accum_dtype``: ``fp32``, ``bf16`` or ``fp16``; None where the config names none
- ``immediate_grad_update``: the switch of the bf16 block
- ``total_and_micro_batch_given``: whether the config has both batch sizes as numbers
- ``transformers_version``, ``accelerate_version``: the release beside which DeepSpeed runs

and what only a running engine can tell:

- ``backwards_per_step``: backward passes for each ``engine.step()``
- ``forward_through``: ``engine`` for ``engine(x)``, ``module`` for ``engine.module(x)``
- ``backward_through``: ``engine`` for ``engine.backward(loss)``, ``loss`` for ``loss.backward()``
"""

SEEN_RUNNING: tuple[BugFact, ...] = ("backwards_per_step", "forward_through", "backward_through")
"""The facts that no config and no launch command holds."""

BUG_FACTS: tuple[BugFact, ...] = (*FACT_NAMES, *get_args(get_args(BugFact)[1]))

Condition: TypeAlias = Callable[[Any], bool]


@lru_cache(maxsize=256)
def release_number(text: str) -> tuple[int, ...]:
    """The numbers of a release, without trailing zeros: ``0.18.3+cu124`` is (0, 18, 3).

    A candidate or development build counts as the release that it leads to.

    Raises:
        ValueError: ``text`` does not start with a number.
    """
    numbers = re.match(r"v?(\d+(?:\.\d+)*)", text.strip())
    if numbers is None:
        raise ValueError(f"{text!r} is not a release")
    parts = [int(part) for part in numbers[1].split(".")]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


class Releases(Struct, frozen=True):
    """A range of releases: from ``first`` on, up to but without ``fixed``.

    None stands for no bound: a bug that the oldest release has, or that none repairs.
    """

    first: str | None = None
    fixed: str | None = None

    def __contains__(self, release: str) -> bool:
        """Whether a release such as ``0.18.2`` lies in the range."""
        number = release_number(release)
        if self.first is not None and number < release_number(self.first):
            return False
        return self.fixed is None or number < release_number(self.fixed)


class KnownBug(Struct, frozen=True):
    """A bug of DeepSpeed releases that shows under some conditions.

    ``when`` must hold in full. ``says`` is a clause about what happens, ``way_out`` what to do, and
    ``source`` the public report. ``pointer`` is what the bug is about in the config.
    """

    name: str
    releases: Releases
    says: str
    consequence: Consequence
    severity: Severity
    way_out: str
    source: str
    pointer: str
    when: Mapping[BugFact, Condition]

    def shows(self, release: str, facts: Mapping[BugFact, Any]) -> bool:
        """Whether the bug shows in a release, given the facts that are known.

        Raises:
            ValueError: ``release`` is not a release.
        """
        return release in self.releases and all(
            name in facts and holds(facts[name]) for name, holds in self.when.items()
        )

    @property
    def needs_a_running_engine(self) -> bool:
        """Whether the condition asks what neither config nor launch command holds."""
        return any(name in SEEN_RUNNING for name in self.when)


def more_than(least: int) -> Condition:
    """The value is a number above ``least``."""
    return lambda value: (
        isinstance(value, (int, float)) and not isinstance(value, bool) and value > least
    )


def one_of(*values: Any) -> Condition:
    """The value is one of these."""
    return lambda value: value in values


def named(*names: str) -> Condition:
    """The value is one of these names, in any case."""
    return lambda value: isinstance(value, str) and value.lower() in names


def older_than(release: str) -> Condition:
    """The value is an older release than this one; what is no release is not."""

    def older(value: Any) -> bool:
        try:
            return isinstance(value, str) and value in Releases(fixed=release)
        except ValueError:
            return False

    return older


KNOWN_BUGS: tuple[KnownBug, ...] = (
    KnownBug(
        name="zero2-keeps-the-last-micro-batch",
        releases=Releases("0.17.6", "0.18.3"),
        says="ZeRO-2 with accumulation gives the optimizer only the last micro-batch of each "
        "window",
        consequence=Consequence.DIFFERS,
        severity=Severity.ERROR,
        way_out="upgrade DeepSpeed to 0.18.3 or newer, or use stage 1 or 3",
        source="DeepSpeed#7718",
        pointer="/zero_optimization/stage",
        when={
            "zero_stage": one_of(2),
            "gradient_accumulation_steps": more_than(1),
            "offload_optimizer": one_of("none"),
        },
    ),
    KnownBug(
        name="offload-keeps-first-and-last-micro-batch",
        releases=Releases("0.15.2", "0.19.0"),
        says="ZeRO-1 and ZeRO-2 with optimizer offload give the optimizer only the first and the "
        "last micro-batch of each window",
        consequence=Consequence.DIFFERS,
        severity=Severity.ERROR,
        way_out="upgrade DeepSpeed to 0.19.0 or newer, accumulate over at most 2 micro-batches, or "
        "use stage 3",
        source="DeepSpeed#7967",
        pointer="/zero_optimization/offload_optimizer",
        when={
            "zero_stage": one_of(1, 2),
            "gradient_accumulation_steps": more_than(2),
            "offload_optimizer": one_of("cpu", "nvme"),
        },
    ),
    KnownBug(
        name="hpz-stale-weights",
        releases=Releases(fixed="0.18.3"),
        says="the secondary copy of the weights (zero_hpz_partition_size above 1) is not refreshed "
        "and the first steps train on wrong weights",
        consequence=Consequence.DIFFERS,
        severity=Severity.WARNING,
        way_out="upgrade DeepSpeed to 0.18.3 or newer",
        source="DeepSpeed#7606",
        pointer="/zero_optimization/zero_hpz_partition_size",
        when={"zero_stage": one_of(3), "zero_hpz_partition_size": more_than(1)},
    ),
    KnownBug(
        name="bf16-accumulation-misses-the-last-average",
        releases=Releases("0.18.6", "0.19.0"),
        says="the last micro-batch of each window is added after the gradients were averaged over "
        "the ranks",
        consequence=Consequence.DIFFERS,
        severity=Severity.ERROR,
        way_out="upgrade DeepSpeed to 0.19.0 or newer, or set bf16.immediate_grad_update to true",
        source="DeepSpeed#7985",
        pointer="/data_types/grad_accum_dtype",
        when={
            "zero_stage": one_of(1),
            "precision": one_of("bf16"),
            "data_parallel_size": more_than(1),
            "offload_optimizer": one_of("none"),
            "grad_accum_dtype": one_of("fp32"),
            "immediate_grad_update": one_of(False),
        },
    ),
    KnownBug(
        name="loss-divided-twice",
        releases=Releases("0.18.3", "0.18.4"),
        says="the Trainer divides the loss by the accumulation count and so does the engine, which "
        "ignores scale_wrt_gas=False in this release",
        consequence=Consequence.DIFFERS,
        severity=Severity.ERROR,
        way_out="upgrade DeepSpeed to 0.18.4 or newer",
        source="DeepSpeed#7724",
        pointer="/gradient_accumulation_steps",
        when={
            "front_end": one_of("transformers"),
            "gradient_accumulation_steps": more_than(1),
        },
    ),
    KnownBug(
        name="no-sync-with-partitioned-gradients",
        releases=Releases("0.16.0"),
        says="the Trainer accumulates within no_sync(), which the engine has and refuses under "
        "ZeRO-2 and ZeRO-3",
        consequence=Consequence.LATE,
        severity=Severity.ERROR,
        way_out="upgrade transformers to 4.48 or newer, or accelerate to 1.9 or newer",
        source="DeepSpeed#6793",
        pointer="/zero_optimization/stage",
        when={
            "front_end": one_of("transformers"),
            "zero_stage": one_of(2, 3),
            "gradient_accumulation_steps": more_than(1),
            "transformers_version": older_than("4.48"),
            "accelerate_version": older_than("1.9"),
        },
    ),
    KnownBug(
        name="lion-with-offload",
        releases=Releases(fixed="0.17.6"),
        says="Lion with optimizer offload is refused or broken, because CPU Lion is missing from "
        "the list of CPU optimizers",
        consequence=Consequence.LATE,
        severity=Severity.WARNING,
        way_out="upgrade DeepSpeed to 0.17.6 or newer",
        source="DeepSpeed#7524",
        pointer="/optimizer/type",
        when={"optimizer": named("lion"), "offload_optimizer": one_of("cpu", "nvme")},
    ),
    KnownBug(
        name="batch-sizes-checked-against-one-process",
        releases=Releases(fixed="0.9.1"),
        says="the config is read before the processes know of each other, so train_batch_size is "
        "checked against 1 process instead of all of them",
        consequence=Consequence.REFUSED,
        severity=Severity.WARNING,
        way_out="upgrade DeepSpeed to 0.9.1 or newer, or call deepspeed.init_distributed() first",
        source="DeepSpeed#3228",
        pointer="/train_batch_size",
        when={
            "front_end": one_of("plain"),
            "world_size": more_than(1),
            "total_and_micro_batch_given": one_of(True),
        },
    ),
    KnownBug(
        name="second-backward-fails",
        releases=Releases("0.17.6", "0.18.3"),
        says="a further backward pass before step() stops with TypeError: 'NoneType' object is not "
        "iterable",
        consequence=Consequence.LATE,
        severity=Severity.ERROR,
        way_out="upgrade DeepSpeed to 0.18.3 or newer, and call step() after every backward pass",
        source="DeepSpeed#7718",
        pointer="/zero_optimization/stage",
        when={"zero_stage": one_of(1, 2), "backwards_per_step": more_than(1)},
    ),
    KnownBug(
        name="module-loss-not-divided",
        releases=Releases("0.18.3", "0.19.6"),
        says="engine.backward() does not divide a loss that came from engine.module(x) by "
        "gradient_accumulation_steps",
        consequence=Consequence.DIFFERS,
        severity=Severity.ERROR,
        way_out="call engine(x), or upgrade DeepSpeed to 0.19.8 or newer",
        source="DeepSpeed#8245",
        pointer="/gradient_accumulation_steps",
        when={
            "zero_stage": one_of(0, 1, 2),
            "gradient_accumulation_steps": more_than(1),
            "forward_through": one_of("module"),
            "backward_through": one_of("engine"),
        },
    ),
    KnownBug(
        name="raw-backward-not-averaged",
        releases=Releases(fixed="0.18.3"),
        says="after loss.backward() the gradients are neither averaged over the ranks nor divided "
        "by gradient_accumulation_steps: every rank trains a model of its own",
        consequence=Consequence.DIFFERS,
        severity=Severity.ERROR,
        way_out="call engine.backward(loss)",
        source="DeepSpeed#7665",
        pointer="/zero_optimization/stage",
        when={"zero_stage": one_of(0), "backward_through": one_of("loss")},
    ),
    KnownBug(
        name="raw-backward-fails",
        releases=Releases(fixed="0.18.3"),
        says="after loss.backward() the step of ZeRO-1 and ZeRO-2 stops with KeyError or "
        "AttributeError",
        consequence=Consequence.LATE,
        severity=Severity.ERROR,
        way_out="call engine.backward(loss)",
        source="DeepSpeed#7665",
        pointer="/zero_optimization/stage",
        when={"zero_stage": one_of(1, 2), "backward_through": one_of("loss")},
    ),
)
