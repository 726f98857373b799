"""Releases of DeepSpeed that train wrongly, or fail, with some configs: one row a bug.

A row fires only where every fact it asks about is known. To add a bug, add a row and a pair of
fixtures; nothing else has to change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from packaging.specifiers import SpecifierSet

from dsguard.model.fact import FactName
from dsguard.model.finding import Consequence, Severity


@dataclass(frozen=True)
class KnownBug:
    """A bug of DeepSpeed releases that shows with some configs.

    ``releases`` is a specifier such as ``>=0.17.6,<0.18.3``. ``facts`` and ``keys`` (dotted
    config keys; an absent key is None) must all hold. ``pointer`` is where the finding points,
    if the config has it. ``says`` is a clause about what happens; ``source`` the public report.
    """

    name: str
    releases: SpecifierSet
    says: str
    consequence: Consequence
    severity: Severity
    way_out: str
    source: str
    pointer: str
    facts: Mapping[FactName, Callable[[Any], bool]]
    keys: Mapping[str, Callable[[Any], bool]] = field(default_factory=dict)


def _more_than(least: int) -> Callable[[Any], bool]:
    return lambda value: value > least


def _one_of(*values: Any) -> Callable[[Any], bool]:
    return lambda value: value in values


KNOWN_BUGS: tuple[KnownBug, ...] = (
    KnownBug(
        name="zero2-keeps-the-last-micro-batch",
        releases=SpecifierSet(">=0.17.6,<0.18.3"),
        says="ZeRO-2 with accumulation gives the optimizer only the last micro-batch of each "
        "window",
        consequence=Consequence.DIFFERS,
        severity=Severity.ERROR,
        way_out="upgrade DeepSpeed to 0.18.3 or newer, or use stage 1 or 3",
        source="DeepSpeed#7718",
        pointer="/zero_optimization/stage",
        facts={
            "zero_stage": _one_of(2),
            "gradient_accumulation_steps": _more_than(1),
            "offload_optimizer": _one_of("none"),
        },
    ),
    KnownBug(
        name="offload-keeps-first-and-last-micro-batch",
        releases=SpecifierSet(">=0.15.2,<0.19.0"),
        says="ZeRO-1 and ZeRO-2 with optimizer offload give the optimizer only the first and the "
        "last micro-batch of each window",
        consequence=Consequence.DIFFERS,
        severity=Severity.ERROR,
        way_out="upgrade DeepSpeed to 0.19.0 or newer, accumulate over at most 2 micro-batches, or "
        "use stage 3",
        source="DeepSpeed#7967",
        pointer="/zero_optimization/offload_optimizer",
        facts={
            "zero_stage": _one_of(1, 2),
            "gradient_accumulation_steps": _more_than(2),
            "offload_optimizer": _one_of("cpu", "nvme"),
        },
    ),
    KnownBug(
        name="hpz-stale-weights",
        releases=SpecifierSet("<0.18.3"),
        says="the secondary copy of the weights (zero_hpz_partition_size above 1) is not refreshed "
        "and the first steps train on wrong weights",
        consequence=Consequence.DIFFERS,
        severity=Severity.WARNING,
        way_out="upgrade DeepSpeed to 0.18.3 or newer",
        source="DeepSpeed#7606",
        pointer="/zero_optimization/zero_hpz_partition_size",
        facts={"zero_stage": _one_of(3)},
        keys={"zero_optimization.zero_hpz_partition_size": lambda v: isinstance(v, int) and v > 1},
    ),
    KnownBug(
        name="bf16-accumulation-misses-the-last-average",
        releases=SpecifierSet(">=0.18.6,<0.19.0"),
        says="the last micro-batch of each window is added after the gradients were averaged over "
        "the ranks",
        consequence=Consequence.DIFFERS,
        severity=Severity.ERROR,
        way_out="upgrade DeepSpeed to 0.19.0 or newer, or set bf16.immediate_grad_update to true",
        source="DeepSpeed#7985",
        pointer="/data_types/grad_accum_dtype",
        facts={
            "zero_stage": _one_of(1),
            "precision": _one_of("bf16"),
            "data_parallel_size": _more_than(1),
            "offload_optimizer": _one_of("none"),
        },
        keys={
            "data_types.grad_accum_dtype": _one_of("fp32", "float32", "float", "torch.float32"),
            "bf16.immediate_grad_update": lambda value: not value,
        },
    ),
    KnownBug(
        name="loss-divided-twice",
        releases=SpecifierSet("==0.18.3"),
        says="the Trainer divides the loss by the accumulation count and so does the engine, which "
        "ignores scale_wrt_gas=False in this release",
        consequence=Consequence.DIFFERS,
        severity=Severity.ERROR,
        way_out="upgrade DeepSpeed to 0.18.4 or newer",
        source="DeepSpeed#7724",
        pointer="/gradient_accumulation_steps",
        facts={
            "front_end": _one_of("transformers"),
            "gradient_accumulation_steps": _more_than(1),
        },
    ),
    KnownBug(
        name="lion-with-offload",
        releases=SpecifierSet("<0.17.6"),
        says="Lion with optimizer offload is refused or broken, because CPU Lion is missing from "
        "the list of CPU optimizers",
        consequence=Consequence.LATE,
        severity=Severity.WARNING,
        way_out="upgrade DeepSpeed to 0.17.6 or newer",
        source="DeepSpeed#7524",
        pointer="/optimizer/type",
        facts={
            "optimizer": lambda value: str(value).lower() == "lion",
            "offload_optimizer": _one_of("cpu", "nvme"),
        },
    ),
    KnownBug(
        name="batch-sizes-checked-against-one-process",
        releases=SpecifierSet("==0.9.0"),
        says="the config is read before the processes know of each other, so train_batch_size is "
        "checked against 1 process instead of all of them",
        consequence=Consequence.REFUSED,
        severity=Severity.WARNING,
        way_out="upgrade DeepSpeed to 0.9.1 or newer, or call deepspeed.init_distributed() first",
        source="DeepSpeed#3228",
        pointer="/train_batch_size",
        facts={"front_end": _one_of("plain"), "world_size": _more_than(1)},
        keys={
            "train_batch_size": lambda value: isinstance(value, int),
            "train_micro_batch_size_per_gpu": lambda value: isinstance(value, int),
        },
    ),
)
