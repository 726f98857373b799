"""compression_training: quantization and pruning while training, up to 0.19.6.

Source: deepspeed/compression/config.py up to 0.19.6. A component is read whenever it is present,
also where it is switched off.
"""

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

from dsguard.model.finding import Consequence
from dsguard.schema import wording
from dsguard.schema.block import Takes, UncheckedBlock, UnknownKeys, key
from dsguard.schema.history import Was
from dsguard.schema.problem import Place, Problem


def _one_of(*choices: str) -> Takes:
    return Takes(choices.__contains__, "one of " + ", ".join(f'"{choice}"' for choice in choices))


def _needs(given: dict[str, Any], at: Place, *names: str) -> Iterator[Problem]:
    """Keys that the reader takes for granted."""
    for name in names:
        if name not in given:
            yield wording.combination(at, given, None, f"{at.dotted} has no key {name}")


QUANTIZATION_TYPE = _one_of("symmetric", "asymmetric")
ROUNDING = _one_of("nearest", "stochastic")
METHOD = _one_of("l1", "topk")
SPARSE_METHOD = _one_of("l1", "topk", "snip_momentum")


class Group(UncheckedBlock):
    """Modules that are treated alike."""

    modules: str | list[Any] = key("*", "Names of the modules.")
    related_modules: str | list[Any] | None = key(None, "Modules that follow these.")

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """``params`` may not be left out."""
        return _needs(given, at, "params")


class WeightParams(UncheckedBlock):
    """How the weights of a group are quantized."""

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.FREE

    start_bits: int = key(None, "Bits at the start; must be given.")
    target_bits: int = key(None, "Bits at the end; must be given.")
    quantization_period: int = key(1, "Steps between two changes of the number of bits.")

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """Two keys may not be left out."""
        return _needs(given, at, "start_bits", "target_bits")


class ActivationParams(UncheckedBlock):
    """How the activations of a group are quantized."""

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.FREE

    bits: int = key(None, "Bits; must be given.")

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """``bits`` may not be left out."""
        return _needs(given, at, "bits")


class PruningParams(UncheckedBlock):
    """How the modules of a group are pruned."""

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.FREE

    dense_ratio: float = key(None, "Share that is kept; must be given.")

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """``dense_ratio`` may not be left out."""
        return _needs(given, at, "dense_ratio")


class QuantizedWeights(Group):
    """Weights that are quantized alike."""

    params: WeightParams = key({}, "How they are quantized; must be given.")


class QuantizedActivations(Group):
    """Activations that are quantized alike."""

    params: ActivationParams = key({}, "How they are quantized; must be given.")


class Pruned(Group):
    """Modules that are pruned alike."""

    params: PruningParams = key({}, "How they are pruned; must be given.")


class MixedQuantization(UncheckedBlock):
    """A mix of quantized and fp16 weights that changes over time."""

    enabled: bool = key(False, "Mix quantized and fp16 weights.")
    quantize_change_ratio: float = key(0.001, "Share that changes in each step.")


class WeightShared(UncheckedBlock):
    """Settings for all groups of quantized weights."""

    enabled: bool = key(False, "Quantize weights.")
    fp16_mixed_quantize: MixedQuantization = key({}, "Mix with fp16 weights.")
    quantization_type: Annotated[str, QUANTIZATION_TYPE] = key(
        "symmetric", "symmetric or asymmetric."
    )
    quantize_groups: int = key(1, "Groups of weights that share one scale.")
    quantize_verbose: bool = key(False, "Print what is done.")
    quantize_weight_in_forward: bool = key(False, "Quantize in the forward pass.")
    quantizer_kernel: bool = key(False, "Use DeepSpeed's kernel.")
    rounding: Annotated[str, ROUNDING] = key("nearest", "nearest or stochastic.")
    schedule_offset: int = key(0, "Step the quantization starts at.")


class ActivationShared(UncheckedBlock):
    """Settings for all groups of quantized activations."""

    enabled: bool = key(False, "Quantize activations.")
    quantization_type: Annotated[str, QUANTIZATION_TYPE] = key(
        "symmetric", "symmetric or asymmetric."
    )
    range_calibration: Annotated[str, _one_of("dynamic", "static")] = key(
        "dynamic", "dynamic or static."
    )
    schedule_offset: int = key(1000, "Step the quantization starts at.")


class SparseShared(UncheckedBlock):
    """Settings for all groups of sparse pruning."""

    enabled: bool = key(False, "Prune single weights.")
    block_pattern: str = key("4x1", "Shape of a pruned block (snip_momentum).", since="0.9.3")
    dense_ratio: float = key(0.1, "Share that is kept (snip_momentum).", since="0.9.3")
    excluded_modules: list[Any] = key([], "Modules left alone (snip_momentum).", since="0.9.3")
    method: Annotated[str, SPARSE_METHOD] = key(
        "l1",
        "How weights are chosen: l1, topk or snip_momentum.",
        was=(Was("0.9.3", type=Annotated[str, METHOD]),),
    )
    schedule_offset: int = key(1000, "Step the pruning starts at.")
    schedule_offset_end: int = key(
        None, "Step it ends at; unset is schedule_offset (snip_momentum).", since="0.9.3"
    )
    schedule_offset_stride: int = key(1, "Steps between prunings (snip_momentum).", since="0.9.3")

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """The method snip_momentum compares two of its numbers."""
        if not cls.is_since("0.9.3") or given.get("method") != "snip_momentum":
            return
        ratio, start = given.get("dense_ratio", 0.1), given.get("schedule_offset", 1000)
        end = given.get("schedule_offset_end", start)
        if not (isinstance(ratio, int | float) and 0 < ratio < 1):
            yield wording.combination(
                at.child("dense_ratio"),
                ratio,
                at.child("method"),
                f"{at.dotted}.dense_ratio must be above 0 and below 1 with snip_momentum",
            )
        if not (isinstance(start, int | float) and isinstance(end, int | float) and start <= end):
            name = "schedule_offset_end" if "schedule_offset_end" in given else "schedule_offset"
            yield wording.combination(
                at.child(name),
                given[name],
                at.child("method"),
                f"{at.dotted}.schedule_offset_end may not be before {at.dotted}.schedule_offset "
                "with snip_momentum",
            )


class PruningShared(UncheckedBlock):
    """Settings for all groups of row or channel pruning."""

    enabled: bool = key(False, "Prune.")
    method: Annotated[str, METHOD] = key("l1", "How they are chosen: l1 or topk.")
    schedule_offset: int = key(1000, "Step the pruning starts at.")


class HeadShared(UncheckedBlock):
    """Settings for all groups of head pruning."""

    enabled: bool = key(False, "Prune attention heads.")
    method: Annotated[str, METHOD] = key("topk", "How heads are chosen: l1 or topk.")
    num_heads: int = key(None, "Heads of the model; must be given when enabled.")
    schedule_offset: int = key(1000, "Step the pruning starts at.")

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """Switched on, it needs ``num_heads``."""
        if given.get("enabled") and "num_heads" not in given:
            yield wording.combination(
                at.child("enabled"),
                given["enabled"],
                None,
                f"{at.dotted} is enabled without {at.dotted}.num_heads",
            )


class Component(UncheckedBlock):
    """One way to compress; subclasses say what it shares and what its groups are."""

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """``different_groups`` may not be left out."""
        return _needs(given, at, "different_groups")


class WeightQuantization(Component):
    """Quantization of weights."""

    shared_parameters: WeightShared = key({}, "Settings for all groups.")
    different_groups: dict[str, QuantizedWeights] = key(
        {}, "Groups by name.", wrong=Consequence.REFUSED
    )


class ActivationQuantization(Component):
    """Quantization of activations."""

    shared_parameters: ActivationShared = key({}, "Settings for all groups.")
    different_groups: dict[str, QuantizedActivations] = key(
        {}, "Groups by name.", wrong=Consequence.REFUSED
    )


class SparsePruning(Component):
    """Pruning of single weights."""

    shared_parameters: SparseShared = key({}, "Settings for all groups.")
    different_groups: dict[str, Pruned] = key({}, "Groups by name.", wrong=Consequence.REFUSED)


class Pruning(Component):
    """Pruning of rows or channels."""

    shared_parameters: PruningShared = key({}, "Settings for all groups.")
    different_groups: dict[str, Pruned] = key({}, "Groups by name.", wrong=Consequence.REFUSED)


class HeadPruning(Component):
    """Pruning of attention heads."""

    shared_parameters: HeadShared = key({}, "Settings for all groups.")
    different_groups: dict[str, Pruned] = key({}, "Groups by name.", wrong=Consequence.REFUSED)


class LayerReduction(UncheckedBlock):
    """A student with fewer layers; other keys are for the function that makes it."""

    unknown_keys: ClassVar[UnknownKeys] = UnknownKeys.FREE

    enabled: bool = key(False, "Make a smaller student.")


class CompressionTraining(UncheckedBlock):
    """Quantization and pruning while training."""

    activation_quantization: ActivationQuantization = key({}, "Quantization of activations.")
    channel_pruning: Pruning = key({}, "Pruning of channels.")
    head_pruning: HeadPruning = key({}, "Pruning of attention heads.")
    layer_reduction: LayerReduction = key({}, "A student with fewer layers.")
    row_pruning: Pruning = key({}, "Pruning of rows.")
    shared_parameters: WeightShared = key(
        {}, "Read here only to switch eigenvalues on; belongs into a component."
    )
    sparse_pruning: SparsePruning = key({}, "Pruning of single weights.")
    weight_quantization: WeightQuantization = key({}, "Quantization of weights.")

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """The settings of a component one level too high hit a fault of DeepSpeed."""
        shared = given.get("shared_parameters")
        if not cls.is_since("0.19.3") and isinstance(shared, dict) and shared.get("enabled"):
            place = at.child("shared_parameters").child("enabled")
            yield wording.combination(
                place,
                shared["enabled"],
                None,
                f"{place.dotted} is true, and DeepSpeed before 0.19.3 fails with a NameError when "
                "it goes on to read quantize_training",
            )
