"""How DeepSpeed spells the types that numbers are held in."""

from __future__ import annotations

from typing import Any

_SPELLINGS = {
    "fp16": ("fp16", "float16", "half", "torch.float16"),
    "bf16": ("bf16", "bfloat16", "torch.bfloat16"),
    "fp32": ("fp32", "float32", "float", "torch.float32"),
}


def canonical(value: Any) -> str | None:
    """fp16, bf16 or fp32 for each spelling of ``DtypeEnum`` (deepspeed/runtime/config.py).

    None for anything else, which is reported as a value out of range.
    """
    for name, spellings in _SPELLINGS.items():
        if value in spellings:
            return name
    return None
