"""What sequences cost a rank, in units of one token's work outside attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dsguard.data.lengths import Integers


def cost(lengths: Integers, attention_length: float | None) -> NDArray[np.float64]:
    """The work of one sequence of each length; element by element, any shape.

    A transformer of width h spends 24·h² + 4·L·h operations a layer on a token of a sequence of
    L: the attention of a token costs as much as all else where L is ``attention_length``, which
    is 6·h (12·h where the kernel leaves out what a causal mask hides). Without it only tokens
    count. The factor 1 + L / (6·h) is that of Narayanan et al. 2021, "Efficient Large-Scale
    Language Model Training on GPU Clusters", equation 3.
    """
    tokens = lengths.astype(np.float64)
    return tokens if attention_length is None else tokens * (1 + tokens / attention_length)


def checked_attention_length(attention_length: float | None) -> float | None:
    """The same, if it can be one.

    Raises:
        ValueError: it is not positive.
    """
    if attention_length is not None and not attention_length > 0:
        raise ValueError(f"attention_length is a number of tokens above 0, not {attention_length}")
    return attention_length
