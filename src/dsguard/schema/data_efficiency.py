"""data_efficiency: curriculum sampling, dynamic batching and random layer-token drop."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from dsguard.model.finding import Consequence
from dsguard.schema import wording
from dsguard.schema.block import Takes, UncheckedBlock, UnknownKeys, key
from dsguard.schema.problem import Place, Problem


def _converts_to_int(value: Any) -> bool:
    try:
        int(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


WHOLE = Takes(_converts_to_int, "a whole number")


_LOADER = "the loader that DeepSpeed builds from training_data"
_SCHEDULES = {
    "fixed_discrete": ("difficulty", "max_step"),
    "fixed_linear": ("total_curriculum_step", "difficulty_step"),
    "fixed_root": ("total_curriculum_step", "difficulty_step", "root_degree"),
}
"""What schedule_config must hold; CurriculumScheduler in runtime/data_pipeline asks for it."""


def curriculum(
    given: dict[str, Any], at: Place, needs: tuple[str, ...], stops: str = _LOADER
) -> Iterator[Problem]:
    """What is missing from a curriculum that is used, and numbers that do not fit each other."""
    missing = [name for name in needs if name not in given]
    if missing:
        yield wording.failing(
            at, given, None, f"{at.dotted} has no key {' and no key '.join(missing)}", stops
        )
    kind, config = given.get("schedule_type"), given.get("schedule_config")
    wanted = _SCHEDULES.get(kind, ()) if isinstance(kind, str) else ()
    if config is not None and not isinstance(config, dict):
        return  # mistyped
    absent = [name for name in wanted if name not in (config or {})]
    place = at.child("schedule_config")
    if absent:
        yield wording.failing(
            place if config is not None else at.child("schedule_type"),
            kind,
            at.child("schedule_type"),
            f"{place.dotted} has no key {' and no key '.join(absent)}, which schedule_type "
            f'"{kind}" needs',
            stops,
        )
    elif kind == "fixed_discrete" and config is not None:
        phases, ends = config["difficulty"], config["max_step"]
        if isinstance(phases, list) and isinstance(ends, list) and len(phases) != len(ends) + 1:
            yield wording.failing(
                place.child("max_step"),
                ends,
                place.child("difficulty"),
                f"{place.dotted} has {len(phases)} difficulties and {len(ends)} values in "
                "max_step, but exactly the last difficulty has no end",
                stops,
            )


class CurriculumSchedule(UncheckedBlock):
    """Numbers of one metric's schedule; which are needed depends on schedule_type."""

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.FREE

    difficulty: list[Any] = key(None, "Difficulties, one for each phase (fixed_discrete).")
    difficulty_step: int = key(
        None, "Difficulties are multiples of this (fixed_linear, fixed_root)."
    )
    max_step: list[Any] = key(
        None, "Steps at which a phase ends, one less than difficulties (fixed_discrete)."
    )
    root_degree: int = key(None, "Degree of the root (fixed_root).")
    total_curriculum_step: int = key(
        None, "Steps until the last difficulty (fixed_linear, fixed_root)."
    )


class CurriculumMetric(UncheckedBlock):
    """One difficulty metric."""

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.FREE

    clustering_type: str = key(None, "How samples are clustered: schedule_based or single_cluster.")
    difficulty_type: str = key(
        None, "What difficulties count: the metric's value or its percentile."
    )
    index_to_metric_path: str = key(None, "Index file of metric values.")
    index_to_sample_path: str = key(None, "Index file of samples.")
    max_difficulty: int = key(None, "Difficulty training ends with.")
    min_difficulty: int = key(None, "Difficulty training starts with.")
    schedule_config: CurriculumSchedule | None = key(
        None, "Numbers of the schedule.", wrong=Consequence.LATE
    )
    schedule_type: Literal["fixed_linear", "fixed_root", "fixed_discrete", "custom"] = key(
        None,
        "fixed_linear, fixed_root, fixed_discrete or custom.",
    )


_METRIC_NEEDS = (
    "min_difficulty",
    "max_difficulty",
    "schedule_type",
    "difficulty_type",
    "clustering_type",
)


class CurriculumLearning(UncheckedBlock):
    """Samples in the order of their difficulty.

    Source: get_curriculum_learning in deepspeed/runtime/data_pipeline/config.py.
    """

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.FREE

    enabled: bool = key(False, "Turn curriculum learning on; needs curriculum_metrics.")
    curriculum_metrics: dict[str, CurriculumMetric] | None = key(
        None,
        "Difficulty metrics by name.",
        wrong=Consequence.LATE,
    )
    data_cluster_path: str = key(None, "Folder of the clustered indexes.")

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """Switched on, it needs ``curriculum_metrics``."""
        if given.get("enabled") and "curriculum_metrics" not in given:
            yield wording.combination(
                at.child("enabled"),
                given["enabled"],
                None,
                f"{at.dotted} is enabled without {at.dotted}.curriculum_metrics",
            )
        metrics = given.get("curriculum_metrics")
        if given.get("enabled") is True and isinstance(metrics, dict):
            for name, metric in metrics.items():
                if isinstance(metric, dict):
                    place = at.child("curriculum_metrics").child(name)
                    yield from curriculum(metric, place, _METRIC_NEEDS)

    @classmethod
    def unread(cls, given: dict[str, Any]) -> frozenset[str]:
        """Switched off, the metrics are never looked at."""
        return frozenset() if given.get("enabled") else frozenset({"curriculum_metrics"})


class DynamicBatching(UncheckedBlock):
    """Source: get_dynamic_batching in deepspeed/runtime/data_pipeline/config.py.

    Numbers are converted with ``int()``, whatever they are; only what that refuses stops it.
    """

    enabled: bool = key(False, "Turn dynamic batching on; needs max_tokens.", since="0.16.5")
    lr_scaling_method: Literal["linear", "sqrt", "none"] | None = key(
        "linear",
        "How the learning rate follows the batch size: linear, sqrt or none.",
        since="0.16.5",
        expected='one of "linear", "sqrt", "none"',
    )
    max_batch_size: Annotated[int, WHOLE] = key(
        None,
        "Most samples in one batch; absent sets no limit.",
        since="0.16.5",
    )
    max_tokens: Annotated[int, WHOLE] = key(None, "Most tokens in one batch.", since="0.16.5")
    metrics_path: str = key(None, "Folder of the measured sequence lengths.", since="0.16.5")
    min_batch_size: Annotated[int, WHOLE] = key(1, "Fewest samples in one batch.", since="0.16.5")
    sequence_picking_order: Literal["dataloader", "random", "seqlen"] = key(
        "dataloader",
        "Order in which samples are taken: dataloader, random or seqlen.",
        since="0.16.5",
    )
    verbose: bool = key(False, "Print how batches were put together.", since="0.16.5")

    @classmethod
    def unread(cls, given: dict[str, Any]) -> frozenset[str]:
        """Off, ``max_tokens`` is not converted and no name is asked for."""
        names = {"max_tokens", "lr_scaling_method", "sequence_picking_order"}
        return frozenset() if given.get("enabled") else frozenset(names)

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """Switched on, it needs ``max_tokens``."""
        if given.get("enabled") and "max_tokens" not in given:
            yield wording.combination(
                at.child("enabled"),
                given["enabled"],
                None,
                f"{at.dotted} is enabled without {at.dotted}.max_tokens",
            )


class DataSampling(UncheckedBlock):
    """How samples are chosen.

    Source: get_data_sampling in deepspeed/runtime/data_pipeline/config.py.
    """

    enabled: bool = key(False, "Turn data sampling on.")
    curriculum_learning: CurriculumLearning = key({}, "Train on easy samples first.")
    dynamic_batching: DynamicBatching = key({}, "Batch size by tokens.", since="0.16.5")
    num_epochs: int = key(1000, "Epochs the sampler covers.")
    num_workers: int = key(0, "Worker processes of the loader.")
    pin_memory: bool = key(False, "Load batches into page-locked memory.", since="0.16.5")


class LayerTokenSchedule(UncheckedBlock):
    """Learning rate by layer tokens."""

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.FREE

    enabled: bool = key(False, "Must be false: the feature is not implemented.")


class RandomLtdLengths(UncheckedBlock):
    """Numbers of the schedule."""

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.FREE

    require_steps: int = key(None, "Steps until the last sequence length.")
    seq_per_step: int = key(None, "Sequence lengths are multiples of this.")


class RandomLtdSchedule(UncheckedBlock):
    """How many tokens are kept at which step."""

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.FREE

    max_value: int = key(None, "Last sequence length.")
    min_value: int = key(None, "First sequence length.")
    schedule_config: RandomLtdLengths | None = key(
        None, "Numbers of the schedule.", wrong=Consequence.LATE
    )
    schedule_type: Literal["fixed_linear"] = key(
        None, "Shape of the schedule; fixed_linear is the only one."
    )


class RandomLtd(UncheckedBlock):
    """Random layer-token drop.

    Source: get_random_ltd in deepspeed/runtime/data_pipeline/config.py.
    """

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.FREE

    enabled: bool = key(
        False,
        "Turn random layer-token drop on; data_routing.enabled is not consulted.",
    )
    global_batch_size: int = key(None, "Filled in by the engine.")
    hidden_state_order: Literal["batch_seq_dim", "seq_batch_dim"] = key(
        None, "Order of the hidden states' dimensions: batch_seq_dim or seq_batch_dim."
    )
    layer_token_lr_schedule: LayerTokenSchedule | None = key(
        None, "LR schedule by layer tokens.", wrong=Consequence.LATE
    )
    model_mask_name: str | None = key(None, "Name of the attention mask argument, or null.")
    model_type: Literal["encoder", "decoder"] = key(None, "Kind of model: encoder or decoder.")
    random_ltd_layer_id: list[Any] = key(None, "Numbers of the layers that drop tokens.")
    random_ltd_layer_num: int = key(
        None,
        "Number of layers that drop tokens; the length of random_ltd_layer_id.",
    )
    random_ltd_schedule: RandomLtdSchedule | None = key(
        None, "Schedule of kept tokens.", wrong=Consequence.LATE
    )
    total_layer_num: int = key(None, "Number of layers of the model.")

    @classmethod
    def unread(cls, given: dict[str, Any]) -> frozenset[str]:
        """Switched off, nothing else is looked at."""
        return frozenset() if given.get("enabled") else frozenset(given) - {"enabled"}

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """The learning rate by layer tokens was never finished."""
        schedule = given.get("layer_token_lr_schedule")
        on = isinstance(schedule, dict) and schedule.get("enabled") is True
        if given.get("enabled") is True and on:
            place = at.child("layer_token_lr_schedule").child("enabled")
            yield wording.failing(
                place,
                True,
                at.child("enabled"),
                f"{place.dotted} is true, which is not implemented",
                "deepspeed.initialize",
            )


class DataRouting(UncheckedBlock):
    """Which tokens pass which layer.

    Source: get_data_routing in deepspeed/runtime/data_pipeline/config.py.
    """

    enabled: bool = key(False, "Turn routing on.")
    random_ltd: RandomLtd = key({}, "Random layer-token drop.")


class DataEfficiency(UncheckedBlock):
    """The data efficiency library.

    Source: deepspeed/runtime/data_pipeline/config.py.
    """

    enabled: bool = key(
        False,
        "Master switch; not consulted by every feature (random-LTD starts on its own flags).",
    )
    data_routing: DataRouting = key({}, "Routing techniques inside the model.")
    data_sampling: DataSampling = key(
        {},
        "Sampling techniques; only for the loader DeepSpeed builds from training_data.",
    )
    seed: int = key(1234, "Sampler seed.")
