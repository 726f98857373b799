"""What a script's own flags ask for, by the names people give them.

dsguard does not know the script's parser here. A name that means one thing in every training
script it appears in (``--gradient_accumulation_steps``) is taken with high confidence; a name
that could mean something else (``--batch_size``: per process, or for all of them?) with less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dsguard.launch.context import Argument, LaunchContext
from dsguard.model.fact import Candidate
from dsguard.model.finding import Confidence


@dataclass(frozen=True)
class Asked:
    """A value that the command line asks for, under whatever name."""

    value: Any
    argument: Argument
    confidence: Confidence

    @property
    def candidate(self) -> Candidate:
        """The value with the argument as its origin."""
        return Candidate(self.value, self.argument.origin())


_NAMES: dict[str, dict[str, Confidence]] = {
    "gradient_accumulation_steps": {
        "gradient_accumulation_steps": Confidence.HIGH,
        "grad_accumulation_steps": Confidence.HIGH,
        "gradient_accumulation": Confidence.HIGH,
        "grad_accum_steps": Confidence.HIGH,
        "accumulation_steps": Confidence.MEDIUM,
        "accum_steps": Confidence.MEDIUM,
        "grad_accum": Confidence.MEDIUM,
    },
    "train_micro_batch_size_per_gpu": {
        "per_device_train_batch_size": Confidence.HIGH,
        "train_micro_batch_size_per_gpu": Confidence.HIGH,
        "per_gpu_train_batch_size": Confidence.HIGH,
        "micro_batch_size": Confidence.HIGH,
        "micro_train_batch_size": Confidence.HIGH,
        "batch_size_per_gpu": Confidence.HIGH,
        "batch_size": Confidence.MEDIUM,
        "bsz": Confidence.MEDIUM,
    },
    "gradient_clipping": {
        "gradient_clipping": Confidence.HIGH,
        "max_grad_norm": Confidence.HIGH,
        "clip_grad_norm": Confidence.HIGH,
        "clip_grad": Confidence.MEDIUM,
    },
    "optimizer.params.lr": {
        "learning_rate": Confidence.HIGH,
        "lr": Confidence.HIGH,
    },
    "optimizer.params.weight_decay": {"weight_decay": Confidence.HIGH},
    "optimizer.params.eps": {"adam_epsilon": Confidence.HIGH},
    "scheduler.params.warmup_num_steps": {
        "warmup_steps": Confidence.HIGH,
        "num_warmup_steps": Confidence.HIGH,
    },
    "scheduler.params.total_num_steps": {
        "max_steps": Confidence.HIGH,
        "max_train_steps": Confidence.HIGH,
    },
}

_WHOLE = frozenset(
    {
        "gradient_accumulation_steps",
        "train_micro_batch_size_per_gpu",
        "scheduler.params.warmup_num_steps",
        "scheduler.params.total_num_steps",
    }
)

PARALLEL_FLAGS = (
    "tensor_model_parallel_size",
    "model_parallel_size",
    "pipeline_model_parallel_size",
    "pipe_parallel_size",
    "context_parallel_size",
)
"""Flags of Megatron-style scripts, whose ``mpu`` tells DeepSpeed how many ranks share a batch."""


def asked(launch: LaunchContext | None, key: str) -> Asked | None:
    """What the launch asks for under a dotted DeepSpeed key, None where it does not say.

    A value that only the shell could expand, or that is no number, is not an answer.
    """
    names = _NAMES.get(key)
    if launch is None or names is None:
        return None
    argument = launch.arguments.get(*names)
    if argument is None or argument.value is None or not argument.known:
        return None
    value = _number(argument.value, whole=key in _WHOLE)
    if value is None:
        return None
    return Asked(value, argument, names[argument.name])


def asked_switch(launch: LaunchContext | None, name: str) -> Argument | None:
    """An argument that turns something on, such as ``--bf16`` or ``--bf16 true``; else None."""
    argument = launch.arguments.get(name) if launch else None
    if argument is None or not argument.known:
        return None
    on = argument.value is None or argument.value.lower() in ("true", "1", "yes", "t", "y")
    return argument if on else None


def _number(text: str, *, whole: bool) -> int | float | None:
    try:
        return int(text)
    except ValueError:
        pass
    if whole:
        return None
    try:
        return float(text)
    except ValueError:
        return None
