"""The learning-rate schedulers that a config can name, and what they take.

Sources: the classes in deepspeed/runtime/lr_schedules.py, ``_scheduler_from_config`` in
deepspeed/runtime/engine.py, and torch.optim.lr_scheduler.
"""

from __future__ import annotations

from msgspec import Struct
from packaging.version import Version

from dsguard.schema.history import OLDEST_KNOWN


class SchedulerClass(Struct, frozen=True):
    """What the constructor of a scheduler takes; the case of its name matters.

    ``parameters`` are all arguments of the constructor besides the optimizer, ``required``
    those without a default. ``since`` is the first release of DeepSpeed that has it; the
    arguments of DeepSpeed's own are the same in every release since.
    """

    parameters: frozenset[str]
    required: tuple[str, ...] = ()
    since: Version = OLDEST_KNOWN


_WARMUP = frozenset({"warmup_num_steps", "warmup_type", "last_batch_iteration"})
_RATES = frozenset({"warmup_min_lr", "warmup_max_lr"})

DEEPSPEED_SCHEDULERS = {
    "LRRangeTest": SchedulerClass(
        frozenset({"lr_range_test_min_lr", "lr_range_test_step_size", "last_batch_iteration"})
        | {"lr_range_test_step_rate", "lr_range_test_staircase"}
    ),
    "OneCycle": SchedulerClass(
        frozenset({"cycle_min_lr", "cycle_max_lr", "decay_lr_rate", "decay_step_size"})
        | {"cycle_first_step_size", "cycle_second_step_size", "last_batch_iteration"}
        | {"cycle_first_stair_count", "cycle_second_stair_count", "decay_mom_rate"}
        | {"cycle_momentum", "cycle_min_mom", "cycle_max_mom"},
        required=("cycle_min_lr", "cycle_max_lr"),
    ),
    "WarmupLR": SchedulerClass(_WARMUP | _RATES),
    "WarmupDecayLR": SchedulerClass(
        _WARMUP | _RATES | {"total_num_steps"}, required=("total_num_steps",)
    ),
    "WarmupCosineLR": SchedulerClass(
        _WARMUP | {"total_num_steps", "warmup_min_ratio", "cos_min_ratio"},
        required=("total_num_steps",),
        since=Version("0.12.3"),
    ),
}

_TORCH = frozenset({"last_epoch", "verbose"})

TORCH_SCHEDULERS = {
    "ChainedScheduler": SchedulerClass(frozenset({"optimizer"})),
    "ConstantLR": SchedulerClass(_TORCH | {"factor", "total_iters"}),
    "CosineAnnealingLR": SchedulerClass(_TORCH | {"T_max", "eta_min"}, required=("T_max",)),
    "CosineAnnealingWarmRestarts": SchedulerClass(
        _TORCH | {"T_0", "T_mult", "eta_min"}, required=("T_0",)
    ),
    "CyclicLR": SchedulerClass(
        _TORCH
        | {"base_lr", "max_lr", "step_size_up", "step_size_down", "mode", "gamma", "scale_fn"}
        | {"scale_mode", "cycle_momentum", "base_momentum", "max_momentum"},
        required=("base_lr", "max_lr"),
    ),
    "ExponentialLR": SchedulerClass(_TORCH | {"gamma"}, required=("gamma",)),
    "LambdaLR": SchedulerClass(_TORCH | {"lr_lambda"}, required=("lr_lambda",)),
    "LinearLR": SchedulerClass(_TORCH | {"start_factor", "end_factor", "total_iters"}),
    "MultiStepLR": SchedulerClass(_TORCH | {"milestones", "gamma"}, required=("milestones",)),
    "MultiplicativeLR": SchedulerClass(_TORCH | {"lr_lambda"}, required=("lr_lambda",)),
    "OneCycleLR": SchedulerClass(
        _TORCH
        | {"max_lr", "total_steps", "epochs", "steps_per_epoch", "pct_start", "anneal_strategy"}
        | {"cycle_momentum", "base_momentum", "max_momentum", "div_factor", "final_div_factor"}
        | {"three_phase"},
        required=("max_lr",),
    ),
    "PolynomialLR": SchedulerClass(_TORCH | {"total_iters", "power"}),
    "ReduceLROnPlateau": SchedulerClass(
        frozenset({"mode", "factor", "patience", "threshold", "threshold_mode", "cooldown"})
        | {"min_lr", "eps", "verbose"}
    ),
    "SequentialLR": SchedulerClass(
        _TORCH | {"schedulers", "milestones"}, required=("schedulers", "milestones")
    ),
    "StepLR": SchedulerClass(_TORCH | {"step_size", "gamma"}, required=("step_size",)),
}
"""The classes of torch.optim.lr_scheduler; their case matters.

``parameters`` are what any release of PyTorch has.
"""


def scheduler_class(name: str, target: Version) -> SchedulerClass | None:
    """The class that a release of DeepSpeed builds for a name; its own come first."""
    own = DEEPSPEED_SCHEDULERS.get(name)
    if own is not None:
        return own if own.since <= target else None
    return TORCH_SCHEDULERS.get(name)


WARMUP_STEPS = 1000
"""``warmup_num_steps`` where the config does not give it."""

PEAK = 0.001
"""``warmup_max_lr`` where the config does not give it and the optimizer's is not taken."""

PEAK_FROM_OPTIMIZER_SINCE = Version("0.17.2")
"""From this release an absent ``warmup_max_lr`` of WarmupLR is the optimizer's learning rate."""
