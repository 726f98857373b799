"""Settings that only stage 3 reads, at a lower stage; see stage_3_setting_ignored.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packaging.version import Version

from dsguard.facts.values import has, pointer_of
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Written
from dsguard.rules.zero._settings import number, release, stage_of, stage_reason, switch, zero

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from dsguard.facts.case import Case

_TUNING = (
    "sub_group_size",
    "stage3_max_live_parameters",
    "stage3_max_reuse_distance",
    "stage3_prefetch_bucket_size",
    "stage3_param_persistence_threshold",
    "stage3_model_persistence_threshold",
)
"""What a config that is used at several stages carries along."""


_MICS_GONE_SINCE = Version("0.19.7")


def _is_on(case: Case, key: str) -> bool:
    return switch(case, key, False) is True


def _is_above_one(case: Case, key: str) -> bool:
    size = number(case, key)
    return size is not None and size > 1


def _is_above_zero(case: Case, key: str) -> bool:
    """MiCS is off at -1, and gone since 0.19.7."""
    size = number(case, key)
    return size is not None and size > 0 and release(case) < _MICS_GONE_SINCE


_FEATURES: dict[str, Callable[[Case, str], bool]] = {
    "zero_hpz_partition_size": _is_above_one,
    "zero_quantized_weights": _is_on,
    "zero_quantized_gradients": _is_on,
    "mics_shard_size": _is_above_zero,
}
"""The parts of ZeRO++ and MiCS, and when they are asked for."""


@rule(
    code="DSG323",
    slug="stage-3-setting-ignored",
    summary="settings of stage 3 at a lower stage",
    severity=Severity.INFO,
    since="0.1.0",
    needs=("zero_stage",),
    oracle="the engine builds an optimizer that is never told of them",
    when=(Written(*map(zero, (*_FEATURES, *_TUNING))),),
)
def stage_3_setting_ignored(case: Case, report: Reporter) -> Iterator[Finding]:
    """A feature that is asked for is worth more than a number that waits for its stage."""
    if case.document is None or stage_of(case) == 3:
        return
    features = [key for key, on in _FEATURES.items() if on(case, zero(key))]
    tuning = [key for key in _TUNING if has(case.document, zero(key))]
    if not features and not tuning:
        return
    first = zero((features or tuning)[0])
    yield report(
        case.document.locate(pointer_of(first), "key"),
        f"{', '.join(features + tuning)}: only stage 3 reads "
        f"{'this' if len(features + tuning) == 1 else 'these'}, and the stage is {stage_of(case)}",
        Consequence.IGNORED,
        because=stage_reason(case),
        help="set zero_optimization.stage to 3 if they are meant, else remove them",
        severity=Severity.WARNING if features else None,
    )
