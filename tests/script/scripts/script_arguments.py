# Written as such scripts are.
# ruff: noqa: UP045
"""Own dataclass for the command line, training arguments built in code from it."""

from dataclasses import dataclass, field
from typing import Optional

from transformers import HfArgumentParser, TrainingArguments

WARMUP = 0.03


@dataclass
class ScriptArguments:
    model_name: Optional[str] = field(default="gpt2")
    batch_size: Optional[int] = field(default=64)
    gradient_accumulation_steps: Optional[int] = field(default=16)
    learning_rate: Optional[float] = field(default=1.41e-5)
    mixed_precision: Optional[str] = field(default=None)


parser = HfArgumentParser(ScriptArguments)
script_args = parser.parse_args_into_dataclasses()[0]

training_args = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=script_args.batch_size,
    gradient_accumulation_steps=script_args.gradient_accumulation_steps,
    learning_rate=script_args.learning_rate,
    warmup_ratio=WARMUP,
    max_steps=10 * 100,
    bf16=script_args.mixed_precision == "bf16",
    **{"seed": 3},
)
