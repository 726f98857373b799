"""fp16, bf16, torch_autocast and data_types: what the numbers are stored and computed in."""

import math
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, get_args

from packaging.version import Version

from dsguard.model.finding import Consequence
from dsguard.schema import wording
from dsguard.schema.block import Before, CheckedBlock, OutOfRangeError, Takes, UncheckedBlock, key
from dsguard.schema.history import Was
from dsguard.schema.problem import Place, Problem

DataType = Literal[
    "fp16",
    "bf16",
    "fp32",
    "float16",
    "bfloat16",
    "float32",
    "half",
    "float",
    "torch.float16",
    "torch.bfloat16",
    "torch.float32",
]

_AUTOCAST_TYPES = (*get_args(DataType), "int8", "torch.int8")
_AUTOCAST_WORDS = "one of " + ", ".join(f'"{name}"' for name in _AUTOCAST_TYPES)


def _loss_scale(value: Any) -> float:
    """The number that float() makes of a value, which must be finite and not negative."""
    try:
        scale = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        scale = math.nan
    if math.isnan(scale):
        raise ValueError("not a number")
    if not 0 <= scale < math.inf:
        raise OutOfRangeError("negative or infinite")
    return scale


def _no_boolean(value: Any) -> Any:
    """pydantic would read true and false as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError("a boolean")
    return value


def _is_power(value: Any) -> bool:
    """Whether ``2**value`` can be computed."""
    try:
        return isinstance(value, int) or math.isfinite(2.0**value) or not math.isfinite(value)
    except (TypeError, OverflowError):
        return False


def _all_text(value: Any) -> bool:
    return isinstance(value, str | list | dict) and all(isinstance(item, str) for item in value)


def _auto_or_texts(value: Any) -> bool:
    return value == "auto" or (isinstance(value, list) and _all_text(value))


class Fp16(CheckedBlock):
    """Training in float16.

    Source: DeepSpeedFP16Config in deepspeed/runtime/precision_config.py; before 0.17.1 the
    functions get_fp16_* in deepspeed/runtime/config.py, which look at nothing else unless
    ``enabled`` counts as true.
    """

    checked_since: ClassVar[Version] = Version("0.17.1")

    enabled: bool = key(False, "Train in float16.")
    auto_cast: bool = key(False, "Cast the model's inputs to float16.")
    loss_scale: Annotated[float, Before(_loss_scale)] = key(
        0,
        "0 scales the loss dynamically; any other number is the fixed scale.",
        expected="a finite number of at least 0",
        was=(Was("0.18.8", type=float),),
    )
    initial_scale_power: int = key(
        16,
        "The dynamic scale starts at 2 to this power.",
        was=(Was("0.17.1", type=Annotated[int, Takes(_is_power, "a number")]),),
    )
    loss_scale_window: Annotated[int, Before(_no_boolean)] = key(
        1000,
        "Steps without overflow before the dynamic scale doubles.",
        was=(Was("0.19.3", type=int),),
    )
    hysteresis: int = key(2, "Overflows that are tolerated before the dynamic scale halves.")
    consecutive_hysteresis: bool = key(
        False,
        "Refill hysteresis after every step without overflow.",
        since="0.9.3",
    )
    min_loss_scale: Annotated[int, Before(_no_boolean)] = key(
        1,
        "The dynamic scale never falls below this.",
        was=(Was("0.17.1", type=float), Was("0.19.3", type=int)),
    )
    fp16_master_weights_and_grads: bool = key(
        False,
        "Keep master weights and gradients in fp16; needs ZeRO and DeepSpeedCPUAdam offload.",
    )

    @classmethod
    def unread(cls, given: dict[str, Any]) -> frozenset[str]:
        """Switched off, nothing else is looked at."""
        return frozenset() if given.get("enabled") else frozenset(given) - {"enabled"}

    def combinations(self, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """Dynamic loss scaling needs a window and a lower limit above 0."""
        if not self.is_since("0.19.3") or not self.enabled or self.loss_scale != 0:
            return
        for name, value in (
            ("loss_scale_window", self.loss_scale_window),
            ("min_loss_scale", self.min_loss_scale),
        ):
            if value <= 0:
                yield wording.combination(
                    at.child(name),
                    given.get(name),
                    at.child("loss_scale") if "loss_scale" in given else None,
                    f"{at.dotted}.{name} is {value} but must be above 0 while the loss is scaled "
                    f"dynamically ({at.dotted}.loss_scale is 0)",
                )


class Bf16(CheckedBlock):
    """Training in bfloat16.

    Source: DeepSpeedBF16Config in deepspeed/runtime/precision_config.py; before 0.17.1 the
    functions get_bfloat16_* in deepspeed/runtime/config.py.
    """

    checked_since: ClassVar[Version] = Version("0.17.1")

    enabled: bool = key(False, "Train in bfloat16.")
    bf16_master_weights_and_grads: bool = key(
        False,
        "Keep master weights and gradients in bf16; needs ZeRO stage 1, 2 or 3.",
        since="0.18.3",
    )
    bf16_optimizer_states: bool = key(
        False,
        "Optimizer states in bf16 too; needs bf16_master_weights_and_grads.",
        since="0.18.3",
    )
    check_grad_overflow: bool = key(
        True,
        "Skip an optimizer step whose gradients hold inf or nan (ZeRO stage 1 and 2).",
        since="0.17.1",
        was=(Was("0.19.3", default=False),),
    )
    immediate_grad_update: bool = key(
        False,
        "BF16_Optimizer adds to its fp32 gradients right after each backward pass.",
        since="0.13.3",
        was=(Was("0.16.5", default=False), Was("0.17.1", default=True)),
    )


class TorchAutocast(UncheckedBlock):
    """Mixed precision by torch.autocast.

    Source: get_torch_autocast_* in deepspeed/runtime/config.py.
    """

    enabled: bool = key(False, "Run the forward pass under torch.autocast.", since="0.17.2")
    dtype: Annotated[DataType, Takes(_AUTOCAST_TYPES.__contains__, _AUTOCAST_WORDS)] = key(
        None,
        "float16/bfloat16 (also fp16, half, bf16, torch.float16 ...); unset leaves torch's own "
        "default.",
        since="0.17.2",
    )
    lower_precision_safe_modules: Annotated[list[str], Takes(_all_text, "a list of strings")] = key(
        None,
        "Full names of module classes whose parameters are communicated in the lower precision; "
        "unset takes DeepSpeed's own list.",
        since="0.17.2",
    )

    @classmethod
    def combinations(cls, given: dict[str, Any], at: Place) -> Iterator[Problem]:
        """Text or an object in place of the module list passes, because its items are strings."""
        modules = given.get("lower_precision_safe_modules")
        if isinstance(modules, str | dict) and modules != "auto":
            yield wording.wrong_value(
                at.child("lower_precision_safe_modules"),
                modules,
                "a list of strings",
                Consequence.LATE,
            )


class DataTypes(UncheckedBlock):
    """Data types beside the training precision.

    Source: deepspeed/runtime/config.py.
    """

    buffer_dtype: DataType | None = key(
        None,
        "Cast floating-point buffers to this type; unset leaves them.",
        since="0.19.2",
    )
    grad_accum_dtype: DataType | None = key(
        None,
        "Type that gradients are accumulated in; unset is the type of the model.",
    )
    keep_in_fp32_modules: Annotated[
        Literal["auto"] | list[str], Takes(_auto_or_texts, '"auto" or a list of strings')
    ] = key(
        "auto",
        '"auto" or a list of buffer-name patterns kept in fp32.',
        since="0.19.8",
    )
    param_dtype: DataType | None = key(
        None,
        "Type of the parameters; one that differs from the enabled precision fails when the "
        "engine is built.",
        since="0.19.2",
    )
