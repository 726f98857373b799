"""autotuning: read by the launcher's ``--autotuning``."""

from typing import Annotated, Any

from dsguard.schema.block import Takes, UncheckedBlock, key

NOT_EMPTY = Takes(bool, "a path that is not empty")


class ModelInfo(UncheckedBlock):
    """The model's size."""

    hidden_size: int | None = key(None, "Hidden size.", since="0.9.3")
    hideen_size: int | None = key(
        None,
        "Hidden size, misspelt.",
        removed="0.9.3",
        replaced_by="autotuning.model_info.hidden_size",
    )
    num_layers: int | None = key(None, "Number of layers.")
    num_params: int | None = key(None, "Number of parameters.")
    profile: bool = key(False, "Profile the model to get the numbers.")


class Autotuning(UncheckedBlock):
    """Search for a fast configuration.

    Source: deepspeed/autotuning/config.py.
    """

    enabled: bool = key(False, "Turn the autotuner on.")
    arg_mappings: dict[str, Any] | None = key(
        None,
        "Map from config keys to the script's own arguments.",
    )
    end_profile_step: int = key(5, "Last step that is measured.")
    exps_dir: Annotated[str, NOT_EMPTY] = key(
        "autotuning_exps",
        "Folder for the tuner's experiments; must not be empty.",
    )
    fast: bool = key(True, "Tune only the ZeRO stage and the micro batch size.")
    max_train_batch_size: int | None = key(None, "Upper limit on train_batch_size; null sets none.")
    max_train_micro_batch_size_per_gpu: int = key(1024, "Upper limit on the micro batch size.")
    metric: str = key("throughput", "What is made best: latency, throughput or flops.")
    metric_path: str | None = key(None, "File the engine writes the measured metric to.")
    min_train_batch_size: int = key(1, "Lower limit on train_batch_size.")
    min_train_micro_batch_size_per_gpu: int = key(1, "Lower limit on the micro batch size.")
    model_info: ModelInfo | None = key(
        None,
        "The model's size, so that the tuner need not measure it.",
    )
    model_info_path: str | None = key(None, "File the measured model numbers are kept in.")
    mp_size: int = key(1, "Degree of model parallelism.")
    num_tuning_micro_batch_sizes: int = key(3, "How many micro batch sizes are tried.")
    overwrite: bool = key(True, "Redo experiments that already have results.")
    results_dir: Annotated[str, NOT_EMPTY] = key(
        "autotuning_results",
        "Folder for the tuner's results; must not be empty.",
    )
    start_profile_step: int = key(3, "First step that is measured.")
    tuner_early_stopping: int = key(5, "Experiments without gain before stopping.")
    tuner_num_trials: int = key(50, "Most experiments that are run for one ZeRO stage.")
    tuner_type: str = key("gridsearch", "gridsearch, random or model_based.")
