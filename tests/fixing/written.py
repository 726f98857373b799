"""Configs with faults that have a fix, written in every style that DeepSpeed reads."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from hypothesis import strategies as st

Pairs: TypeAlias = list[tuple[str, Any]]
"""An object as its members in order, so that a key may be repeated."""

BASE: Pairs = [
    ("train_micro_batch_size_per_gpu", 4),
    ("zero_optimization", [("stage", 2), ("overlap_comm", True)]),
    ("optimizer", [("type", "AdamW"), ("params", [("lr", 1e-4), ("betas", [0.9, 0.95])])]),
]

TOP: list[tuple[str, Any]] = [
    ("amp", [("enabled", False)]),
    ("nebula", [("enabled", False), ("persistent_storage_path", None)]),
    ("sparse_gradients", False),
    ("bfloat16", [("enabled", True)]),
    ("reduce_bucket_size", 200_000_000),
    ("gradient_cliping", 1.0),
    ("wall_clock_breakdwn", False),
    ("steps_per_print", "10"),
    ("train_micro_batch_size_per_gpu", 4),
    ("gradient_accumulation_stepz", 8),
    ("_remark", 'a "string", with // signs # of /* comments */'),
]
"""Members at the top level: all but the last are wrong and have a fix."""

ZERO: list[tuple[str, Any]] = [
    ("cpu_offload", True),
    ("cpu_offload_param", False),
    ("stage3_gather_fp16_weights_on_model_save", True),
    ("overlap_com", True),
    ("gradient_clipping", 0.5),
    ("aio", [("block_size", 1048576), ("queue_depth", 8)]),
    ("stage", 2),
    ("allgather_bucket_size", "5e8"),
]
"""The same for the block zero_optimization."""

REMARK = st.text(alphabet="abc :,{}[]\"'", max_size=8)


@st.composite
def configs(draw: st.DrawFn) -> str:
    """A text with some of the faults, between comments, in any style."""
    top = draw(st.lists(st.sampled_from(TOP), unique_by=lambda pair: pair[0], max_size=5))
    zero = draw(st.lists(st.sampled_from(ZERO), unique_by=lambda pair: pair[0], max_size=4))
    members = [
        (key, [*value, *zero] if key == "zero_optimization" else value) for key, value in BASE
    ]
    members = draw(st.permutations([*members, *top]))
    style = Style(draw)
    text = style.value(members, 0)
    if draw(st.booleans()):
        text += "\n"
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return ("\ufeff" if draw(st.booleans()) else "") + text


class Style:
    """How one text is written."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._indent = draw(st.sampled_from(["  ", "    ", "\t", ""]))
        self._comments = draw(st.booleans())
        self._trailing = draw(st.booleans())

    def value(self, value: Any, depth: int) -> str:
        """A value; lists of pairs are objects."""
        if not (isinstance(value, list) and value and isinstance(value[0], tuple)):
            return json.dumps(value)
        lines = self._draw(st.booleans()) or self._comments
        inner = "\n" + self._indent * (depth + 1) if lines else ""
        parts: list[str] = []
        for index, (key, item) in enumerate(value):
            last = index == len(value) - 1
            comma = "," if not last or (self._trailing and lines) else ""
            before, after = self._comment(inner), self._comment("")
            between = self._draw(st.sampled_from([" ", "", "  "]))
            member = f"{json.dumps(key)}:{between}{self.value(item, depth + 1)}"
            parts.append(f"{inner}{before}{member}{comma}{after}")
        body = "".join(parts) if lines else " ".join(parts)
        return "{" + body + ("\n" + self._indent * depth if lines else "") + "}"

    def _comment(self, inner: str) -> str:
        if not self._comments or not self._draw(st.booleans()):
            return ""
        words = self._draw(REMARK)
        if inner:
            return f"// {words}{inner}"
        return f" # {words}"
