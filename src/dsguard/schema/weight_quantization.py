"""weight_quantization: quantized weights under zero.Init."""

from enum import Enum
from typing import Any

from dsguard.schema.block import CheckedBlock, key


class QuantizationType(str, Enum):
    """Whether the quantization range is symmetric around zero."""

    ASYMMETRIC = "asymmetric"
    SYMMETRIC = "symmetric"


class WeightQuantization(CheckedBlock):
    """Quantized weights under zero.Init.

    Source: WeightQuantConfig in deepspeed/inference/config.py.
    """

    enabled: bool = key(True, "Turn weight quantization on.", since="0.10.3")
    num_bits: int = key(8, "Bits of a quantized weight.", since="0.10.3")
    post_init_quant: dict[str, Any] = key(
        {},
        "Settings, by module name, for weights quantized after creation.",
        since="0.10.3",
    )
    q_groups: int = key(1, "Groups of weights that share one scale.", since="0.10.3")
    q_type: QuantizationType = key(
        QuantizationType.SYMMETRIC,
        "symmetric or asymmetric.",
        since="0.10.3",
    )
    quantized_initialization: dict[str, Any] = key(
        {},
        "Settings for weights quantized as they are created.",
        since="0.10.3",
    )
