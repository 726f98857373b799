"""What the zero rules say fails after the config is read, put before ``deepspeed.initialize``.

Every fixture of these rules that a plain script reads is given to the real engine, one step
included: a bad one of consequence ``late`` fails and a good one is accepted. Of what is silently
ignored the engine's own values are compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dsguard.checking import Settings, check_source
from dsguard.facts.resolve import Options
from dsguard.facts.target import resolve_target
from dsguard.frontends.base import FrontEndName
from dsguard.model.finding import Consequence
from dsguard.reading import load_path
from dsguard.rules import all_rules
from tests.contract.rule_cases import TARGET, RuleCase, rule_cases
from tests.engine import Verdict, initialize_all
from tests.test_fixture_oracle import installed

pytestmark = [
    pytest.mark.deepspeed,
    pytest.mark.skipif(
        installed() != TARGET, reason=f"the fixtures are judged by DeepSpeed {TARGET}"
    ),
]

SLUGS = {rule.meta.slug for rule in all_rules() if rule.meta.family == "zero"}

NEEDS_RANKS = {
    "hpz-not-dividing-world",
    "tensor-parallel-not-dividing-world",
    "expert-parallel-not-dividing-world",
}
"""Rules about groups of several ranks; one rank makes no groups, or none larger than 1."""

NEEDS_LAUNCH = {"checkpoint-writer-without-launcher"}
"""Rules about what a launcher leaves in the environment."""

NEEDS_CUDA = {
    "offload-without-zero/bad/stage-0",
    "offload-without-zero/bad/stage-missing",
    "super-offload-below-stage-3/good/stage-3",
    "quantized-gradients-without-reduce-scatter/bad/all-of-zero-plus-plus",
}
"""What differs on a CPU: it holds the parameters where DeepSpeedCPUAdam wants them, SuperOffload
refuses it, and it has no quantizer for weights."""

SCRIPT_DECIDES = {"offload-without-zero/bad/no-optimizer-in-config"}
"""Whether it fails depends on the optimizer that the script passes."""


@dataclass(frozen=True)
class Asked:
    """A fixture together with what dsguard and DeepSpeed say to it."""

    case: RuleCase
    late: tuple[str, ...]
    verdict: Verdict


def cases() -> Iterator[RuleCase]:
    for case in rule_cases():
        if (
            case.slug not in SLUGS - NEEDS_RANKS - NEEDS_LAUNCH
            or case.id in NEEDS_CUDA | SCRIPT_DECIDES
        ):
            continue
        if "--target" in case.args or "--deepspeed_config " not in case.args:
            continue
        yield case


CASES = list(cases())
LOWER_STAGES_ONLY = ("ignore_unused_parameters", "round_robin_gradients")
VALUES = (
    "gradient_accumulation_steps",
    "autotp_size",
    "super_offload",
    "is_compiled",
    "zero_gather_16bit_weights_on_model_save",
    "optimizer.cpu_offload",
    *(f"optimizer.{name}" for name in LOWER_STAGES_ONLY),
)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Asked]:
    drive = str(tmp_path_factory.mktemp("nvme"))
    answers: dict[str, Asked] = {}
    for client in (None, "adamw"):
        configs = {case.id: _on_this_machine(case.config, drive) for case in CASES}
        here = [case for case in CASES if ("optimizer" in configs[case.id]) == (client is None)]
        verdicts = initialize_all(
            [configs[case.id] for case in here], client=client, step=True, ask=VALUES
        )
        for case, verdict in zip(here, verdicts, strict=True):
            answers[case.id] = Asked(case, _late(case.config), verdict)
    return answers


@pytest.mark.parametrize("name", [case.id for case in CASES])
def test_fails_exactly_where_dsguard_says_so(name: str, asked: dict[str, Asked]) -> None:
    found = asked[name]
    assert bool(found.late) == (not found.verdict.ok), (found.late, found.verdict.complaint)


COMPLAINTS = {
    "untested-optimizer": "untested ZeRO Optimizer",
    "nvme-without-path/bad/optimizer": "expected str, bytes or os.PathLike object",
    "nvme-without-path/bad/param": '"nvme_path" in DeepSpeed Config cannot be None',
    "partial-offload-optimizer": "Hybrid Optimizer Only Supports DeepSpeedCPUAdam",
    "gradient-scaling-with-reduce-scatter": "with reduce scatter enabled",
    "odd-allgather-bucket": "allgather_bucket_size must be a multiple",
    "grad-norm-off": "compute_grad_norm=false",
    "quantized-gradients-without-reduce-scatter": "reduce_scatter should also be enabled",
    "muon-with-reduce-scatter": "Muon and reduce scatter cannot be used together",
    "zenflow-without-offload/bad/no-offload": "Zenflow must be used with cpu offload",
    "zenflow-without-offload/bad/stage-0": "'FusedAdam' object has no attribute",
    "zenflow-intervals/bad/select": "Select interval must be greater or equal",
    "zenflow-intervals/bad/auto": "select_interval will be set to 1",
    "zenflow-intervals/bad/step": "select_interval must be a number",
    "unmanaged-with-overlap": "managed_gradient_accumulation=False",
    "random-ltd-incomplete/bad/no-total": "total_layer_num",
    "random-ltd-incomplete/bad/only-switched-on": "total_layer_num",
    "random-ltd-incomplete/bad/outer-switches-off": "total_layer_num",
    "random-ltd-incomplete/bad/schedule-without-end": "max_value",
    "zenflow-offload-without-overlap": "should be used with overlap_comm",
    "unknown-log-level": "is not one of the valid logging levels",
}
"""Which words of DeepSpeed's show that it fails for the reason the rule gives."""


@pytest.mark.parametrize("prefix", COMPLAINTS)
def test_it_fails_for_that_reason(prefix: str, asked: dict[str, Asked]) -> None:
    bad = [a for name, a in asked.items() if name.startswith(prefix) and a.case.bad]
    assert bad
    for found in bad:
        assert COMPLAINTS[prefix] in found.verdict.message, found.case.id


SILENT = {
    "deepcompile-not-started/bad/stage-1": {"is_compiled": False},
    "offload-param-below-stage-3/bad/cpu-at-stage-2": {"basic_optimizer": "FusedAdam"},
    "nvme-below-stage-3/bad/stage-2": {
        "optimizer": "DeepSpeedZeroOptimizer",
        "basic_optimizer": "DeepSpeedCPUAdam",
    },
    "zenflow-overwrites-accumulation/bad/eight-against-two": {"gradient_accumulation_steps": 2},
    "zenflow-overwrites-accumulation/bad/no-accumulation": {"gradient_accumulation_steps": 4},
    "super-offload-below-stage-3/bad/stage-2": {
        "optimizer": "DeepSpeedZeroOptimizer",
        "super_offload": True,
    },
    "tp-size-without-autotp/bad/alone": {"autotp_size": 0},
    "zero3-save-without-gather/good/plain-script": {
        "zero_gather_16bit_weights_on_model_save": False
    },
    "stage-3-setting-ignored/bad/zero-plus-plus-at-stage-2": {
        "optimizer": "DeepSpeedZeroOptimizer"
    },
}
"""What the engine says of itself where a setting is ignored or means something else."""


@pytest.mark.parametrize("name", SILENT)
def test_the_engine_goes_its_own_way(name: str, asked: dict[str, Asked]) -> None:
    verdict = asked[name].verdict
    seen = {
        "optimizer": verdict.optimizer,
        "basic_optimizer": verdict.basic_optimizer,
        **verdict.values,
    }
    assert {key: seen[key] for key in SILENT[name]} == SILENT[name]


def test_offload_to_nvme_below_stage_3_is_cpu_memory(asked: dict[str, Asked]) -> None:
    """Without an nvme_path, which the NVMe offload of stage 3 cannot do without."""
    verdict = asked["nvme-below-stage-3/bad/stage-1-without-path"].verdict
    assert verdict.values["optimizer.cpu_offload"] is True


def test_stage_3_is_not_told_of_these(asked: dict[str, Asked]) -> None:
    lower = asked["ignored-at-stage-3/good/unused-parameters-at-stage-2"].verdict.values
    highest = asked["ignored-at-stage-3/bad/unused-parameters"].verdict.values
    assert set(lower) - set(highest) >= {f"optimizer.{name}" for name in LOWER_STAGES_ONLY}


def test_hpz_groups_tile_the_ranks() -> None:
    from unittest import mock

    from deepspeed.utils import groups

    from tests.oracle import ranks

    made = mock.patch.multiple(groups.dist, is_initialized=lambda: True, new_group=mock.DEFAULT)
    group = mock.patch.object(groups, "_ZERO_PARAM_INTRA_PARALLEL_GROUP", None)
    for world_size, size, fits in ((24, 16, False), (6, 4, False), (24, 8, True), (6, 8, True)):
        with ranks(world_size), made, group:
            if fits:
                groups._create_zero_param_parallel_group(size)
                continue
            with pytest.raises(AssertionError, match="is not divisible by"):
                groups._create_zero_param_parallel_group(size)


ADAM = {"optimizer": {"type": "AdamW", "params": {"lr": 1e-3}}}
PROBES: dict[str, dict[str, Any]] = {
    "offload at stage 0": ADAM
    | {"zero_optimization": {"stage": 0, "offload_optimizer": {"device": "cpu"}}},
    "three on one": ADAM | {"tensor_parallel": {"autotp_size": 3}},
    "writer": ADAM | {"checkpoint": {"writer": {"type": "fast"}}},
}


@pytest.fixture(scope="module")
def probed() -> dict[str, Verdict]:
    with pytest.MonkeyPatch.context() as environment:
        environment.delenv("CROSS_SIZE", raising=False)
        configs = [{"train_micro_batch_size_per_gpu": 1} | probe for probe in PROBES.values()]
        return dict(zip(PROBES, initialize_all(configs), strict=True))


def test_offload_without_zero_builds_the_cpu_class(probed: dict[str, Verdict]) -> None:
    assert probed["offload at stage 0"].optimizer == "DeepSpeedCPUAdam"


def test_tensor_parallel_groups_tile_the_ranks(probed: dict[str, Verdict]) -> None:
    assert probed["three on one"].failed_in == "initialize"


def test_a_checkpoint_writer_wants_the_launcher(probed: dict[str, Verdict]) -> None:
    assert probed["writer"].complaint == "KeyError: 'CROSS_SIZE'"


def test_the_optimizer_of_the_script_comes_before_the_block() -> None:
    """Why findings about ``optimizer.type`` have medium confidence in a plain script."""
    config = {
        "train_micro_batch_size_per_gpu": 1,
        "zero_optimization": {"stage": 2},
        "optimizer": {"type": "SGD", "params": {"lr": 1e-3}},
    }
    (verdict,) = initialize_all([config], client="adamw")
    assert verdict.basic_optimizer == "AdamW"


def _late(path: Path) -> tuple[str, ...]:
    settings = Settings(resolve_target(TARGET), Options(1, FrontEndName.PLAIN))
    found = check_source(load_path(path), None, settings).findings
    return tuple(f.message for f in found if f.consequence is Consequence.LATE)


def _on_this_machine(path: Path, drive: str) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8").replace("/local_nvme", drive)
    config: dict[str, Any] = json.loads(text)
    return config
