"""How many samples a batch holds, read from the shapes of its tensors.

The first dimension is the batch in PyTorch's own loaders and in Hugging Face models. Where the
tensors disagree, or show that the first dimension is something else, the answer is None.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping
from typing import Any

_TELLING = ("input_ids", "inputs_embeds", "pixel_values", "input_features", "labels")
"""Keys whose first dimension is the batch; looked at before anything else."""

PACKED = frozenset({"cu_seq_lens_q", "cu_seqlens", "seq_idx", "position_ids"})
"""Keys that come with sequences packed into one row: the first dimension is then 1."""

ROWLESS = (str, bytes, int, float, bool, type(None))
"""What may come with a batch and says nothing about its size; so does a tensor of one number."""

_NODES = 32
"""Parts of a batch that are looked at; a batch may hold thousands of strings."""


def batch_size(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], micro_batch: int | None
) -> int | None:
    """The first dimension of the tensors in a call, None where it is no batch or ambiguous.

    Tensors are found in lists, tuples, mappings (also ``UserDict`` such as ``BatchEncoding``),
    dataclasses and objects with a ``to`` method and attributes. ``micro_batch`` is what the
    engine expects: a second dimension of that size where the first is another means that the
    sequence comes first.
    """
    if not kwargs and args:
        # The usual case, in every micro-batch: tensors that leave no doubt, as many samples in
        # each, and as many as the engine counts where it does.
        size = micro_batch
        for part in args:
            shape = getattr(part, "shape", None)
            if not shape or not isinstance(shape, tuple):
                break
            if size is None:
                size = int(shape[0])
            elif shape[0] != size:
                break
        else:
            return size
    shapes: list[tuple[int, ...]] = []
    stack: list[Any] = [kwargs, *reversed(args)] if kwargs else list(reversed(args))
    seen = 0
    while stack and seen < _NODES:
        part = stack.pop()
        seen += 1
        shape = getattr(part, "shape", None)
        if shape is not None:
            if isinstance(shape, tuple) and shape:
                shapes.append(shape)
            continue
        if isinstance(part, ROWLESS):
            continue
        if isinstance(part, (list, tuple)):
            stack.extend(reversed(part[:_NODES]))
        elif isinstance(part, Mapping) or (hasattr(part, "keys") and hasattr(part, "values")):
            size = _of_mapping(part)
            if size is not None:
                return size if size > 0 else None
            stack.extend(list(part.values())[:_NODES])
        elif dataclasses.is_dataclass(part) and not isinstance(part, type):
            stack.extend(getattr(part, f.name) for f in dataclasses.fields(part)[:_NODES])
        elif type(part).__module__ != "builtins" and hasattr(part, "__dict__"):
            stack.extend(list(vars(part).values())[:_NODES])
    return _common(shapes, micro_batch)


def _of_mapping(batch: Any) -> int | None:
    """The batch by a telling key; 0 where the rows are packed, None where no key tells."""
    for key in _TELLING:
        shape = getattr(batch[key], "shape", None) if key in batch else None
        if isinstance(shape, tuple) and shape:
            if shape[0] == 1 and any(key in batch for key in PACKED):
                return 0
            return int(shape[0])
    return None


def _common(shapes: list[tuple[int, ...]], micro_batch: int | None) -> int | None:
    if not shapes:
        return None
    size = shapes[0][0]
    if any(shape[0] != size for shape in shapes):
        size, often = Counter(shape[0] for shape in shapes).most_common(1)[0]
        if often * 2 <= len(shapes):
            return None
    sequence_first = any(
        len(shape) > 1 and shape[0] == size != micro_batch == shape[1] for shape in shapes
    )
    return None if sequence_first else int(size)
