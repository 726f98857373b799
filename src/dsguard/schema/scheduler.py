"""scheduler: the learning-rate scheduler that DeepSpeed builds itself."""

from typing import Any, ClassVar

from dsguard.model.finding import Consequence
from dsguard.schema.block import UncheckedBlock, UnknownKeys, key


class SchedulerParams(UncheckedBlock):
    """Arguments of DeepSpeed's own schedulers; those of torch's are handed on as well."""

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.FREE
    passes_on: ClassVar[bool] = True

    total_num_steps: int = key(None, "Steps after which the decay ends.")
    warmup_num_steps: int = key(1000, "Steps of warm-up; a whole number above 0.")
    warmup_min_lr: float | list[Any] = key(
        0.0, "Learning rate at step 0, for each parameter group or for all."
    )
    warmup_max_lr: float | list[Any] = key(
        None,
        "Learning rate after warm-up; for WarmupLR unset is the optimizer's (0.17.2 and later).",
    )
    warmup_type: str = key("log", "Shape of the warm-up: log or linear.")
    warmup_min_ratio: float = key(0.0, "Share of the learning rate at step 0.", since="0.12.3")
    cos_min_ratio: float = key(0.0001, "Share of it at the end of the cosine.", since="0.12.3")
    lr_range_test_min_lr: float | list[Any] = key(
        0.001, "Learning rate the range test starts from."
    )
    lr_range_test_step_size: int = key(2000, "Steps between two increases of the range test.")
    lr_range_test_step_rate: float = key(1.0, "How fast the range test increases.")
    lr_range_test_staircase: bool = key(False, "Increase in steps instead of smoothly.")
    cycle_min_lr: float | list[Any] = key(None, "Lowest learning rate of the cycle.")
    cycle_max_lr: float | list[Any] = key(None, "Highest learning rate of the cycle.")
    cycle_first_step_size: int = key(2000, "Steps of the rising half.")
    cycle_first_stair_count: int = key(0, "Stairs in the rising half; 0 rises smoothly.")
    cycle_second_step_size: int | None = key(None, "Steps of the falling half; null is the same.")
    cycle_second_stair_count: int | None = key(None, "Stairs in the falling half.")
    decay_lr_rate: float = key(0.0, "Decay of the learning rate after the cycle.")
    decay_step_size: int = key(0, "Steps between two decays; 0 does not decay.")
    cycle_momentum: bool = key(True, "Cycle the momentum against the learning rate.")
    cycle_min_mom: float = key(0.8, "Lowest momentum of the cycle.")
    cycle_max_mom: float = key(0.9, "Highest momentum of the cycle.")
    decay_mom_rate: float = key(0.0, "Decay of the momentum after the cycle.")
    last_batch_iteration: int = key(-1, "Step to go on from; -1 starts anew.")


class Scheduler(UncheckedBlock):
    """The scheduler to build.

    Source: get_scheduler_* in deepspeed/runtime/config.py.
    """

    type: str | None = key(
        None,
        "Exact name of a scheduler: LRRangeTest, OneCycle, WarmupLR, WarmupDecayLR, "
        "WarmupCosineLR or a class of torch.optim.lr_scheduler.",
        wrong=Consequence.LATE,
    )
    params: SchedulerParams | None = key(
        None,
        "Arguments of the scheduler's constructor; without them the engine fails when it builds "
        "the scheduler.",
        wrong=Consequence.LATE,
    )

    @classmethod
    def unread(cls, given: dict[str, Any]) -> frozenset[str]:
        """Without a type the parameters are not looked at."""
        return frozenset({"params"}) if given.get("type") is None else frozenset()
