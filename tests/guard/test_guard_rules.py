"""Rules about engines that are not installed here, asked with an engine that stands in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from dsguard.facts.known_bugs import KNOWN_BUGS
from dsguard.model.finding import Finding
from dsguard.model.rule import Reporter
from dsguard.runtime.expectation import Expectation
from dsguard.runtime.moments import Attached, Backward, Moment, RanksCompared, StepCalled
from dsguard.runtime.place import NOWHERE
from dsguard.runtime.rule import GuardRule, all_guard_rules
from dsguard.runtime.rules.backward_around_engine import backward_around_engine
from dsguard.runtime.rules.forward_around_engine import forward_around_engine
from dsguard.runtime.rules.known_bad_release import known_bad_release
from dsguard.runtime.rules.ranks_differ import ranks_differ
from dsguard.runtime.run import Run


@dataclass
class Stub:
    """An engine of any release."""

    version: str = "0.18.2"
    zero_stage: int = 2
    kind: str = "DeepSpeedEngine"
    steps: int = 4
    backward_harm: str = ""
    forward_harm: str = ""
    settings: dict[str, Any] = field(default_factory=dict)

    def accumulation(self) -> int:
        return self.steps

    def release(self) -> str:
        return self.version

    def bug_facts(self) -> dict[str, Any]:
        return {
            "zero_stage": self.zero_stage,
            "gradient_accumulation_steps": self.steps,
            "offload_optimizer": "none",
            "data_parallel_size": 2,
            **self.settings,
        }

    def needs_engine_backward(self) -> str:
        return self.backward_harm

    def needs_engine_forward(self) -> str:
        return self.forward_harm


def run_of(stub: Stub) -> Run:
    return Run(stub, Expectation(), NOWHERE)  # type: ignore[arg-type]


def asked(rule: GuardRule[Any], moment: Moment) -> list[Finding]:
    found = list(rule.check(moment, Reporter(rule.meta)))
    moment.run.said.update(finding.rule for finding in found)
    return found


def names(found: list[Finding]) -> list[str]:
    return [bug.name for finding in found for bug in KNOWN_BUGS if bug.says in finding.message]


@pytest.mark.parametrize(
    ("stub", "expected"),
    [
        (Stub(), ["zero2-keeps-the-last-micro-batch"]),
        (Stub("0.18.3"), []),
        (Stub("0.17.5"), []),
        (Stub(steps=1), []),
        (Stub(zero_stage=1), []),
        (
            Stub("0.18.4", settings={"offload_optimizer": "cpu"}),
            ["offload-keeps-first-and-last-micro-batch"],
        ),
        (
            Stub("0.17.0", 3, settings={"zero_hpz_partition_size": 2}),
            ["hpz-stale-weights"],
        ),
        (
            Stub(
                "0.18.7",
                1,
                settings={
                    "precision": "bf16",
                    "grad_accum_dtype": "fp32",
                    "immediate_grad_update": False,
                },
            ),
            ["bf16-accumulation-misses-the-last-average"],
        ),
        (
            Stub("0.17.5", 3, settings={"optimizer": "Lion", "offload_optimizer": "cpu"}),
            ["lion-with-offload"],
        ),
        (Stub("unknown"), []),
        (Stub(""), []),
    ],
)
def test_bugs_that_an_engine_shows_as_it_stands(stub: Stub, expected: list[str]) -> None:
    found = asked(known_bad_release, Attached(run_of(stub)))
    assert names(found) == expected
    for finding in found:
        assert finding.help
        assert finding.because


def test_a_second_backward_at_a_boundary() -> None:
    run = run_of(Stub(zero_stage=1))
    run.windows.backward(4)
    assert asked(known_bad_release, Backward(run, object(), True)) == []
    run.windows.backward(4)
    run.reduced = False
    assert asked(known_bad_release, Backward(run, object(), True)) == []
    run.reduced = True
    found = asked(known_bad_release, Backward(run, object(), True))
    assert names(found) == ["second-backward-fails"]


def test_bugs_that_a_loop_meets() -> None:
    run = run_of(Stub("0.19.0", 1))
    run.windows.backward(4)
    assert names(asked(known_bad_release, StepCalled(run))) == ["module-loss-not-divided"]
    run.windows.forward(1)
    assert asked(known_bad_release, StepCalled(run)) == []
    raw = run_of(Stub("0.17.5", 0))
    raw.windows.backward(4)
    raw.through_engine = False
    assert names(asked(known_bad_release, StepCalled(raw))) == ["raw-backward-not-averaged"]


def test_a_dedicated_rule_speaks_alone() -> None:
    run = run_of(Stub("0.17.5", 0, backward_harm="nothing is averaged"))
    run.windows.forward(1)
    run.windows.backward(4)
    run.through_engine = False
    (finding,) = asked(backward_around_engine, Backward(run, None, True))
    assert "nothing is averaged" in finding.message
    assert asked(known_bad_release, StepCalled(run)) == []
    other = run_of(Stub("0.19.0", 1, forward_harm="nothing is divided"))
    other.windows.backward(4)
    assert asked(forward_around_engine, Backward(other, object(), True))
    assert asked(known_bad_release, StepCalled(other)) == []


def test_a_release_that_supports_it() -> None:
    run = run_of(Stub("0.19.8", 1))
    run.windows.backward(4)
    assert asked(backward_around_engine, Backward(run, None, True)) == []
    assert asked(backward_around_engine, Backward(run, object(), True)) == []


def test_every_rule_of_the_guard_is_of_its_family() -> None:
    assert {rule.meta.family for rule in all_guard_rules()} == {"guard"}
    assert all(rule.on for rule in all_guard_rules() if rule.meta.slug != "guard-fault")


def test_ranks_of_two_precisions() -> None:
    """DeepSpeed stops at the first broadcast where their widths differ; fp16 and bf16 it mixes."""
    told = {"precision": {0: "fp16", 1: "bf16"}}
    (found,) = asked(ranks_differ, RanksCompared(run_of(Stub()), told, (), 1.0))
    assert "precision is 'fp16' on rank 0, 'bf16' on rank 1" in found.message
