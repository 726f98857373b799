"""Where dsguard and a release of DeepSpeed may differ, and why.

Every row names what it covers as narrowly as it can. A disagreement that no row covers fails.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from packaging.version import Version

from dsguard.schema.problem import ProblemKind
from dsguard.schema.validate import validate
from tests.releases.asking import Answer


class Explained(NamedTuple):
    """A reason to differ.

    It covers configs with ``key``, releases from ``since`` up to but without ``before``, and
    answers of DeepSpeed that ``answer`` matches from its start, where "accepted" is one as well.
    """

    reason: str
    key: str
    answer: str
    since: str = "0.9.0"
    before: str = "999"


EXPLAINED = (
    Explained(
        "Whether there is a CUDA device is not known from the config, so dsguard is silent.",
        key="aio",
        answer="AssertionError: GDS currently only supported for CUDA accelerator",
    ),
    Explained(
        "Elasticity computes the batch sizes from the number of processes; dsguard checks its "
        "settings and does not repeat the computation.",
        key="elasticity",
        answer="accepted|ElasticityIncompatibleWorldSize",
        before="0.19.8",
    ),
    Explained(
        "The facts divide the world by sequence_parallel_size for every release; DeepSpeed does "
        "so from 0.17.0 on, and falls back to one rank where that fails up to 0.19.2.",
        key="sequence_parallel_size",
        answer="accepted|AssertionError: .*batch|AssertionError: Gradient accumulation",
        before="0.19.3",
    ),
)


def explanation(config: Any, version: str, answer: Answer) -> str | None:
    """Why a disagreement over a config is all right, None where it is not."""
    release = Version(version)
    if not isinstance(config, dict):
        return None
    for row in EXPLAINED:
        if (
            row.key in config
            and Version(row.since) <= release < Version(row.before)
            and re.match(row.answer, answer.refused or "accepted")
        ):
            return row.reason
    if any(p.kind is ProblemKind.PLACEHOLDER for p in validate(config, release)):
        return "It is a template: what stands for its placeholders is not known."
    return None
