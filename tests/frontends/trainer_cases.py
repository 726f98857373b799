"""What people hand to ``Trainer``: configs with the arguments they stand beside.

One case for each thing that the Trainer fills, compares, refuses, overrides or never looks at.
The expected outcome isn't written here: the real Trainer gives it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

ZERO = {"zero_optimization": {"stage": 2}}
BATCH = {"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": "auto"}
BASE = {**ZERO, **BATCH}
SCRIPT = """\
from transformers import HfArgumentParser, Trainer, TrainingArguments

(arguments,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
Trainer(model=build(), args=arguments, train_dataset=load()).train()
"""
"""A script that takes every TrainingArgument from its command line."""

LOOP = "--per_device_train_batch_size 2 --gradient_accumulation_steps 8"
"""What a launch says of the loop, so that nothing hangs on defaults."""

ADAM = "--learning_rate 2e-5"


@dataclass(frozen=True)
class TrainerCase:
    """A config, the Trainer's arguments, and the number of processes.

    ``facts_apart`` are facts that are not DeepSpeed's own number.
    """

    name: str
    config: dict[str, Any] | str
    words: str = LOOP
    world_size: int = 2
    facts_apart: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return self.config if isinstance(self.config, str) else json.dumps(self.config, indent=2)


def _optimizer(**parameters: Any) -> dict[str, Any]:
    return {**BASE, "optimizer": {"type": "AdamW", "params": parameters}}


def _scheduler(kind: str = "WarmupDecayLR", **parameters: Any) -> dict[str, Any]:
    block = {"type": kind, "params": parameters}
    return {**_optimizer(lr="auto"), "scheduler": block}


def _zero(**keys: Any) -> dict[str, Any]:
    return {**BASE, "zero_optimization": {"stage": 2, **keys}}


_case = TrainerCase

CASES = [
    # The batch.
    _case("all auto", {**BASE, "train_batch_size": "auto"}),
    _case("micro batch agrees", {**BASE, "train_micro_batch_size_per_gpu": 2}),
    _case("micro batch differs", {**BASE, "train_micro_batch_size_per_gpu": 4}),
    _case("micro batch is a float", {**BASE, "train_micro_batch_size_per_gpu": 2.0}),
    _case("micro batch is text", {**BASE, "train_micro_batch_size_per_gpu": "2"}),
    _case("accumulation agrees", {**BASE, "gradient_accumulation_steps": 8}),
    _case("accumulation differs", {**BASE, "gradient_accumulation_steps": 1}),
    _case("accumulation is null", {**BASE, "gradient_accumulation_steps": None}),
    _case("total agrees", {**BASE, "train_batch_size": 32}),
    _case("total differs", {**BASE, "train_batch_size": 16}),
    _case("total of one process", {**BASE, "train_batch_size": 16}, world_size=1),
    _case("only the total, right", {**ZERO, "train_batch_size": 32}),
    _case("only the total, wrong", {**ZERO, "train_batch_size": 16}),
    _case("only the total, auto", {**ZERO, "train_batch_size": "auto"}),
    _case(
        "no micro batch, total auto",
        {**BASE, "train_micro_batch_size_per_gpu": None, "train_batch_size": "auto"},
    ),
    _case("no batch size", {**ZERO, "gradient_accumulation_steps": "auto"}),
    _case("nothing of the batch", ZERO),
    # What one step consumes; DeepSpeed's own count is off, which is what the finding says.
    _case(
        "no accumulation, no total",
        {**ZERO, "train_micro_batch_size_per_gpu": "auto"},
        facts_apart=("train_batch_size",),
    ),
    _case(
        "no accumulation, total auto",
        {**ZERO, "train_micro_batch_size_per_gpu": "auto", "train_batch_size": "auto"},
    ),
    _case(
        "no accumulation, total right",
        {**ZERO, "train_micro_batch_size_per_gpu": 2, "train_batch_size": 32},
    ),
    _case(
        "no accumulation, total auto, one asked",
        {**ZERO, "train_micro_batch_size_per_gpu": "auto", "train_batch_size": "auto"},
        "--per_device_train_batch_size 2 --gradient_accumulation_steps 1",
    ),
    _case(
        "no accumulation in either",
        {**ZERO, "train_micro_batch_size_per_gpu": "auto", "train_batch_size": "auto"},
        "--per_device_train_batch_size 2",
    ),
    _case(
        "defaults against a number",
        {**BASE, "gradient_accumulation_steps": 4},
        "--per_device_train_batch_size 2",
    ),
    _case(
        "default micro batch agrees",
        {**BASE, "train_micro_batch_size_per_gpu": 8},
        "--gradient_accumulation_steps 8",
    ),
    _case(
        "tensor parallelism counts every rank",
        {**BASE, "train_batch_size": 32, "tensor_parallel": {"autotp_size": 2}},
    ),
    _case(
        "tensor parallelism, total of the replicas",
        {**BASE, "train_batch_size": 16, "tensor_parallel": {"autotp_size": 2}},
    ),
    _case(
        "sequence parallelism alone",
        {**BASE, "train_batch_size": "auto", "sequence_parallel_size": 2},
    ),
    _case("sequence parallelism, no total", {**BASE, "sequence_parallel_size": 2}),
    _case(
        "sequence parallelism of one",
        {**BASE, "train_batch_size": "auto", "sequence_parallel_size": 1},
    ),
    # Clipping.
    _case("clipping auto", {**BASE, "gradient_clipping": "auto"}, f"{LOOP} --max_grad_norm 0.3"),
    _case("clipping agrees", {**BASE, "gradient_clipping": 0.3}, f"{LOOP} --max_grad_norm 0.3"),
    _case("clipping differs", {**BASE, "gradient_clipping": 0.7}, f"{LOOP} --max_grad_norm 0.3"),
    _case("clipping absent", BASE, f"{LOOP} --max_grad_norm 0.3"),
    _case("clipping absent, off asked", BASE, f"{LOOP} --max_grad_norm 0"),
    _case("clipping is the default", {**BASE, "gradient_clipping": 1.0}),
    _case("clipping is not the default", {**BASE, "gradient_clipping": 0.5}),
    # The optimizer block.
    _case("rate auto", _optimizer(lr="auto"), f"{LOOP} {ADAM}"),
    _case("rate agrees", _optimizer(lr=2e-5), f"{LOOP} {ADAM}"),
    _case("rate differs", _optimizer(lr=1e-4), f"{LOOP} {ADAM}"),
    _case("rate is text", _optimizer(lr="2e-5"), f"{LOOP} {ADAM}"),
    _case("rate absent", _optimizer(eps=1e-8), f"{LOOP} {ADAM}"),
    _case("no parameters", {**BASE, "optimizer": {"type": "AdamW"}}, f"{LOOP} {ADAM}"),
    _case("no optimizer block", BASE, f"{LOOP} {ADAM}"),
    _case("betas auto", _optimizer(lr="auto", betas="auto"), f"{LOOP} {ADAM} --adam_beta2 0.95"),
    _case(
        "betas agree",
        _optimizer(lr="auto", betas=[0.9, 0.95]),
        f"{LOOP} {ADAM} --adam_beta1 0.9 --adam_beta2 0.95",
    ),
    _case(
        "betas differ",
        _optimizer(lr="auto", betas=[0.9, 0.999]),
        f"{LOOP} {ADAM} --adam_beta1 0.9 --adam_beta2 0.95",
    ),
    _case(
        "betas differ in one",
        _optimizer(lr="auto", betas=[0.9, 0.999]),
        f"{LOOP} {ADAM} --adam_beta2 0.95",
    ),
    _case("epsilon agrees", _optimizer(lr="auto", eps=1e-6), f"{LOOP} {ADAM} --adam_epsilon 1e-6"),
    _case("epsilon differs", _optimizer(lr="auto", eps=1e-8), f"{LOOP} {ADAM} --adam_epsilon 1e-6"),
    _case(
        "weight decay auto",
        _optimizer(lr="auto", weight_decay="auto"),
        f"{LOOP} --weight_decay 0.1",
    ),
    _case(
        "weight decay differs",
        _optimizer(lr="auto", weight_decay=0.0),
        f"{LOOP} --weight_decay 0.1",
    ),
    _case("other parameter is auto", _optimizer(lr="auto", torch_adam="auto"), f"{LOOP} {ADAM}"),
    _case("optim beside the block", _optimizer(lr="auto"), f"{LOOP} {ADAM} --optim adafactor"),
    # The scheduler block.
    _case(
        "schedule auto",
        _scheduler(
            warmup_min_lr="auto",
            warmup_max_lr="auto",
            warmup_num_steps="auto",
            total_num_steps="auto",
        ),
        f"{LOOP} {ADAM} --max_steps 4 --warmup_steps 0",
    ),
    _case(
        "peak agrees",
        _scheduler("WarmupLR", warmup_max_lr=2e-5, warmup_num_steps=2),
        f"{LOOP} {ADAM} --warmup_steps 2",
    ),
    _case(
        "peak differs",
        _scheduler("WarmupLR", warmup_max_lr=1e-4, warmup_num_steps=2),
        f"{LOOP} {ADAM} --warmup_steps 2",
    ),
    _case(
        "warm-up agrees",
        _scheduler("WarmupLR", warmup_num_steps=3),
        f"{LOOP} {ADAM} --warmup_steps 3",
    ),
    _case(
        "warm-up differs",
        _scheduler("WarmupLR", warmup_num_steps=3),
        f"{LOOP} {ADAM} --warmup_steps 5",
    ),
    _case(
        "warm-up of one, none asked",
        _scheduler("WarmupLR", warmup_num_steps=1),
        f"{LOOP} {ADAM} --warmup_steps 0",
    ),
    _case(
        "warm-up of none, none asked",
        _scheduler("WarmupLR", warmup_num_steps=0),
        f"{LOOP} {ADAM} --warmup_steps 0",
    ),
    _case(
        "warm-up is a ratio",
        _scheduler("WarmupLR", warmup_num_steps=1),
        f"{LOOP} {ADAM} --warmup_steps 0.1 --max_steps 4",
    ),
    _case(
        "total steps agree",
        _scheduler(total_num_steps=4, warmup_num_steps=1),
        f"{LOOP} {ADAM} --max_steps 4 --warmup_steps 1",
    ),
    _case(
        "total steps differ",
        _scheduler(total_num_steps=9, warmup_num_steps=1),
        f"{LOOP} {ADAM} --max_steps 4 --warmup_steps 1",
    ),
    _case(
        "total steps from the epochs",
        _scheduler(total_num_steps=6, warmup_num_steps=1),
        f"{LOOP} {ADAM} --max_steps -1 --num_train_epochs 3 --warmup_steps 1",
    ),
    _case(
        "schedule beside the block",
        _scheduler("WarmupLR", warmup_num_steps="auto"),
        f"{LOOP} {ADAM} --lr_scheduler_type cosine",
    ),
    _case(
        "other scheduler parameter is auto",
        _scheduler("WarmupLR", warmup_num_steps="auto", warmup_type="auto"),
        f"{LOOP} {ADAM}",
    ),
    # Precision.
    _case("bf16 auto", {**BASE, "bf16": {"enabled": "auto"}}, f"{LOOP} --bf16"),
    _case(
        "both auto, bf16 asked",
        {**BASE, "bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}},
        f"{LOOP} --bf16 true",
    ),
    _case(
        "both auto, none asked",
        {**BASE, "bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}},
        f"{LOOP} --bf16 false --fp16 false",
    ),
    _case("bf16 absent and asked", BASE, f"{LOOP} --bf16"),
    _case("bf16 empty and asked", {**BASE, "bf16": {}}, f"{LOOP} --bf16"),
    _case("bf16 off and asked", {**BASE, "bf16": {"enabled": False}}, f"{LOOP} --bf16"),
    _case("bf16 on and asked", {**BASE, "bf16": {"enabled": True}}, f"{LOOP} --bf16"),
    _case("bf16 on and refused", {**BASE, "bf16": {"enabled": True}}, f"{LOOP} --bf16 false"),
    _case("bf16 on and not asked", {**BASE, "bf16": {"enabled": True}}),
    _case(
        "bf16 on and asked for evaluation",
        {**BASE, "bf16": {"enabled": True}},
        f"{LOOP} --bf16 false --bf16_full_eval",
    ),
    _case(
        "bf16 auto and asked for evaluation",
        {**BASE, "bf16": {"enabled": "auto"}},
        f"{LOOP} --bf16_full_eval",
    ),
    _case("bf16 is one", {**BASE, "bf16": {"enabled": 1}}, f"{LOOP} --bf16"),
    _case("bf16 is text", {**BASE, "bf16": {"enabled": "true"}}, f"{LOOP} --bf16"),
    _case("old name of bf16", {**BASE, "bfloat16": {"enabled": True}}, f"{LOOP} --bf16"),
    _case(
        "old name of bf16, none asked",
        {**BASE, "bfloat16": {"enabled": True}},
        f"{LOOP} --bf16 false",
    ),
    _case("fp16 auto", {**BASE, "fp16": {"enabled": "auto"}}, f"{LOOP} --fp16"),
    _case("fp16 absent and asked", BASE, f"{LOOP} --fp16"),
    _case("fp16 on, bf16 asked", {**BASE, "fp16": {"enabled": True}}, f"{LOOP} --bf16"),
    _case(
        "fp16 on, bf16 asked and auto",
        {**BASE, "fp16": {"enabled": True}, "bf16": {"enabled": "auto"}},
        f"{LOOP} --bf16",
    ),
    _case("fp16 off, bf16 asked", {**BASE, "fp16": {"enabled": False}}, f"{LOOP} --bf16"),
    _case("fp16 without its switch", {**BASE, "fp16": {"loss_scale": 0}}, f"{LOOP} --fp16"),
    _case(
        "both asked",
        {**BASE, "bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}},
        f"{LOOP} --bf16 --fp16",
    ),
    # ZeRO.
    _case("no zero block", BATCH),
    _case("zero block is null", {**BATCH, "zero_optimization": None}),
    _case("zero block is true", {**BATCH, "zero_optimization": True}),
    _case("zero block is empty", {**BATCH, "zero_optimization": {}}),
    _case("stage auto", {**BATCH, "zero_optimization": {"stage": "auto"}}),
    _case("stage is text", {**BATCH, "zero_optimization": {"stage": "2"}}),
    _case(
        "offload auto",
        _zero(
            stage=3,
            offload_optimizer={"device": "auto", "nvme_path": "auto"},
            offload_param={"device": "auto", "nvme_path": "auto"},
        ),
    ),
    _case("gathering auto", _zero(stage=3, stage3_gather_16bit_weights_on_model_save="auto")),
    _case(
        "gathering auto by its short name",
        _zero(stage=3, gather_16bit_weights_on_model_save="auto"),
    ),
    _case(
        "buckets auto at stage 3",
        _zero(
            stage=3,
            reduce_bucket_size="auto",
            stage3_prefetch_bucket_size="auto",
            stage3_param_persistence_threshold="auto",
        ),
    ),
    _case(
        "buckets auto at stage 2",
        _zero(
            reduce_bucket_size="auto",
            stage3_prefetch_bucket_size="auto",
            stage3_param_persistence_threshold="auto",
        ),
    ),
    _case("bucket auto by its short name", _zero(stage=3, prefetch_bucket_size="auto")),
    _case("bucket by its short name", _zero(stage=3, prefetch_bucket_size=1000)),
    _case("other bucket auto", _zero(allgather_bucket_size="auto")),
    _case("sub group auto", _zero(stage=3, sub_group_size="auto")),
    _case("unknown key in the block", _zero(stagee=3)),
    _case("overlap auto", _zero(overlap_comm="auto")),
    # Everything else.
    _case("prints auto", {**BASE, "steps_per_print": "auto"}),
    _case("breakdown auto", {**BASE, "wall_clock_breakdown": "auto"}),
    _case(
        "activation checkpointing auto",
        {**BASE, "activation_checkpointing": {"number_checkpoints": "auto"}},
    ),
    _case("unknown key", {**BASE, "gradiant_clipping": 1.0}),
    _case("unknown key auto", {**BASE, "gradiant_clipping": "auto"}),
    _case("remark", {**BASE, "_comment": "ours"}),
    _case("auto in a list", {**BASE, "_comment": ["auto"]}),
    _case("removed block", {**BASE, "elasticity": {"enabled": False}}),
    _case("apex", {**BASE, "amp": {"enabled": "auto"}}),
    _case("unmanaged accumulation", {**BASE, "managed_gradient_accumulation": False}),
    _case(
        "local checkpoints",
        {**BASE, "checkpoint": {"use_node_local_storage": False}},
        f"{LOOP} --save_on_each_node",
    ),
    # Texts.
    _case(
        "comment",
        '{\n  // ours\n  "train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2}\n}',
    ),
    _case(
        "trailing comma",
        '{\n  "train_micro_batch_size_per_gpu": 2,\n  "zero_optimization": {"stage": 2},\n}',
    ),
    _case(
        "repeated key",
        '{"train_micro_batch_size_per_gpu": 4, "train_micro_batch_size_per_gpu": 2,'
        ' "gradient_accumulation_steps": 8, "zero_optimization": {"stage": 2}}',
    ),
    _case("list", "[]"),
    _case("empty", "{}"),
    _case(
        "exponent",
        '{"train_micro_batch_size_per_gpu": 2e0, "gradient_accumulation_steps": 8,'
        ' "zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8}}',
    ),
    # How arguments are spelled.
    _case(
        "hyphens",
        {**BASE, "gradient_accumulation_steps": 1},
        "--per-device-train-batch-size 2 --gradient-accumulation-steps=8",
    ),
    _case(
        "abbreviation",
        {**BASE, "gradient_accumulation_steps": 1},
        "--per_device_train_batch_size 2 --gradient_acc 8",
    ),
    _case(
        "last of two counts",
        {**BASE, "gradient_accumulation_steps": 8},
        f"{LOOP} --gradient_accumulation_steps 1",
    ),
]


@dataclass(frozen=True)
class LaunchedCase:
    """A Trainer whose config comes through ``accelerate launch``.

    ``options`` are the launcher's, ``words`` the Trainer's; ``yaml`` is Accelerate's own file.
    """

    name: str
    config: dict[str, Any]
    words: str = LOOP
    options: str = ""
    world_size: int = 2

    @property
    def text(self) -> str:
        return json.dumps(self.config, indent=2)

    @property
    def launch(self) -> str:
        return (
            f"--use_deepspeed --deepspeed_config_file ds_config.json "
            f"--num_processes {self.world_size} {self.options}"
        ).strip()


_launched = LaunchedCase

LAUNCHED_CASES = [
    _launched("all auto", {**BASE, "train_batch_size": "auto"}),
    _launched("accumulation differs", {**BASE, "gradient_accumulation_steps": 1}),
    _launched("accumulation absent", {**ZERO, "train_micro_batch_size_per_gpu": "auto"}),
    _launched(
        "accumulation absent, one asked",
        {**ZERO, "train_micro_batch_size_per_gpu": "auto"},
        "--per_device_train_batch_size 2 --gradient_accumulation_steps 1",
    ),
    _launched(
        "total auto", {**ZERO, "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto"}
    ),
    _launched("launcher counts otherwise", BASE, options="--gradient_accumulation_steps 4"),
    _launched("launcher counts the same", BASE, options="--gradient_accumulation_steps 8"),
    _launched(
        "launcher counts beside a number",
        {**BASE, "gradient_accumulation_steps": 8},
        options="--gradient_accumulation_steps 4",
    ),
    _launched(
        "clipping auto", {**BASE, "gradient_clipping": "auto"}, f"{LOOP} --max_grad_norm 0.3"
    ),
    _launched(
        "launcher clips otherwise",
        {**BASE, "gradient_clipping": "auto"},
        f"{LOOP} --max_grad_norm 0.3",
        "--gradient_clipping 0.5",
    ),
    _launched(
        "clipping absent, launcher asks",
        BASE,
        f"{LOOP} --max_grad_norm 0.3",
        "--gradient_clipping 0.5",
    ),
    _launched(
        "bf16 asked of both",
        {**BASE, "bf16": {"enabled": "auto"}},
        f"{LOOP} --bf16",
        "--mixed_precision bf16",
    ),
    _launched(
        "bf16 asked of the launcher",
        {**BASE, "bf16": {"enabled": "auto"}},
        LOOP,
        "--mixed_precision bf16",
    ),
    _launched(
        "bf16 asked of the launcher, refused by the Trainer",
        {**BASE, "bf16": {"enabled": "auto"}},
        f"{LOOP} --bf16 false",
        "--mixed_precision bf16",
    ),
    _launched("bf16 asked of the Trainer", {**BASE, "bf16": {"enabled": "auto"}}, f"{LOOP} --bf16"),
    _launched("bf16 asked, no block", BASE, f"{LOOP} --bf16"),
    _launched("bf16 asked of the launcher, no block", BASE, f"{LOOP}", "--mixed_precision bf16"),
    _launched("bf16 asked, fp16 on", {**BASE, "fp16": {"enabled": True}}, f"{LOOP} --bf16"),
    _launched("no zero block", BATCH),
    _launched("stage auto", {**BATCH, "zero_optimization": {"stage": "auto"}}),
    _launched("launcher's stage beside a number", BASE, options="--zero_stage 3"),
    _launched("rate differs", _optimizer(lr=1e-4), f"{LOOP} {ADAM}"),
]
