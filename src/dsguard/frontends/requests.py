"""What is asked for outside the config: by flags, job files and the script's own defaults.

A name that means one thing in every training script it appears in
(``--gradient_accumulation_steps``) is taken with high confidence; a name that could mean
something else (``--batch_size``: per process, or for all of them?) with less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dsguard.launch.context import Argument, LaunchContext
from dsguard.model.fact import Candidate, Origin
from dsguard.model.finding import Confidence


@dataclass(frozen=True)
class Request:
    """A value that is asked for under a name of the asker's own.

    ``name`` is the flag in underscore spelling without dashes, ``flag`` how to show it.
    ``explicit`` tells what somebody wrote for this run from a default.
    """

    value: Any
    name: str
    flag: str
    origin: Origin
    confidence: Confidence
    explicit: bool = True

    @property
    def candidate(self) -> Candidate:
        """The value with its origin."""
        return Candidate(self.value, self.origin)


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
        "train_bsz": Confidence.MEDIUM,
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
    "scheduler.params.warmup_max_lr": {"learning_rate": Confidence.HIGH},
    "scheduler.params.warmup_num_steps": {
        "warmup_steps": Confidence.HIGH,
        "num_warmup_steps": Confidence.HIGH,
    },
    "scheduler.params.total_num_steps": {
        "max_steps": Confidence.HIGH,
        "max_train_steps": Confidence.HIGH,
    },
}
"""Dotted DeepSpeed key → the names that ask for it."""

_WHOLE = frozenset(
    {
        "gradient_accumulation_steps",
        "train_micro_batch_size_per_gpu",
        "scheduler.params.warmup_num_steps",
        "scheduler.params.total_num_steps",
    }
)

_ON = ("true", "1", "yes", "t", "y")

PARALLEL_FLAGS = (
    "tensor_model_parallel_size",
    "model_parallel_size",
    "pipeline_model_parallel_size",
    "pipe_parallel_size",
    "context_parallel_size",
)
"""Flags of Megatron-style scripts, whose ``mpu`` tells DeepSpeed how many ranks share a batch."""


class Requests:
    """Everything that is asked for outside the config of one run."""

    def __init__(self, launch: LaunchContext | None) -> None:
        self._launch = launch

    def get(self, key: str) -> Request | None:
        """What is asked for under a dotted DeepSpeed key, None where nothing says.

        A value that only the shell could expand, or that is no number, is not an answer.
        """
        argument, confidence = self._argument(_NAMES.get(key, {}))
        if argument is None or argument.value is None or not argument.known:
            return None
        value = _number(argument.value, whole=key in _WHOLE)
        if value is None:
            return None
        origin = argument.origin()
        return Request(value, argument.name, argument.flag, origin, confidence)

    def text(self, name: str) -> Request | None:
        """What is asked for under a TrainingArguments name that takes a word."""
        argument, confidence = self._argument({name: Confidence.HIGH})
        if argument is None or argument.value is None or not argument.known:
            return None
        return Request(argument.value, name, argument.flag, argument.origin(), confidence)

    def on_or_off(self, name: str) -> Request | None:
        """What a switch is set to, such as ``--bf16`` or ``--bf16 false``; None if nobody says."""
        argument, confidence = self._argument({name: Confidence.HIGH})
        if argument is None or not argument.known:
            return None
        on = argument.value is None or argument.value.lower() in _ON
        return Request(on, name, argument.flag, argument.origin(), confidence)

    def switch(self, name: str) -> Request | None:
        """A switch that is turned on."""
        request = self.on_or_off(name)
        return request if request is not None and request.value else None

    def _argument(self, names: dict[str, Confidence]) -> tuple[Argument | None, Confidence]:
        """The last argument under one of these names, as it is or behind a prefix with dots."""
        found: Argument | None = None
        confidence = Confidence.LOW
        for argument in self._launch.arguments if self._launch is not None else ():
            last = argument.name.rpartition(".")[2]
            if argument.name in names:
                found, confidence = argument, names[argument.name]
            elif last in names:
                found, confidence = argument, Confidence.MEDIUM
        return found, confidence


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
