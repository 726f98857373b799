"""Hand-made reports, and expected outputs compared character by character.

``DSGUARD_UPDATE=1 pytest tests/render`` rewrites the expected outputs; read the difference.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dsguard.model.fact import Candidate, Conflict, Fact, Facts, Known, Origin, OriginKind, Unknown
from dsguard.model.finding import (
    Because,
    Confidence,
    Consequence,
    Edit,
    Finding,
    Fix,
    Safety,
    Severity,
)
from dsguard.model.report import Check, Failure, Report, SkippedRule, Target, TargetOrigin
from dsguard.model.source import Location, Source, Span

EXPECTED = Path(__file__).parent / "expected"

CONFIG = """\
{
  "train_batch_size": 32,
  "gradient_accumulation_steps": 1,
  "fp16": {"enabled": true},
  "zero_optimization": {
    "stage": 3,
    "offload_optimizer": {"device": "cpu"}
  }
}
"""
COMMAND = (
    "torchrun --nproc_per_node=4 train.py --batch_size 1 --gradient_accumulation_steps 8"
    " --deepspeed_config ds_config.json"
)


class Build:
    """Builds the parts of reports."""

    @staticmethod
    def config(text: str = CONFIG, name: str = "ds_config.json") -> Source:
        return Source(name, text)

    @staticmethod
    def launch(text: str = COMMAND) -> Source:
        return Source("<launch command>", text, is_file=False)

    @staticmethod
    def at(source: Source, words: str, pointer: str | None = None) -> Location:
        start = source.text.index(words)
        return Location(source, Span(start, start + len(words)), pointer)

    @staticmethod
    def derived(formula: str, *facts: Any) -> Origin:
        return Origin(OriginKind.DERIVED, facts=facts, formula=formula)

    @staticmethod
    def default(whose: str = "DeepSpeed 0.19.8") -> Origin:
        return Origin(OriginKind.DEFAULT, whose=whose)

    def argument(self, source: Source, words: str) -> Origin:
        flag = words.partition(" ")[0].partition("=")[0]
        return Origin(OriginKind.LAUNCH, self.at(source, words), flag)

    @staticmethod
    def finding(at: Location, message: str = "something is wrong", **changes: Any) -> Finding:
        finding = Finding(
            "DSG101",
            "unknown-key",
            Severity.ERROR,
            Confidence.HIGH,
            Consequence.REFUSED,
            message,
            at,
        )
        return replace(finding, **changes)

    @staticmethod
    def check(
        *findings: Finding,
        config: str | None = "ds_config.json",
        launch: str | None = None,
        facts: dict[Any, Fact] | None = None,
        origin: TargetOrigin = TargetOrigin.NEWEST_KNOWN,
        skipped: tuple[SkippedRule, ...] = (),
    ) -> Check:
        target = Target("0.19.8", origin)
        return Check(config, launch, target, Facts(facts or {}), findings, skipped)

    def report(self, *findings: Finding) -> Report:
        return Report((self.check(*findings),))

    def story(self) -> Report:
        """The accumulation that the config overrides: every kind of origin and state in one."""
        config, launch = self.config(), self.launch()
        steps = self.at(config, "1", "/gradient_accumulation_steps")
        batch = Origin(OriginKind.CONFIG, self.at(config, "32", "/train_batch_size"))
        asked = self.argument(launch, "--gradient_accumulation_steps 8")
        processes = self.argument(launch, "--nproc_per_node=4")
        loader = self.argument(launch, "--batch_size 1")
        script = Source("train.py", "x = 1\nlr = 2e-4\n")
        facts: dict[Any, Fact] = {
            "deepspeed_version": Known("0.19.8", self.default("dsguard (newest known)")),
            "front_end": Known("plain", self.derived("nothing in the launch names a trainer")),
            "launcher": Known("torchrun", Origin(OriginKind.LAUNCH, self.at(launch, "torchrun"))),
            "script": Known("train.py", Origin(OriginKind.LAUNCH, self.at(launch, "train.py"))),
            "config_file": Known(
                "ds_config.json", self.argument(launch, "--deepspeed_config ds_config.json")
            ),
            "world_size": Known(4, processes),
            "data_parallel_size": Known(4, self.derived("4 // 1 // 1", "world_size")),
            "tensor_parallel_size": Known(1, self.default()),
            "pipeline_stages": Unknown("the engine is given a PipelineModule or not by the script"),
            "sequence_parallel_size": Known(1, self.default()),
            "train_batch_size": Known(32, batch),
            "micro_batch_size": Known(
                8, self.derived("32 // 4 // 1", "train_batch_size"), (Candidate(1, loader),)
            ),
            "gradient_accumulation_steps": Known(
                1, Origin(OriginKind.CONFIG, steps), (Candidate(8, asked),)
            ),
            "samples_per_step": Known(
                4, self.derived("1 × 1 × 4", "gradient_accumulation_steps", "data_parallel_size")
            ),
            "gradient_clipping": Known(1.0, self.default()),
            "precision": Known(
                "fp16", Origin(OriginKind.CONFIG, self.at(config, "true", "/fp16/enabled"))
            ),
            "zero_stage": Known(
                3, Origin(OriginKind.CONFIG, self.at(config, "3,", "/zero_optimization/stage"))
            ),
            "offload_optimizer": Known("cpu", Origin(OriginKind.CONFIG, self.at(config, '"cpu"'))),
            "offload_param": Known("none", self.default()),
            "optimizer": Unknown("the script makes it"),
            "learning_rate": Conflict(
                (
                    Candidate(2e-4, Origin(OriginKind.SCRIPT, self.at(script, "2e-4"))),
                    Candidate("auto", Origin(OriginKind.ENVIRONMENT, argument="LR")),
                )
            ),
            "scheduler": Known(None, self.default()),
            "warmup_steps": Unknown("there is no scheduler"),
            "total_steps": Known(1000, Origin(OriginKind.OPTION, argument="--total-steps")),
        }
        ignored = self.finding(
            steps,
            "gradient_accumulation_steps is 1: ds_config.json wins,"
            " 8 from the command line is ignored",
            code="DSG203",
            rule="accumulation-ignored",
            consequence=Consequence.DIFFERS,
            because=(
                Because("gradient_accumulation_steps", 8, asked),
                Because("world_size", 4, processes),
                Because("train_batch_size", 32, batch),
                Because("micro_batch_size", 8, self.derived("32 // 4 // 1")),
            ),
            fix=Fix("set it to 8 in ds_config.json", Safety.UNSAFE, (Edit(61, 62, "8"),)),
            help="ds_config.json and the command line must say the same number",
        )
        loaded = self.finding(
            self.at(launch, "--batch_size 1"),
            "the loader makes batches of 1 where DeepSpeed derives 8 × 4 × 1 = 32 samples",
            code="DSG206",
            rule="loader-batch-differs",
            severity=Severity.WARNING,
            confidence=Confidence.MEDIUM,
            consequence=Consequence.DIFFERS,
        )
        skipped = SkippedRule("warmup-longer-than-run", ("warmup_steps",), "there is no scheduler")
        check = self.check(loaded, ignored, launch=launch.text, facts=facts, skipped=(skipped,))
        return Report((check,))

    def several(self) -> Report:
        """The story twice with a clean check between, a failure, and a config without launch."""
        story = self.story().checks[0]
        other = self.config('{"train_batch_sise": 8}\n', "other.json")
        return Report(
            (
                story,
                self.check(config="clean.json", origin=TargetOrigin.INSTALLED),
                self.check(
                    self.finding(
                        self.at(other, '"train_batch_sise"', "/train_batch_sise"),
                        "DeepSpeed has no key train_batch_sise",
                        severity=Severity.INFO,
                    ),
                    config="other.json",
                    skipped=story.skipped,
                ),
            ),
            (
                Failure("missing.json", "no such file", "name a file that exists"),
                Failure("", "nothing to check"),
            ),
            suppressed=2,
            baselined=1,
        )


@pytest.fixture(scope="session")
def build() -> Build:
    """The builder of reports."""
    return Build()


@pytest.fixture(scope="session")
def expect() -> Callable[[str, str], None]:
    """Compares an output with the file of that name under ``expected``."""

    def compare(name: str, actual: str) -> None:
        path = EXPECTED / name
        if os.environ.get("DSGUARD_UPDATE") == "1":
            path.write_text(actual, encoding="utf-8", newline="\n")
        assert actual == path.read_text(encoding="utf-8")

    return compare
