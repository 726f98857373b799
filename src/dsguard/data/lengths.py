"""Lengths and labels of samples as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

Integers: TypeAlias = NDArray[np.int64]

LONGEST = 10**10
"""Tokens of one sample; sums over hundreds of millions of such samples are still exact."""


def lengths_array(lengths: Any) -> Integers:
    """Lengths in tokens as an array of shape (samples,), from anything that numpy can read.

    Raises:
        ValueError: there are none, they are not whole numbers in one dimension, or some are
            negative or above :data:`LONGEST`.
    """
    array = np.asarray(lengths)
    if array.ndim != 1 or array.size == 0:
        raise ValueError(
            f"lengths are one number of tokens for each sample, not an array of shape {array.shape}"
        )
    whole = array.dtype.kind in "iu" or (
        array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.floor(array)).all()
    )
    if not whole:
        raise ValueError(f"lengths are whole numbers of tokens, not {array.dtype}")
    if array.min() < 0:
        first = int(np.argmax(array < 0))
        raise ValueError(f"the length of sample {first} is {array[first]}")
    if array.max() > LONGEST:
        first = int(np.argmax(array > LONGEST))
        raise ValueError(f"the length of sample {first} is {array[first]}, above {LONGEST}")
    return array.astype(np.int64, copy=False)


class Kinds(NamedTuple):
    """Samples by modality.

    ``names`` are the labels in order of first use; ``of`` holds an index into them for each
    sample, shape (samples,).
    """

    names: tuple[str, ...]
    of: NDArray[np.intp]

    def members(self) -> list[NDArray[np.intp]]:
        """The indices of the samples of each kind, in the order of the data set."""
        if len(self.names) == 1:
            return [np.arange(len(self.of))]
        return [np.flatnonzero(self.of == kind) for kind in range(len(self.names))]


def kinds_of(modality: Sequence[Any] | None, samples: int) -> Kinds:
    """The kinds that labels make; without labels there is one.

    Raises:
        ValueError: there are not as many labels as samples.
    """
    if modality is None:
        return Kinds(("",), np.zeros(samples, dtype=np.intp))
    if len(modality) != samples:
        raise ValueError(f"{len(modality)} modality labels for {samples} lengths")
    numbers: dict[Any, int] = {}
    # The items of an array are objects of their own, which no dict takes for equal in torch.
    labels = modality.tolist() if hasattr(modality, "tolist") else modality
    of = np.fromiter((numbers.setdefault(label, len(numbers)) for label in labels), np.intp)
    return Kinds(tuple(str(label) for label in numbers), of)
