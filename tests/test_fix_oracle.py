"""Safe fixes put before the real DeepSpeed: what it accepted before, it reads just the same after.

What it refused before may be read now or refused for another reason; nothing was trained that
could change.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dsguard.checking import Settings, check_source
from dsguard.fixing.passes import fix_config
from dsguard.model.finding import Consequence
from dsguard.model.report import Target, TargetOrigin
from dsguard.model.source import Source
from tests.contract.rule_cases import TARGET, RuleCase, rule_cases
from tests.fixing.written import BASE, TOP, ZERO
from tests.test_fixture_oracle import pytestmark  # noqa: F401

SETTINGS = Settings(Target(TARGET, TargetOrigin.OPTION))
CASES = [case for case in rule_cases() if case.bad and "--" not in case.args.split()]

ADDRESS = re.compile(r" at 0x[0-9a-f]+")
OLD_NAMES = ("cpu_offload", "stage3_gather_fp16")


def fixed(text: str) -> tuple[str, int]:
    """A text with its safe fixes, and how many they are."""

    def find(source: Source) -> Any:
        return check_source(source, None, SETTINGS).findings

    result = fix_config(Source("ds_config.json", text), find, unsafe=False)
    return result.source.text, result.count


def settled(text: str, folder: Path) -> dict[str, str] | None:
    """Everything that DeepSpeed takes from a config; None where it refuses it."""
    from deepspeed import load_ds_config
    from deepspeed.runtime.config import DeepSpeedConfig

    from tests.oracle import ranks

    path = folder / "ds_config.json"
    path.write_text(text, encoding="utf-8", newline="")
    try:
        with ranks(1):
            made = DeepSpeedConfig(load_ds_config(str(path)))
    except Exception:
        return None
    taken = {name: value for name, value in vars(made).items() if name != "_param_dict"}
    return {name: ADDRESS.sub("", repr(value)) for name, value in taken.items()}


def compare(text: str, folder: Path) -> int:
    new, count = fixed(text)
    before = settled(text, folder)
    if before is not None and count and not fails_later(text):
        after = settled(new, folder)
        assert after is not None
        changed = {name for name in before if before[name] != after[name]}
        only_shown = {"steps_per_print", "wall_clock_breakdown"}
        # The old switch stays in the block that DeepSpeed keeps; its successor is what counts.
        assert changed <= {*only_shown, "zero_config"}, changed
        if "zero_config" in changed:
            assert successors(before["zero_config"]) == successors(after["zero_config"])
    return count


def fails_later(text: str) -> bool:
    """Whether the config is read and no training comes of it, which the engine's oracle proves."""
    findings = check_source(Source("ds_config.json", text), None, SETTINGS).findings
    return any(finding.consequence is Consequence.LATE for finding in findings)


def successors(zero: str) -> list[str]:
    """What the engine asks of the block, without the old names."""
    return [
        word for word in zero.split() if not word.startswith(("cpu_offload", "stage3_gather_fp"))
    ]


def test_fixtures(tmp_path: Path) -> None:
    counts = [compare(text_of(case), tmp_path) for case in CASES]
    assert sum(counts) > 10


def text_of(case: RuleCase) -> str:
    with case.config.open(encoding="utf-8", newline="") as file:
        return file.read()


@pytest.mark.parametrize(
    ("block", "member"),
    [("top", pair) for pair in TOP[:-1]] + [("zero", pair) for pair in ZERO],
    ids=lambda value: value if isinstance(value, str) else value[0],
)
def test_one_fault_in_a_config(tmp_path: Path, block: str, member: tuple[str, Any]) -> None:
    members = [*BASE, member] if block == "top" else list(BASE)
    if block == "zero":
        members[1] = ("zero_optimization", [("stage", 3), member])
    compare(written(members), tmp_path)


def written(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return "{" + ", ".join(f"{json.dumps(k)}: {written(v)}" for k, v in value) + "}"
    return json.dumps(value)
