"""A comparison of ways of batching as JSON, version 1."""

from __future__ import annotations

import dataclasses
import json

from dsguard.data.comparison import Comparison


def render_balance_json(name: str, told: Comparison) -> str:
    """The figures of every way of batching, indented by two spaces; shares are of 1."""
    ways = {
        way: {
            **dataclasses.asdict(audit),
            "problems": list(audit.problems),
            "relative_time": told.relative_time(way),
        }
        for way, audit in told.ways.items()
    }
    report = {
        "version": 1,
        "file": name,
        "world_size": told.world_size,
        "micro_batch_size": told.micro_batch_size,
        "gradient_accumulation_steps": told.gradient_accumulation_steps,
        "attention_length": told.attention_length,
        "lengths": dataclasses.asdict(told.lengths),
        "ways": ways,
    }
    return json.dumps(report, indent=2, allow_nan=False) + "\n"
