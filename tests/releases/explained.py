"""Where dsguard and a release of DeepSpeed may differ, and why.

Every row names what it covers as narrowly as it can. A disagreement that no row covers fails.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from packaging.version import Version

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
        "0.9.0 reads the config before it makes the process group, so it counts one process; the "
        "processes asked here tell it the number, as a script does that makes the group first.",
        key="train_batch_size",
        answer="accepted",
        before="0.9.1",
    ),
    Explained(
        "Elasticity computes the batch sizes from the number of processes; dsguard checks its "
        "settings and does not repeat the computation.",
        key="elasticity",
        answer="accepted|ElasticityIncompatibleWorldSize",
        before="0.19.8",
    ),
    Explained(
        "A sequence_parallel_size that the world cannot be divided by made it one rank in "
        "silence; the facts leave the number of ranks unknown then.",
        key="sequence_parallel_size",
        answer="accepted|AssertionError: .*batch|AssertionError: Gradient accumulation",
        since="0.17.0",
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
    return None
