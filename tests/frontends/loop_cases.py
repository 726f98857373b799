"""What people hand to ``accelerate launch`` for a loop of their own.

The loop builds ``Accelerator(gradient_accumulation_steps=…)`` from its own argument where the
case has one, and prepares a model, an AdamW of rate 3e-4 (or the optimizer that the config
describes) and a loader.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

SCRIPT = """\
from argparse import ArgumentParser

import torch
from accelerate import Accelerator
from accelerate.utils import DummyOptim

parser = ArgumentParser()
parser.add_argument("--gradient_accumulation_steps", type=int)
parser.add_argument("--learning_rate", type=float)
parser.add_argument("--max_grad_norm", type=float)
arguments = parser.parse_args()
accelerator = Accelerator(gradient_accumulation_steps=arguments.gradient_accumulation_steps)
model = torch.nn.Linear(2, 2)
optimizer = {}(model.parameters(), lr=3e-4)
model, optimizer = accelerator.prepare(model, optimizer)
"""

ZERO = {"zero_optimization": {"stage": 2}}
BATCH = {"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4}
BASE = {**ZERO, **BATCH}
AUTO = {**ZERO, "train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"}
ADAMW = {"type": "AdamW", "params": {"lr": 1e-4}}


@dataclass(frozen=True)
class LoopCase:
    """A config, the options of ``accelerate launch``, and what the script is told and does.

    ``facts_apart`` are facts that hang on the launcher's own options.
    """

    name: str
    config: dict[str, Any] | str
    options: str = ""
    words: str = ""
    accumulation: int | None = None
    optimizer: Literal["AdamW", "Dummy"] = "AdamW"
    world_size: int = 2
    facts_apart: tuple[str, ...] = ()

    @property
    def script(self) -> str:
        """A script that prepares the optimizer."""
        return SCRIPT.format({"AdamW": "torch.optim.AdamW", "Dummy": "DummyOptim"}[self.optimizer])

    @property
    def text(self) -> str:
        return self.config if isinstance(self.config, str) else json.dumps(self.config, indent=2)

    @property
    def launch(self) -> str:
        named = "--use_deepspeed --deepspeed_config_file ds_config.json"
        return f"{named} --num_processes {self.world_size} {self.options}".strip()


_case = LoopCase
_EIGHT = "--gradient_accumulation_steps 8"

CASES = [
    # The batch.
    _case("numbers", BASE),
    _case("all auto", {**AUTO, "train_batch_size": "auto"}),
    _case(
        "accumulation differs",
        {**BASE, "gradient_accumulation_steps": 1},
        words=_EIGHT,
        accumulation=8,
    ),
    _case(
        "accumulation agrees",
        {**BASE, "gradient_accumulation_steps": 8},
        words=_EIGHT,
        accumulation=8,
    ),
    _case(
        "accumulation absent",
        {**ZERO, "train_micro_batch_size_per_gpu": 2},
        words=_EIGHT,
        accumulation=8,
    ),
    _case("accumulation auto", AUTO, words=_EIGHT, accumulation=8),
    _case("accumulation auto, launcher's option", AUTO, options=_EIGHT),
    _case("accumulation is a number, launcher's option", BASE, options=_EIGHT),
    _case(
        "accumulation auto, launcher and script",
        AUTO,
        options="--gradient_accumulation_steps 4",
        words=_EIGHT,
        accumulation=8,
    ),
    _case("accumulation is null", {**BASE, "gradient_accumulation_steps": None}),
    _case("micro batch is not the loader's", {**BASE, "train_micro_batch_size_per_gpu": 4}),
    _case("micro batch absent", {**ZERO, "train_batch_size": 16, "gradient_accumulation_steps": 4}),
    _case(
        "micro batch absent, total auto",
        {**ZERO, "train_batch_size": "auto", "gradient_accumulation_steps": 4},
    ),
    _case("only accumulation", {**ZERO, "gradient_accumulation_steps": 4}),
    _case("total right", {**BASE, "train_batch_size": 16}),
    _case("total wrong", {**BASE, "train_batch_size": 32}),
    _case(
        "total wrong, accumulation absent",
        {**ZERO, "train_batch_size": 16, "train_micro_batch_size_per_gpu": 2},
    ),
    _case(
        "sequence parallelism alone",
        {**BASE, "train_batch_size": "auto", "sequence_parallel_size": 2},
    ),
    _case("sequence parallelism, no total", {**BASE, "sequence_parallel_size": 2}),
    _case(
        "sequence parallelism, its total",
        {**BASE, "train_batch_size": 8, "sequence_parallel_size": 2},
    ),
    # Clipping.
    _case("clipping absent", BASE, words="--max_grad_norm 0.3"),
    _case("clipping written", {**BASE, "gradient_clipping": 0.7}, words="--max_grad_norm 0.3"),
    _case("clipping auto", {**BASE, "gradient_clipping": "auto"}),
    _case(
        "clipping auto, asked by the script",
        {**BASE, "gradient_clipping": "auto"},
        words="--max_grad_norm 0.3",
    ),
    _case(
        "clipping auto, launcher's option",
        {**BASE, "gradient_clipping": "auto"},
        options="--gradient_clipping 0.5",
    ),
    _case("clipping absent, launcher's option", BASE, options="--gradient_clipping 0.5"),
    # The optimizer.
    _case("optimizer in both", {**BASE, "optimizer": ADAMW}),
    _case(
        "optimizer in the config",
        {**BASE, "optimizer": ADAMW},
        words="--learning_rate 3e-4",
        optimizer="Dummy",
    ),
    _case(
        "rate auto",
        {**BASE, "optimizer": {"type": "AdamW", "params": {"lr": "auto"}}},
        words="--learning_rate 3e-4",
        optimizer="Dummy",
    ),
    _case(
        "rate absent",
        {**BASE, "optimizer": {"type": "AdamW", "params": {}}},
        words="--learning_rate 3e-4",
        optimizer="Dummy",
    ),
    _case(
        "betas auto",
        {**BASE, "optimizer": {"type": "AdamW", "params": {"lr": "auto", "betas": "auto"}}},
        optimizer="Dummy",
    ),
    _case(
        "weight decay auto",
        {**BASE, "optimizer": {"type": "AdamW", "params": {"lr": "auto", "weight_decay": "auto"}}},
        optimizer="Dummy",
    ),
    _case("no optimizer block, Dummy", BASE, optimizer="Dummy"),
    # Precision.
    _case("bf16 asked, no block", BASE, options="--mixed_precision bf16"),
    _case(
        "bf16 asked, block off",
        {**BASE, "bf16": {"enabled": False}},
        options="--mixed_precision bf16",
    ),
    _case(
        "bf16 asked, block auto",
        {**BASE, "bf16": {"enabled": "auto"}},
        options="--mixed_precision bf16",
    ),
    _case("bf16 asked, block empty", {**BASE, "bf16": {}}, options="--mixed_precision bf16"),
    _case(
        "bf16 asked, old name",
        {**BASE, "bfloat16": {"enabled": True}},
        options="--mixed_precision bf16",
    ),
    _case("old name, none asked", {**BASE, "bfloat16": {"enabled": True}}),
    _case("bf16 on, none asked", {**BASE, "bf16": {"enabled": True}}),
    _case(
        "bf16 on, none asked for",
        {**BASE, "bf16": {"enabled": True}},
        options="--mixed_precision no",
    ),
    _case(
        "bf16 asked, fp16 on", {**BASE, "fp16": {"enabled": True}}, options="--mixed_precision bf16"
    ),
    _case(
        "fp16 asked, bf16 on", {**BASE, "bf16": {"enabled": True}}, options="--mixed_precision fp16"
    ),
    _case(
        "fp16 asked, block off",
        {**BASE, "fp16": {"enabled": False}},
        options="--mixed_precision fp16",
    ),
    _case("bf16 auto, none asked", {**BASE, "bf16": {"enabled": "auto"}}),
    # ZeRO.
    _case("no zero block", BATCH),
    _case("zero block is true", {**BATCH, "zero_optimization": True}),
    _case("stage auto", {**BATCH, "zero_optimization": {"stage": "auto"}}),
    _case(
        "stage auto, launcher's option",
        {**BATCH, "zero_optimization": {"stage": "auto"}},
        options="--zero_stage 3",
    ),
    _case("stage is a number, launcher's option", BASE, options="--zero_stage 3"),
    _case(
        "offload auto",
        {**BATCH, "zero_optimization": {"stage": 3, "offload_optimizer": {"device": "auto"}}},
    ),
    _case(
        "buckets auto at stage 2",
        {
            **BATCH,
            "zero_optimization": {
                "stage": 2,
                "reduce_bucket_size": "auto",
                "stage3_prefetch_bucket_size": "auto",
            },
        },
    ),
    _case(
        "bucket auto by its short name",
        {**BATCH, "zero_optimization": {"stage": 3, "prefetch_bucket_size": "auto"}},
    ),
    # Everything else.
    _case("breakdown auto", {**BASE, "wall_clock_breakdown": "auto"}),
    _case("unknown key auto", {**BASE, "gradiant_clipping": "auto"}),
    _case("remark auto", {**BASE, "_comment": "auto"}),
    _case("removed block", {**BASE, "elasticity": {"enabled": False}}),
    _case("unmanaged accumulation", {**BASE, "managed_gradient_accumulation": False}),
    _case(
        "comment",
        '{\n  // ours\n  "train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2}\n}',
    ),
    _case(
        "repeated key",
        '{"train_micro_batch_size_per_gpu": 4, "train_micro_batch_size_per_gpu": 2,'
        ' "zero_optimization": {"stage": 2}}',
    ),
]
