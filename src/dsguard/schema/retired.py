"""Small blocks that releases before 0.19.7 or 0.19.8 had: amp, nebula and others."""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from dsguard.model.finding import Consequence
from dsguard.schema import wording
from dsguard.schema.block import Takes, UncheckedBlock, UnknownKeys, key
from dsguard.schema.data_efficiency import CurriculumSchedule, curriculum
from dsguard.schema.problem import Place, Problem

ANYTHING = Takes(lambda value: True, "an object")
"""A block that is only looked into by a reader that is hardly ever called."""


def _needs_enabled(given: dict[str, Any], at: Place) -> Iterator[Problem]:
    """The reader takes ``enabled`` out of the block without asking whether it is there."""
    if "enabled" not in given:
        yield wording.combination(at, given, None, f"{at.dotted} has no key enabled")


class Amp(UncheckedBlock):
    """Mixed precision by NVIDIA Apex; every other key is an argument of ``apex.amp.initialize``.

    Source: get_amp_* in deepspeed/runtime/config.py up to 0.19.7.
    """

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.FREE

    enabled: bool = key(False, "Use Apex AMP.")

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """``enabled`` may not be left out."""
        return _needs_enabled(given, at)


class ProgressiveLayerDrop(UncheckedBlock):
    """Dropping of layers, more of them as training goes on.

    Source: get_pld_* in deepspeed/runtime/config.py up to 0.19.7.
    """

    enabled: bool = key(False, "Drop layers.")
    gamma: float = key(0.001, "How fast layers are dropped.")
    theta: float = key(0.5, "Lowest share of layers that is kept.")

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """``enabled`` may not be left out."""
        return _needs_enabled(given, at)


class LegacyCurriculum(UncheckedBlock):
    """Curriculum learning on the sequence length, before data_efficiency had it.

    Source: get_curriculum_*_legacy in deepspeed/runtime/data_pipeline/config.py up to 0.19.7.
    """

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.FREE

    enabled: bool = key(False, "Turn curriculum learning on.")
    curriculum_type: str = key(None, "Not read by DeepSpeed itself; seqlen is the only one.")
    max_difficulty: int = key(None, "Difficulty training ends with.")
    min_difficulty: int = key(None, "Difficulty training starts with.")
    schedule_config: CurriculumSchedule | None = key(
        None, "Numbers of the schedule.", wrong=Consequence.LATE
    )
    schedule_type: Literal["fixed_linear", "fixed_root", "fixed_discrete", "custom"] = key(
        None, "fixed_linear, fixed_root, fixed_discrete or custom."
    )

    @classmethod
    def unread(cls, given: dict[str, Any]) -> frozenset[str]:
        """Switched off, nothing else is looked at."""
        return frozenset() if given.get("enabled") else frozenset(given) - {"enabled"}

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """``enabled`` may not be left out, and the schedule must be whole."""
        yield from _needs_enabled(given, at)
        if given.get("enabled") is True:
            needs = ("min_difficulty", "max_difficulty", "schedule_type")
            yield from curriculum(given, at, needs, "deepspeed.initialize")


class Nebula(UncheckedBlock):
    """The Nebula checkpoint service of Azure.

    Source: deepspeed/nebula/config.py up to 0.19.6.
    """

    enabled: bool = key(False, "Write checkpoints through Nebula.")
    enable_nebula_load: bool = key(True, "Load checkpoints through Nebula.")
    nebula_load_path: str | None = key(None, "Path to load from; null is the storage path.")
    num_of_version_in_retention: int = key(2, "Checkpoints that are kept.")
    persistent_storage_path: str | None = key(None, "Folder that checkpoints are persisted to.")
    persistent_time_interval: int = key(100, "Seconds between two persisted checkpoints.")


class Eigenvalue(UncheckedBlock):
    """Eigenvalues of layers as a measure of how far they may be quantized."""

    enabled: bool = key(False, "Compute eigenvalues; true stops DeepSpeed where it is read.")
    gas_boundary_resolution: int = key(1, "Optimizer steps between two computations.")
    layer_name: str = key("bert.encoder.layer", "Start of the names of the layers.")
    layer_num: int = key(0, "Number of layers.")
    max_iter: int = key(100, "Most iterations for one eigenvalue.")
    stability: float = key(1e-06, "Added to denominators.")
    tol: float = key(0.01, "Relative error at which the iteration stops.")
    verbose: bool = key(False, "Print each eigenvalue.")


class QuantizeTraining(UncheckedBlock):
    """Mixture of quantization; no release since 0.9.0 reads more than the eigenvalue block.

    Source: get_eigenvalue_* in deepspeed/runtime/config.py up to 0.19.6.
    """

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.FREE

    eigenvalue: Annotated[Eigenvalue, ANYTHING] = key(
        {}, "Only looked at where compression_training.shared_parameters is enabled."
    )
