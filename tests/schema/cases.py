"""Small configs and the problem each has, if any.

Every config gets a fitting batch added. The problem is (kind, pointer, consequence).
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Case(NamedTuple):
    """One config; ``problem`` is the single problem it has, None where it has none."""

    name: str
    config: dict[str, Any]
    problem: tuple[str, str, str] | None


def zero(**settings: Any) -> dict[str, Any]:
    return {"zero_optimization": settings}


def refused(name: str, config: dict[str, Any], kind: str, pointer: str) -> Case:
    return Case(name, config, (kind, pointer, "refused"))


def fine(name: str, config: dict[str, Any]) -> Case:
    return Case(name, config, None)


TYPE, RANGE, AUTO, UNKNOWN = (
    "mistyped-value",
    "out-of-range-value",
    "unfilled-auto",
    "unknown-key",
)
TOGETHER, CONFLICT, REMOVED = "refused-combination", "conflicting-keys", "removed-key"
STRICT_BLOCKS = [
    "comms_logger",
    "compile",
    "fp16",
    "bf16",
    "hybrid_engine",
    "tensor_parallel",
    "weight_quantization",
    "zero_optimization",
    "tensorboard",
    "wandb",
    "csv_monitor",
    "comet",
]
LOOSE_BLOCKS = [
    "optimizer",
    "scheduler",
    "aio",
    "activation_checkpointing",
    "flops_profiler",
    "autotuning",
    "checkpoint",
    "data_types",
    "data_efficiency",
    "torch_autocast",
    "expert_parallel",
    "pipeline",
]
CURRICULUM = "/data_efficiency/data_sampling/curriculum_learning"
DYNAMIC = "/data_efficiency/data_sampling/dynamic_batching"


def curriculum(**settings: Any) -> dict[str, Any]:
    return {"data_efficiency": {"data_sampling": {"curriculum_learning": settings}}}


def dynamic(**settings: Any) -> dict[str, Any]:
    return {"data_efficiency": {"data_sampling": {"dynamic_batching": settings}}}


CASES: tuple[Case, ...] = (
    fine("nothing", {}),
    # Unknown keys
    Case("unknown top-level key", {"colour": 1}, (UNKNOWN, "/colour", "ignored")),
    *(
        refused(f"unknown key in {block}", {block: {"colour": 1}}, UNKNOWN, f"/{block}/colour")
        for block in STRICT_BLOCKS
    ),
    *(
        Case(
            f"unknown key in {block}",
            {block: {"colour": 1}},
            (UNKNOWN, f"/{block}/colour", "ignored"),
        )
        for block in LOOSE_BLOCKS
    ),
    refused(
        "unknown key in an offload block",
        zero(offload_param={"colour": 1}),
        UNKNOWN,
        "/zero_optimization/offload_param/colour",
    ),
    fine("unknown timer", {"timers": {"mine": {"enabled": True}}}),
    fine("any optimizer argument", {"optimizer": {"type": "SGD", "params": {"nesterov": True}}}),
    fine("comments", {"_why": 1, "// why": 2, "#": 3, "$schema": "x", "Comment": 4, "notes": []}),
    fine("comment in a loose block", {"optimizer": {"_why": "because"}}),
    refused("comment in a strict block", {"fp16": {"_why": 1}}, UNKNOWN, "/fp16/_why"),
    Case(
        "unknown key with auto in a strict block",
        {"fp16": {"colour": "auto"}},
        (UNKNOWN, "/fp16/colour", "ignored"),
    ),
    Case("argument strict", {"fp16": {"strict": False}}, (UNKNOWN, "/fp16/strict", "ignored")),
    refused(
        "key of the documentation that no release reads",
        zero(grad_hooks=True),
        UNKNOWN,
        "/zero_optimization/grad_hooks",
    ),
    refused(
        "fp16 key under bf16",
        {"bf16": {"loss_scale": 0}},
        "misplaced-key",
        "/bf16/loss_scale",
    ),
    Case("zero key at the top", {"stage": 2}, ("misplaced-key", "/stage", "ignored")),
    # Removed keys
    *(
        refused(f"{key} is {value}", {key: value}, REMOVED, f"/{key}")
        for key in [
            "nebula",
            "compression_training",
            "quantize_training",
            "sparse_attention",
            "amp",
            "sparse_gradients",
            "eigenvalue",
            "elasticity",
            "graph_harvesting",
            "curriculum_learning",
            "progressive_layer_drop",
        ]
        for value in (None, False)
    ),
    *(
        refused(key, zero(**{key: "auto"}), REMOVED, f"/zero_optimization/{key}")
        for key in ("mics_shard_size", "mics_hierarchical_params_gather", "zeropp_loco_param")
    ),
    refused("old compile form", {"compile": {"enabled": True}}, REMOVED, "/compile/enabled"),
    Case("old aio key", {"aio": {"thread_count": 1}}, (REMOVED, "/aio/thread_count", "ignored")),
    # Blocks that must be objects
    *(
        refused(f"{block} is {value!r}", {block: value}, TYPE, f"/{block}")
        for block in [
            "fp16",
            "optimizer",
            "scheduler",
            "zero_optimization",
            "activation_checkpointing",
            "flops_profiler",
            "checkpoint",
            "data_types",
            "data_efficiency",
            "hybrid_engine",
            "comms_logger",
            "compile",
            "tensor_parallel",
            "autotuning",
            "timers",
            "torch_autocast",
            "tensorboard",
            "wandb",
            "csv_monitor",
            "comet",
            "weight_quantization",
            "pipeline",
        ]
        for value in (None, 5)
    ),
    *(
        refused(f"{block} is true", {block: True}, TYPE, f"/{block}")
        for block in ("fp16", "bf16", "optimizer", "aio", "timers", "expert_parallel")
    ),
    *(fine(f"{b} is null", {b: None}) for b in ("bf16", "aio", "expert_parallel")),
    fine("expert_parallel is false", {"expert_parallel": False}),
    Case("timers is text", {"timers": "on"}, (TYPE, "/timers", "ignored")),
    refused("timers is the text it looks for", {"timers": "throughput"}, TYPE, "/timers"),
    refused("zero is auto", {"zero_optimization": "auto"}, AUTO, "/zero_optimization"),
    Case("a monitor is auto", {"wandb": "auto"}, (AUTO, "/wandb", "ignored")),
    fine("datastates takes anything", {"datastates_ckpt": "x"}),
    # Batch and ranks
    *(
        refused(f"{key} is auto", {key: "auto"}, AUTO, f"/{key}")
        for key in ("train_batch_size", "gradient_accumulation_steps", "sequence_parallel_size")
    ),
    refused("batch is text", {"train_batch_size": "1"}, TYPE, "/train_batch_size"),
    refused("batch is zero", {"train_batch_size": 0}, RANGE, "/train_batch_size"),
    refused(
        "no micro batch",
        {"train_micro_batch_size_per_gpu": 0},
        RANGE,
        "/train_micro_batch_size_per_gpu",
    ),
    refused(
        "accumulation below zero",
        {"gradient_accumulation_steps": -2},
        RANGE,
        "/gradient_accumulation_steps",
    ),
    fine("batch is a float", {"train_batch_size": 1.0}),
    fine("no accumulation given", {"gradient_accumulation_steps": None}),
    refused(
        "sequence parallelism is text",
        {"sequence_parallel_size": "2"},
        TYPE,
        "/sequence_parallel_size",
    ),
    refused(
        "sequence parallelism is null",
        {"sequence_parallel_size": None},
        TYPE,
        "/sequence_parallel_size",
    ),
    refused(
        "sequence parallelism is zero",
        {"sequence_parallel_size": 0},
        RANGE,
        "/sequence_parallel_size",
    ),
    # Precision
    refused(
        "two precisions",
        {"fp16": {"enabled": True}, "bf16": {"enabled": 1}},
        TOGETHER,
        "/bf16/enabled",
    ),
    Case("precision auto", {"fp16": {"enabled": "auto"}}, (AUTO, "/fp16/enabled", "ignored")),
    fine("precision as text", {"fp16": {"enabled": "False"}}),
    refused("precision is 2", {"fp16": {"enabled": 2}}, TYPE, "/fp16/enabled"),
    *(
        refused(f"loss scale {value!r}", {"fp16": {"loss_scale": value}}, kind, "/fp16/loss_scale")
        for value, kind in (
            (-1, RANGE),
            (float("inf"), RANGE),
            (True, TYPE),
            ("x", TYPE),
            (None, TYPE),
        )
    ),
    fine("loss scale as text", {"fp16": {"loss_scale": "128"}}),
    refused(
        "no window",
        {"fp16": {"enabled": True, "loss_scale_window": 0}},
        TOGETHER,
        "/fp16/loss_scale_window",
    ),
    refused(
        "no lower limit",
        {"fp16": {"enabled": True, "min_loss_scale": 0}},
        TOGETHER,
        "/fp16/min_loss_scale",
    ),
    fine(
        "no window with a static scale",
        {"fp16": {"enabled": True, "loss_scale": 8, "loss_scale_window": 0}},
    ),
    refused(
        "a fraction as lower limit", {"fp16": {"min_loss_scale": 0.5}}, TYPE, "/fp16/min_loss_scale"
    ),
    refused(
        "a boolean as window",
        {"fp16": {"loss_scale_window": True}},
        TYPE,
        "/fp16/loss_scale_window",
    ),
    Case(
        "both names of bf16",
        {"bf16": {}, "bfloat16": {"enabled": "x"}},
        (CONFLICT, "/bfloat16", "ignored"),
    ),
    Case(
        "old name of bf16", {"bfloat16": {"enabled": True}}, ("deprecated-key", "/bfloat16", "note")
    ),
    refused(
        "fp16 master weights without ZeRO",
        {"fp16": {"fp16_master_weights_and_grads": True}},
        TOGETHER,
        "/fp16/fp16_master_weights_and_grads",
    ),
    refused(
        "bf16 master weights without ZeRO",
        {"bf16": {"bf16_master_weights_and_grads": True}},
        TOGETHER,
        "/bf16/bf16_master_weights_and_grads",
    ),
    refused(
        "bf16 states without master weights",
        {"bf16": {"bf16_optimizer_states": True}} | zero(stage=1),
        TOGETHER,
        "/bf16/bf16_optimizer_states",
    ),
    fine(
        "bf16 master weights with the old form of ZeRO off",
        {"bf16": {"bf16_master_weights_and_grads": False}},
    ),
    *(
        refused(f"{key} is {value!r}", {key: value}, kind, f"/{key}")
        for key in ("communication_data_type", "seq_parallel_communication_data_type")
        for value, kind in (("float16", RANGE), ("none", RANGE), (16, TYPE), ("auto", AUTO))
    ),
    fine("communication type in capitals", {"communication_data_type": "BF16"}),
    refused(
        "modules are text",
        {"data_types": {"keep_in_fp32_modules": "norm"}},
        RANGE,
        "/data_types/keep_in_fp32_modules",
    ),
    refused(
        "modules are null",
        {"data_types": {"keep_in_fp32_modules": None}},
        TYPE,
        "/data_types/keep_in_fp32_modules",
    ),
    fine("modules are auto", {"data_types": {"keep_in_fp32_modules": "auto"}}),
    Case(
        "unknown data type",
        {"data_types": {"param_dtype": "fp8"}},
        (RANGE, "/data_types/param_dtype", "late"),
    ),
    refused(
        "autocast to an unknown type",
        {"torch_autocast": {"dtype": "fp8"}},
        RANGE,
        "/torch_autocast/dtype",
    ),
    refused("autocast to null", {"torch_autocast": {"dtype": None}}, TYPE, "/torch_autocast/dtype"),
    refused(
        "autocast modules are numbers",
        {"torch_autocast": {"lower_precision_safe_modules": [1]}},
        TYPE,
        "/torch_autocast/lower_precision_safe_modules",
    ),
    Case(
        "autocast modules are text",
        {"torch_autocast": {"lower_precision_safe_modules": "torch.nn.Linear"}},
        (TYPE, "/torch_autocast/lower_precision_safe_modules", "late"),
    ),
    # ZeRO
    Case(
        "zero is true",
        {"zero_optimization": True},
        ("deprecated-key", "/zero_optimization", "note"),
    ),
    refused("stage 4", zero(stage=4), RANGE, "/zero_optimization/stage"),
    refused("stage null", zero(stage=None), TYPE, "/zero_optimization/stage"),
    fine("stage as text", zero(stage="2")),
    Case("stage auto", zero(stage="auto"), (AUTO, "/zero_optimization/stage", "ignored")),
    fine("bucket as a float", zero(reduce_bucket_size=5e8)),
    fine("bucket as text", zero(reduce_bucket_size="500")),
    refused(
        "bucket with a fraction",
        zero(reduce_bucket_size=15099494.4),
        TYPE,
        "/zero_optimization/reduce_bucket_size",
    ),
    refused(
        "bucket as text with an exponent",
        zero(reduce_bucket_size="5e8"),
        TYPE,
        "/zero_optimization/reduce_bucket_size",
    ),
    refused(
        "bucket of nothing",
        zero(reduce_bucket_size=0),
        RANGE,
        "/zero_optimization/reduce_bucket_size",
    ),
    fine("switch as text", zero(overlap_comm="yes")),
    refused("switch is 2", zero(overlap_comm=2), TYPE, "/zero_optimization/overlap_comm"),
    fine("short spelling", zero(max_live_parameters=5)),
    refused(
        "both spellings",
        zero(stage3_max_live_parameters=5, max_live_parameters=6),
        CONFLICT,
        "/zero_optimization/max_live_parameters",
    ),
    Case(
        "old offload key",
        zero(cpu_offload=True),
        ("deprecated-key", "/zero_optimization/cpu_offload", "note"),
    ),
    Case(
        "old key without effect",
        zero(cpu_offload_use_pin_memory=True),
        ("deprecated-key", "/zero_optimization/cpu_offload_use_pin_memory", "ignored"),
    ),
    refused(
        "misspelt old key",
        zero(cpu_offload_params=True),
        UNKNOWN,
        "/zero_optimization/cpu_offload_params",
    ),
    refused("offload is true", zero(offload_param=True), TYPE, "/zero_optimization/offload_param"),
    refused(
        "offload device in capitals",
        zero(offload_param={"device": "CPU"}),
        RANGE,
        "/zero_optimization/offload_param/device",
    ),
    refused(
        "offload device null",
        zero(offload_param={"device": None}),
        TYPE,
        "/zero_optimization/offload_param/device",
    ),
    Case(
        "offload device auto",
        zero(offload_param={"device": "auto"}),
        (AUTO, "/zero_optimization/offload_param/device", "ignored"),
    ),
    refused(
        "part of an offload at stage 2",
        zero(stage=2, offload_optimizer={"device": "cpu", "ratio": 0.5}),
        TOGETHER,
        "/zero_optimization/offload_optimizer/ratio",
    ),
    fine(
        "part of an offload at stage 3",
        zero(stage=3, offload_optimizer={"device": "cpu", "ratio": 0.5}),
    ),
    Case(
        "part of no offload",
        zero(stage=3, offload_optimizer={"ratio": 0.5}),
        ("unused-setting", "/zero_optimization/offload_optimizer", "ignored"),
    ),
    refused(
        "more than an offload",
        zero(stage=3, offload_optimizer={"ratio": 1.5}),
        RANGE,
        "/zero_optimization/offload_optimizer/ratio",
    ),
    *(
        refused(
            f"no norm at stage {stage}",
            zero(stage=stage, compute_grad_norm=False),
            TOGETHER,
            "/zero_optimization/compute_grad_norm",
        )
        for stage in (0, 3)
    ),
    fine("no norm at stage 1", zero(stage=1, compute_grad_norm=False)),
    refused(
        "leaf modules are a list", zero(leaf_module=["a"]), TYPE, "/zero_optimization/leaf_module"
    ),
    fine("leaf modules are null", zero(leaf_module=None)),
    fine("one leaf module", zero(leaf_module={"classes": "my.Block"})),
    Case(
        "leaf modules auto",
        zero(leaf_module={"classes": "auto"}),
        (AUTO, "/zero_optimization/leaf_module/classes", "differs"),
    ),
    Case(
        "old stage 1",
        zero(stage=1, legacy_stage1=True),
        ("deprecated-key", "/zero_optimization/legacy_stage1", "late"),
    ),
    fine("no old stage 1", zero(stage=1, legacy_stage1=False)),
    fine("strategy auto", zero(zenflow={"select_strategy": "auto", "update_interval": "auto"})),
    refused(
        "unknown strategy",
        zero(zenflow={"select_strategy": "day"}),
        RANGE,
        "/zero_optimization/zenflow/select_strategy",
    ),
    refused(
        "interval as text",
        zero(zenflow={"select_interval": "5"}),
        TYPE,
        "/zero_optimization/zenflow/select_interval",
    ),
    refused(
        "no update",
        zero(zenflow={"update_interval": 0}),
        RANGE,
        "/zero_optimization/zenflow/update_interval",
    ),
    refused(
        "all columns",
        zero(zenflow={"topk_ratio": 1.0}),
        RANGE,
        "/zero_optimization/zenflow/topk_ratio",
    ),
    # Reduction
    *(
        refused(
            f"operation {value!r}", {"gradient_allreduce_op": value}, kind, "/gradient_allreduce_op"
        )
        for value, kind in (("max", RANGE), (None, TYPE), ("auto", AUTO))
    ),
    fine("sum", {"gradient_allreduce_op": "SUM"}),
    refused(
        "sum at stage 3",
        {"gradient_allreduce_op": "sum"} | zero(stage=3),
        TOGETHER,
        "/gradient_allreduce_op",
    ),
    refused(
        "sum with zenflow",
        {"gradient_allreduce_op": "Sum"} | zero(zenflow={}),
        TOGETHER,
        "/gradient_allreduce_op",
    ),
    refused(
        "sum with deepcompile",
        {"gradient_allreduce_op": "sum", "compile": {"deepcompile": True}} | zero(stage=1),
        TOGETHER,
        "/gradient_allreduce_op",
    ),
    # Optimizer and scheduler
    refused("optimizer is a number", {"optimizer": {"type": 5}}, TYPE, "/optimizer/type"),
    fine("optimizer without a type", {"optimizer": {"params": "anything"}}),
    refused(
        "parameters are a list",
        {"optimizer": {"type": "Adam", "params": []}},
        TYPE,
        "/optimizer/params",
    ),
    fine("no parameters", {"optimizer": {"type": "Adam", "params": None}}),
    *(
        refused(
            f"max_grad_norm {value!r}",
            {"optimizer": {"type": "Adam", "params": {"max_grad_norm": value}}},
            kind,
            "/optimizer/params/max_grad_norm",
        )
        for value, kind in (("auto", AUTO), (None, TYPE), ("1", TYPE))
    ),
    Case("optimizer auto", {"optimizer": {"type": "auto"}}, (AUTO, "/optimizer/type", "late")),
    Case(
        "learning rate auto",
        {"optimizer": {"type": "Adam", "params": {"lr": "auto"}}},
        (AUTO, "/optimizer/params/lr", "late"),
    ),
    Case(
        "learning rate is text",
        {"optimizer": {"type": "Adam", "params": {"lr": "1e-4"}}},
        (TYPE, "/optimizer/params/lr", "late"),
    ),
    Case(
        "an argument is auto",
        {"optimizer": {"type": "SGD", "params": {"dampening": "auto"}}},
        (AUTO, "/optimizer/params/dampening", "late"),
    ),
    Case(
        "warm-up auto",
        {"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}}},
        (AUTO, "/scheduler/params/warmup_num_steps", "late"),
    ),
    Case(
        "lr beside params",
        {"optimizer": {"type": "Adam", "lr": 1}},
        ("misplaced-key", "/optimizer/lr", "ignored"),
    ),
    # Top-level values
    *(
        refused(
            f"breakdown {value!r}", {"wall_clock_breakdown": value}, kind, "/wall_clock_breakdown"
        )
        for value, kind in (("true", TYPE), (None, TYPE), (1.0, RANGE), ("auto", AUTO))
    ),
    refused(
        "profiler auto", {"flops_profiler": {"enabled": "auto"}}, AUTO, "/flops_profiler/enabled"
    ),
    *(
        Case(f"{key} auto", {key: "auto"}, (AUTO, f"/{key}", "late"))
        for key in ("gradient_clipping", "steps_per_print", "gradient_predivide_factor")
    ),
    Case("clipping null", {"gradient_clipping": None}, (TYPE, "/gradient_clipping", "late")),
    fine("never printed", {"steps_per_print": float("inf")}),
    Case("clipping as text", {"gradient_clipping": "1.0"}, (TYPE, "/gradient_clipping", "late")),
    Case(
        "false as text", {"prescale_gradients": "false"}, (TYPE, "/prescale_gradients", "differs")
    ),
    Case("true as text", {"dump_state": "true"}, (TYPE, "/dump_state", "note")),
    Case("switch auto", {"prescale_gradients": "auto"}, (AUTO, "/prescale_gradients", "differs")),
    Case("without effect", {"disable_allgather": "no"}, (TYPE, "/disable_allgather", "ignored")),
    fine("number for a switch", {"prescale_gradients": 1}),
    refused("vocabulary is text", {"vocabulary_size": "32000"}, TYPE, "/vocabulary_size"),
    fine("odd vocabulary", {"vocabulary_size": 32003}),
    Case(
        "old bucket key", {"allgather_size": "x"}, ("deprecated-key", "/allgather_size", "ignored")
    ),
    # Checkpoint, data, autotuning, parallelism
    *(
        refused(
            f"validation {value!r}",
            {"checkpoint": {"tag_validation": value}},
            kind,
            "/checkpoint/tag_validation",
        )
        for value, kind in (("maybe", RANGE), (None, TYPE), ("auto", AUTO))
    ),
    refused(
        "stage by stage",
        {"checkpoint": {"parallel_write": {"pipeline_stage": "true"}}},
        TYPE,
        "/checkpoint/parallel_write/pipeline_stage",
    ),
    fine("stage by stage as a number", {"checkpoint": {"parallel_write": {"pipeline_stage": 1}}}),
    refused(
        "unknown writer",
        {"checkpoint": {"writer": {"type": "quick"}}},
        RANGE,
        "/checkpoint/writer/type",
    ),
    refused(
        "unknown unit",
        {"checkpoint": {"writer": {"data_parallel": 1}}},
        TYPE,
        "/checkpoint/writer/data_parallel",
    ),
    refused(
        "no tokens",
        {"hybrid_engine": {"max_out_tokens": 0}},
        RANGE,
        "/hybrid_engine/max_out_tokens",
    ),
    refused(
        "curriculum without metrics", curriculum(enabled=True), TOGETHER, f"{CURRICULUM}/enabled"
    ),
    fine("no curriculum", curriculum(enabled=False)),
    refused("batching without tokens", dynamic(enabled=True), TOGETHER, f"{DYNAMIC}/enabled"),
    refused(
        "tokens are words", dynamic(enabled=True, max_tokens="many"), TYPE, f"{DYNAMIC}/max_tokens"
    ),
    fine("tokens are words and nobody asks", dynamic(max_tokens="many")),
    refused("no largest batch", dynamic(max_batch_size=None), TYPE, f"{DYNAMIC}/max_batch_size"),
    refused("no folder", {"autotuning": {"results_dir": ""}}, RANGE, "/autotuning/results_dir"),
    refused(
        "data type of tensor parallelism",
        {"tensor_parallel": {"dtype": "bf16"}},
        TYPE,
        "/tensor_parallel/dtype",
    ),
    Case(
        "typo in own rules",
        {"tensor_parallel": {"partition_config": {"layer_spec": []}}},
        (UNKNOWN, "/tensor_parallel/partition_config/layer_spec", "ignored"),
    ),
    refused(
        "coefficient",
        {"expert_parallel": {"load_balance_coeff": 0.1}},
        TYPE,
        "/expert_parallel/load_balance_coeff",
    ),
    fine(
        "words of expert parallelism", {"expert_parallel": {"score_apply": "auto", "top_k": "auto"}}
    ),
    fine("unknown word, switched off", {"expert_parallel": {"score_apply": "mid"}}),
    Case(
        "unknown word of expert parallelism",
        {"expert_parallel": {"enabled": True, "score_apply": "mid"}},
        (RANGE, "/expert_parallel/score_apply", "late"),
    ),
    Case(
        "expert key of MoE layers",
        {"expert_parallel": {"ep_size": 2}},
        (UNKNOWN, "/expert_parallel/ep_size", "ignored"),
    ),
    refused("unknown pass", {"compile": {"passes": ["z1", "z2"]}}, RANGE, "/compile/passes/1"),
    refused(
        "job name is a number", {"tensorboard": {"job_name": 5}}, TYPE, "/tensorboard/job_name"
    ),
    fine("pipeline stages", {"pipeline": {"stages": "auto"}}),
)
