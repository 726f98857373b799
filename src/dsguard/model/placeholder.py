"""Placeholders: values that a script fills in before DeepSpeed reads the config."""

from __future__ import annotations

import re
from typing import Any

_MARKED = r"""
    \$ (?: [A-Za-z_]\w* | \{ [^{}]+ \} )   # $BATCH, ${BATCH}
  | \{\{ .+ \}\} | \{% .+ %\}              # {{ batch }}
  | < [^<>|]+ >                            # <fill me>
  | __ [A-Z] [A-Z0-9_]* __                 # __BATCH__
  | % [A-Z] [A-Z0-9_]* %                   # %BATCH%
  | @ [A-Z] [A-Z0-9_]* @                   # @BATCH@
"""
_MARKS = ("$", "{", "<", "__", "%", "@")
"""What each of them starts with. Few texts do, so the pattern is seldom compiled."""

_WORD = r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
"""CONFIG_BATCH_SIZE: in capitals, and of more than one part."""

_BARE_WORD = r"[A-Z](?:[A-Z0-9_]|(?<=[0-9])(?:st|nd|rd|th)(?![a-z])){2,}"
"""MBSIZE or CL_1st_MIN, where a comma follows: HJSON reads a word without quotes up to the end
of the line."""

_REAL_WORDS = frozenset(
    {"ADAGRAD", "ADAM", "ADAMW", "AUTO", "BF16", "CPU", "CUDA", "FAIL", "FALSE", "FAST", "FP16"}
    | {"FP32", "GPU", "IGNORE", "INT8", "LAMB", "LION", "MACHINE", "MEAN", "MOCK", "MUON", "NONE"}
    | {"NULL", "NVME", "PYTHON", "REPLICA", "SGD", "SOCKET", "SUM", "TRUE", "WARN"}
)
"""Words in capitals that are meant as values."""


def is_placeholder(value: Any) -> bool:
    """Whether a value stands for one that is filled in later.

    It is a whole string such as ``${BATCH}``, ``{{ batch }}``, ``<fill me>``, ``__BATCH__``,
    ``%BATCH%``, ``@BATCH@`` or ``CONFIG_BATCH_SIZE``, also with the comma that HJSON takes for a
    part of a string without quotes. No value, path or name of a class or optimizer that
    DeepSpeed knows looks like that.
    """
    if not isinstance(value, str):
        return False
    text = value.strip()
    return is_marked(text) or _is_word(text)


def is_marked(text: str) -> bool:
    """Whether a text is a placeholder by its marks, and not only a word in capitals."""
    mark = text.startswith(_MARKS)
    return mark and re.fullmatch(_MARKED, text.removesuffix(","), re.VERBOSE) is not None


def _is_word(text: str) -> bool:
    word = text.removesuffix(",")
    if word == text and not ("_" in word and word.isupper()):
        return False  # the pattern needs both, and most texts need no pattern
    pattern = _WORD if word == text else _BARE_WORD
    return re.fullmatch(pattern, word) is not None and word not in _REAL_WORDS
