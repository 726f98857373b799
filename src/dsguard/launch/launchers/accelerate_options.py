"""The options of ``accelerate launch``.

As ``accelerate/commands/launch.py`` (``launch_command_parser``) of 1.15 has them: hyphens and
underscores stand for each other, prefixes do not count.
"""

from __future__ import annotations

from dsguard.launch.options import Option, OptionTable, both_spellings, flag, integer, number, text

_FLAGS = """
    cpu multi_gpu tpu enable_cpu_affinity dynamo_use_fullgraph dynamo_use_dynamic
    dynamo_use_regional_compilation use_deepspeed use_fsdp use_parallelism_config
    use_megatron_lm same_network no_python tpu_use_sudo downcast_bf16
    fp8_use_autocast_during_eval debug
"""
_TEXTS = """
    config_file gpu_ids main_process_ip log_dir role rdzv_backend rdzv_conf vm env
    main_training_function mpirun_hostfile aws_access_key_id aws_secret_access_key

    deepspeed_config_file deepspeed_hostfile deepspeed_exclusion_filter
    deepspeed_inclusion_filter deepspeed_multinode_launcher deepspeed_moe_layer_cls_names
    offload_optimizer_device offload_param_device offload_optimizer_nvme_path
    offload_param_nvme_path zero3_init_flag zero3_save_16bit_model

    fsdp_offload_params fsdp_sharding_strategy fsdp_reshard_after_forward
    fsdp_auto_wrap_policy fsdp_transformer_layer_cls_to_wrap fsdp_backward_prefetch
    fsdp_state_dict_type fsdp_forward_prefetch fsdp_use_orig_params
    fsdp_cpu_ram_efficient_loading fsdp_sync_module_states fsdp_activation_checkpointing
    fsdp_activation_checkpointing_offload

    megatron_lm_sequence_parallelism megatron_lm_recompute_activations
    megatron_lm_use_distributed_optimizer megatron_lm_recompute_granularity
    megatron_lm_recompute_method megatron_lm_attention_backend
    megatron_lm_attention_softmax_in_fp32 megatron_lm_calculate_per_token_loss
    megatron_lm_use_rotary_position_embeddings megatron_lm_use_custom_fsdp
    megatron_lm_no_load_optim megatron_lm_eod_mask_loss
    megatron_lm_overlap_cpu_optimizer_d2h_h2d megatron_lm_no_save_optim
    megatron_lm_optimizer_cpu_offload megatron_lm_use_precision_aware_optimizer

    parallelism_config_cp_comm_strategy parallelism_config_sp_seq_length
    parallelism_config_sp_attn_implementation parallelism_config_sp_seq_length_is_variable
"""
_INTEGERS = """
    num_processes num_machines num_cpu_threads_per_process machine_rank main_process_port
    max_restarts zero_stage gradient_accumulation_steps fsdp_min_num_params

    megatron_lm_tp_degree megatron_lm_pp_degree megatron_lm_num_micro_batches
    megatron_lm_decoder_last_pipeline_num_layers megatron_lm_recompute_num_layers
    megatron_lm_expert_model_parallel_size megatron_lm_context_parallel_size
    megatron_lm_expert_tensor_parallel_size

    fp8_margin fp8_interval fp8_amax_history_len

    parallelism_config_dp_replicate_size parallelism_config_dp_shard_size
    parallelism_config_tp_size parallelism_config_cp_size parallelism_config_sp_size
"""
_NUMBERS = """
    monitor_interval gradient_clipping megatron_lm_gradient_clipping
    megatron_lm_attention_dropout megatron_lm_hidden_dropout
"""
_DYNAMO_BACKENDS = """
    no eager aot_eager inductor aot_ts_nvfuser nvprims_nvfuser cudagraphs ofi fx2trt onnxrt
    tensorrt aot_torchxla_trace_once torhchxla_trace_once tvm
"""


def _truth(value: str) -> None:
    if value.lower() not in (
        "y",
        "yes",
        "t",
        "true",
        "on",
        "1",
        "n",
        "no",
        "f",
        "false",
        "off",
        "0",
    ):
        raise ValueError(value)


def _truths(value: str) -> None:
    for part in value.split(","):
        _truth(part)


def _truth_option(name: str) -> Option:
    return Option((f"--{name}",), name, _truth)


OPTIONS = OptionTable(
    both_spellings(
        (
            flag("-h", "--help"),
            flag("-q", "--quiet"),
            flag("-m", "--module"),
            text("-t", "--tee"),
            flag("--tpu_cluster", dest="tpu_use_cluster"),
            flag("--no_tpu_cluster"),
            *(flag(f"--{name}") for name in _FLAGS.split()),
            *(text(f"--{name}") for name in _TEXTS.split()),
            *(integer(f"--{name}") for name in _INTEGERS.split()),
            *(number(f"--{name}") for name in _NUMBERS.split()),
            text("--mixed_precision", choices=("no", "fp16", "bf16", "fp8")),
            text("--dynamo_backend", choices=_DYNAMO_BACKENDS.split()),
            text("--dynamo_mode", choices=("default", "reduce-overhead", "max-autotune")),
            text("--fsdp_version", choices=("1", "2")),
            text("--fp8_backend", choices=("ao", "te", "msamp")),
            text("--fp8_format", choices=("HYBRID", "E4M3", "E5M2")),
            text("--fp8_amax_compute_algo", choices=("max", "most_recent")),
            text("--fp8_opt_level", choices=("O1", "O2")),
            Option(("--fp8_override_linear_precision",), "fp8_override_linear_precision", _truths),
            _truth_option("fp8_enable_fsdp_float8_all_gather"),
            _truth_option("fp8_pad_inner_dim"),
            text("--parallelism_config_cp_backend", choices=("torch",)),
            text("--parallelism_config_sp_backend", choices=("deepspeed",)),
        )
    ),
    abbreviations=False,
)
