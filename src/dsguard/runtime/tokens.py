"""How many tokens a batch holds, read from the shapes of its tensors and never from a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Tokens(NamedTuple):
    """Tokens of one batch on this rank; None where they cannot be had without waiting.

    ``total`` includes padding. ``unpadded`` is what the attention mask leaves in.
    """

    total: int | None
    unpadded: int | None


def count_tokens(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Tokens:
    """The tokens of a call with keywords or one mapping, as Hugging Face models take them.

    ``input_ids`` counts, else ``inputs_embeds`` without its last dimension, else ``labels`` of
    two dimensions. The mask is summed only where it lies on the CPU: from a device the number
    would have to be waited for.
    """
    batch = _batch(args, kwargs)
    if batch is None:
        return Tokens(None, None)
    mask = _mask(batch)
    on_cpu = mask is not None and mask.device.type == "cpu"
    return Tokens(_total(batch), int((mask != 0).sum()) if on_cpu else None)


def padding_mask(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The mask of a call whose zeros are padding, on whatever device; None where there is none."""
    batch = _batch(args, kwargs)
    return None if batch is None else _mask(batch)


def _batch(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    return next((part for part in (kwargs, *args) if _has_tokens(part)), None)


def _has_tokens(part: Any) -> bool:
    mapping = isinstance(part, Mapping) or (hasattr(part, "keys") and hasattr(part, "values"))
    return mapping and any(key in part for key in ("input_ids", "inputs_embeds", "labels"))


def _total(batch: Any) -> int | None:
    for key, counted in (("input_ids", None), ("inputs_embeds", -1), ("labels", None)):
        shape = getattr(batch[key], "shape", None) if key in batch else None
        if not isinstance(shape, tuple) or (key != "input_ids" and len(shape) < 2):
            continue
        total = 1
        for size in shape[:counted]:
            total *= int(size)
        return total
    return None


def _mask(batch: Any) -> Any:
    mask: Any = batch["attention_mask"] if "attention_mask" in batch else None  # noqa: SIM401
    if getattr(getattr(mask, "device", None), "type", None) is None:
        return None  # no tensor
    # A mask of more dimensions or of floats says who sees whom, not what is padding.
    if len(mask.shape) != 2 or mask.dtype.is_floating_point:
        return None
    return mask
