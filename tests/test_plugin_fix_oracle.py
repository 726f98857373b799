"""Safe fixes put before Accelerate's real plugin: what it hands to DeepSpeed trains as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dsguard.checking import Settings, check_source
from dsguard.facts.resolve import Options
from dsguard.fixing.passes import fix_config
from dsguard.frontends.base import FrontEndName
from dsguard.model.finding import Finding
from dsguard.model.report import Target, TargetOrigin
from dsguard.model.source import Source
from tests.contract.rule_cases import TARGET
from tests.fixing.written import TOP, ZERO
from tests.test_fix_oracle import ADDRESS, successors, written
from tests.test_fixture_oracle import pytestmark as of_oracle

FRONT_ENDS = (None, *FrontEndName)
SWITCHES = (True, False)
_, installed = of_oracle


def found(source: Source, front_end: FrontEndName | None) -> list[Finding]:
    settings = Settings(Target(TARGET, TargetOrigin.OPTION), Options(front_end=front_end))
    return list(check_source(source, None, settings).findings)


def fixed(text: str, front_end: FrontEndName | None) -> str:
    """A text with its safe fixes, for one reader of the config."""

    def find(source: Source) -> Any:
        return found(source, front_end)

    return fix_config(Source("ds_config.json", text), find, unsafe=False).source.text


def old_name(enabled: bool) -> str:
    return written(
        [
            ("train_micro_batch_size_per_gpu", 4),
            ("bfloat16", [("enabled", enabled)]),
            ("zero_optimization", [("stage", 2)]),
        ]
    )


@pytest.mark.parametrize("front_end", FRONT_ENDS)
@pytest.mark.parametrize("enabled", SWITCHES)
def test_the_old_name_of_bf16_is_renamed_where_deepspeed_alone_reads_it(
    front_end: FrontEndName | None, enabled: bool
) -> None:
    """Accelerate's plugin puts a bf16 block beside the old name, and that is what counts."""
    text = old_name(enabled)
    sure = front_end is FrontEndName.PLAIN or (front_end is FrontEndName.LIGHTNING and enabled)
    assert ('"bf16"' in fixed(text, front_end)) is sure


@pytest.mark.parametrize("front_end", FRONT_ENDS)
def test_nobody_is_told_that_the_old_name_counts_and_does_not(
    front_end: FrontEndName | None,
) -> None:
    source = Source("ds_config.json", old_name(True))
    rules = {finding.rule for finding in found(source, front_end)}
    assert len(rules & {"deprecated-key", "precision-argument-ignored"}) == 1


def handed_on(text: str, folder: Path, precision: str) -> dict[str, str] | None:
    """Everything that DeepSpeed takes from what the plugin makes of a config; None if refused."""
    from accelerate import DeepSpeedPlugin
    from deepspeed.runtime.config import DeepSpeedConfig

    from tests.oracle import ranks

    path = folder / "ds_config.json"
    path.write_text(text, encoding="utf-8", newline="")
    try:
        plugin = DeepSpeedPlugin(hf_ds_config=str(path))
        plugin.set_mixed_precision(precision)
        with ranks(1):
            made = DeepSpeedConfig(plugin.deepspeed_config)
    except Exception:
        return None
    taken = {name: value for name, value in vars(made).items() if name != "_param_dict"}
    return {name: ADDRESS.sub("", repr(value)) for name, value in taken.items()}


def faulty(block: str, member: tuple[str, Any]) -> str:
    """A config that the plugin takes, with one fault."""
    zero = [("stage", 2), *([member] if block == "zero" and member[0] != "stage" else [])]
    top = [member] if block == "top" and member[0] != "train_micro_batch_size_per_gpu" else []
    return written([("train_micro_batch_size_per_gpu", 4), ("zero_optimization", zero), *top])


@pytest.mark.deepspeed
@installed
@pytest.mark.parametrize("precision", ["no", "bf16"])
@pytest.mark.parametrize("front_end", [None, FrontEndName.ACCELERATE])
@pytest.mark.parametrize(
    ("block", "member"),
    [("top", pair) for pair in [*TOP[:-1], ("bfloat16", [("enabled", False)])]]
    + [("zero", pair) for pair in ZERO],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_the_plugin_hands_on_the_same(
    tmp_path: Path,
    block: str,
    member: tuple[str, Any],
    front_end: FrontEndName | None,
    precision: str,
) -> None:
    text = faulty(block, member)
    before = handed_on(text, tmp_path, precision)
    if before is None:
        return
    after = handed_on(fixed(text, front_end), tmp_path, precision)
    assert after is not None
    changed = {name for name in before if before[name] != after[name]}
    assert changed <= {"steps_per_print", "wall_clock_breakdown", "zero_config"}
    if "zero_config" in changed:
        assert successors(before["zero_config"]) == successors(after["zero_config"])
