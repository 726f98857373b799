"""The defaults of the training arguments of transformers and TRL that matter to DeepSpeed.

Sources: ``transformers/training_args.py`` and ``transformers/training_args_seq2seq.py`` of
transformers 5.24; the TRL documentation of ``SFTConfig``. The tests compare the former with
the installed release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from dsguard.script.declaration import Constant, Unreadable

if TYPE_CHECKING:
    from collections.abc import Mapping


class FrameworkDefault(Struct, frozen=True):
    """What a training argument is when nobody sets it, and whose default that is."""

    value: Constant | Unreadable
    whose: str


class FrameworkClass(Struct, frozen=True):
    """A class of training arguments of a library.

    ``own`` are the defaults in which the class differs from ``TrainingArguments``. ``names``
    are the names it adds, None where they are not known.
    """

    library: str
    own: Mapping[str, Constant | Unreadable]
    names: frozenset[str] | None


TRAINING_ARGUMENTS_DEFAULTS: Mapping[str, Any] = {
    "per_device_train_batch_size": 8,
    "per_device_eval_batch_size": 8,
    "gradient_accumulation_steps": 1,
    "max_grad_norm": 1.0,
    "learning_rate": 5e-5,
    "weight_decay": 0.0,
    "adam_beta1": 0.9,
    "adam_beta2": 0.999,
    "adam_epsilon": 1e-8,
    "warmup_steps": 0,
    "lr_scheduler_type": "linear",
    "optim": "adamw_torch_fused",
    "num_train_epochs": 3.0,
    "max_steps": -1,
    "bf16": False,
    "fp16": False,
    "bf16_full_eval": False,
    "fp16_full_eval": False,
    "auto_find_batch_size": False,
    "dataloader_drop_last": False,
    "save_on_each_node": False,
    "gradient_checkpointing": None,
    "deepspeed": None,
    "seed": 42,
}
"""The defaults of ``transformers.TrainingArguments``."""

_NAMES = """
accelerator_config activation_checkpointing activation_checkpointing_kwargs adam_beta1
adam_beta2 adam_epsilon auto_find_batch_size average_tokens_across_devices
batch_eval_metrics bf16 bf16_full_eval data_seed dataloader_drop_last dataloader_in_order
dataloader_multiprocessing_context dataloader_num_workers dataloader_persistent_workers
dataloader_pin_memory dataloader_prefetch_factor ddp_backend ddp_broadcast_buffers
ddp_bucket_cap_mb ddp_find_unused_parameters ddp_static_graph ddp_timeout debug deepspeed
disable_tqdm do_eval do_predict do_train enable_jit_checkpoint eval_accumulation_steps
eval_delay eval_do_concat_batches eval_on_start eval_steps eval_strategy
eval_use_gather_object fp16 fp16_full_eval fsdp fsdp_config full_determinism
gradient_accumulation_steps gradient_checkpointing gradient_checkpointing_kwargs
greater_is_better hub_always_push hub_model_id hub_private_repo hub_revision hub_strategy
hub_token ignore_data_skip include_for_metrics include_num_input_tokens_seen label_names
label_smoothing_factor learning_rate length_column_name liger_kernel_config
load_best_model_at_end local_rank log_level log_level_replica log_on_each_node
logging_first_step logging_nan_inf_filter logging_steps logging_strategy lr_scheduler_kwargs
lr_scheduler_type max_grad_norm max_steps metric_for_best_model neftune_noise_alpha
num_train_epochs optim optim_args optim_target_modules output_dir parallelism_config
per_device_eval_batch_size per_device_train_batch_size prediction_loss_only project
push_to_hub remove_unused_columns report_to restore_callback_states_from_checkpoint
resume_from_checkpoint run_name save_on_each_node save_only_model save_steps save_strategy
save_total_limit seed skip_memory_metrics tf32 torch_compile torch_compile_backend
torch_compile_mode torch_empty_cache_steps trackio_bucket_id trackio_space_id
trackio_static_space_id train_sampling_strategy use_cache use_cpu use_liger_kernel
warmup_steps weight_decay
"""

TRAINING_ARGUMENTS_NAMES = frozenset(_NAMES.split())
"""Every argument of ``transformers.TrainingArguments``."""

TRAINING_ARGUMENTS_ON = frozenset(
    {
        "average_tokens_across_devices",
        "dataloader_in_order",
        "dataloader_pin_memory",
        "eval_do_concat_batches",
        "log_on_each_node",
        "logging_nan_inf_filter",
        "remove_unused_columns",
        "skip_memory_metrics",
    }
)
"""The arguments that are on by default, so that HfArgumentParser adds ``--no_…`` for them."""

_SEQ2SEQ_NAMES = frozenset(
    {
        "sortish_sampler",
        "predict_with_generate",
        "generation_max_length",
        "generation_num_beams",
        "generation_config",
    }
)

_OLDER_NAMES = """
adafactor fp16_backend fp16_opt_level fsdp_min_num_params
fsdp_transformer_layer_cls_to_wrap group_by_length half_precision_backend
include_inputs_for_metrics include_tokens_per_second jit_mode_eval logging_dir
mp_parameters no_cuda overwrite_output_dir past_index per_gpu_eval_batch_size
per_gpu_train_batch_size push_to_hub_model_id push_to_hub_organization push_to_hub_token
ray_scope save_safetensors torchdynamo tpu_num_cores use_mps_device warmup_ratio
"""

OLDER_NAMES = frozenset(_OLDER_NAMES.split())
"""Arguments of transformers 4.57 that 5.24 no longer has: an abbreviation that could also
mean one of them is not unique in every release."""

_BY_RELEASE = Unreadable("the default differs between releases of TRL")

_TRL = FrameworkClass(
    "trl",
    dict.fromkeys(
        ("learning_rate", "bf16", "gradient_checkpointing", "logging_steps"), _BY_RELEASE
    ),
    None,
)

_TRL_CLASSES = """
BCOConfig CPOConfig DPOConfig GKDConfig GRPOConfig KTOConfig NashMDConfig OnlineDPOConfig
ORPOConfig PPOConfig PRMConfig RewardConfig RLOOConfig XPOConfig
"""

FRAMEWORK_CLASSES: Mapping[str, FrameworkClass] = {
    "TrainingArguments": FrameworkClass("transformers", {}, frozenset()),
    "Seq2SeqTrainingArguments": FrameworkClass("transformers", {}, _SEQ2SEQ_NAMES),
    "SFTConfig": FrameworkClass(
        "trl",
        {
            "learning_rate": Constant(2e-5),
            "logging_steps": Constant(10),
            "gradient_checkpointing": Constant(True),
            "bf16": Constant(True),
        },
        None,
    ),
    **dict.fromkeys(_TRL_CLASSES.split(), _TRL),
}
"""The classes by name; all of them derive from ``transformers.TrainingArguments``.

``SFTConfig`` turns bf16 on as long as fp16 is not asked for."""


def framework_default(class_name: str, name: str) -> FrameworkDefault | None:
    """The default of one training argument; None where dsguard does not know the name."""
    framework = FRAMEWORK_CLASSES[class_name]
    if name in framework.own:
        return FrameworkDefault(framework.own[name], framework.library)
    if name in TRAINING_ARGUMENTS_DEFAULTS:
        return FrameworkDefault(Constant(TRAINING_ARGUMENTS_DEFAULTS[name]), "transformers")
    return None


def framework_names(class_name: str) -> frozenset[str] | None:
    """Every argument of a class; None where the class adds names that are not known."""
    added = FRAMEWORK_CLASSES[class_name].names
    return None if added is None else TRAINING_ARGUMENTS_NAMES | added
