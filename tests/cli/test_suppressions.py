"""Suppressions in every syntax, and by settings."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest

from dsguard.api import check_text
from dsguard.checking import Settings, check_source
from dsguard.model.directive import Directive
from dsguard.model.report import Target, TargetOrigin
from dsguard.model.source import Location, Source, Span
from dsguard.paths import Globs
from dsguard.suppression.apply import suppress
from dsguard.suppression.ignore_at import IgnoreAt
from tests.conftest import Dsguard

CONFIG = """{
  "train_micro_batch_size_per_gpu": 4,
  "bf16": {"enabled": true},
  "zero_optimization": {"stage": 1},
%s
}
"""
LAUNCH = "torchrun --nproc_per_node=4 train.py --gradient_accumulation_steps 8 "
LAUNCH += "--deepspeed_config ds.json"


def rules(dsguard: Dsguard, line: str, folder: Path) -> tuple[list[str], int]:
    """The rules that are found, and how many findings are suppressed."""
    report = json.loads(dsguard(f"{line} --target 0.19.8 -o json", folder).out)
    found = [finding["rule"] for finding in report["findings"]]
    return found, report["summary"]["suppressed"]


@pytest.mark.parametrize(
    "lines",
    [
        '  "mine": 1 # dsguard: ignore[unknown-key] ours',
        '  "mine": 1 // dsguard: ignore[unknown-key]',
        '  "mine": 1 /* dsguard: ignore[unknown-key] ours */',
        '  // dsguard: ignore[unknown-key] ours\n  "mine": 1',
        '  /* dsguard: ignore[DSG101] ours */ "mine": 1',
        '  # for us  # dsguard: ignore[unknown-key] ours\n  # and you\n\n  "mine": 1',
        '  "mine": 1 # dsguard:ignore [ unknown-key , ] ours',
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_comments_of_a_config(dsguard: Dsguard, tmp_path: Path, lines: str, end: str) -> None:
    text = (CONFIG % lines).replace("\n", end)
    (tmp_path / "ds.json").write_bytes(text.encode())
    assert rules(dsguard, "check ds.json", tmp_path) == ([], 1)


@pytest.mark.parametrize(
    "lines",
    [
        '  // dsguard: ignore[unknown-key]\n  "bf17": {},\n  "mine": 1',
        '  "mine": "// dsguard: ignore[unknown-key]"',
        '  "mine": 1,\n  // dsguard: ignore[unknown-key]\n  "bf17": {}',
    ],
)
def test_other_lines_and_strings_are_not_meant(
    dsguard: Dsguard, tmp_path: Path, lines: str
) -> None:
    (tmp_path / "ds.json").write_text(CONFIG % lines, encoding="utf-8")
    found, suppressed = rules(dsguard, "check ds.json", tmp_path)
    assert found == ["unknown-key"]
    assert suppressed == lines.count("bf17")


def test_a_shell_script(dsguard: Dsguard, tmp_path: Path) -> None:
    """A comment before a command of several lines means all of them."""
    (tmp_path / "ds.json").write_text(
        '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1}'
    )
    script = "#!/bin/sh\n{}CUDA_VISIBLE_DEVICES=2,3 \\\n  deepspeed --num_gpus 2 \\\n"
    script += "  train.py --deepspeed_config ds.json\n"
    (tmp_path / "run.sh").write_text(script.format("echo '# dsguard: ignore[unknown-key]'\n"))
    assert rules(dsguard, "check run.sh", tmp_path) == (["visible-devices-ignored"], 0)
    remark = "# dsguard: ignore[visible-devices-ignored] both are free\n"
    (tmp_path / "run.sh").write_text(script.format(remark))
    assert rules(dsguard, "check run.sh", tmp_path) == ([], 1)


def test_two_launches_of_one_script(dsguard: Dsguard, tmp_path: Path) -> None:
    """Used by one launch, a comment is not unused for the other one."""
    (tmp_path / "ds.json").write_text(CONFIG % '  "mine": 1 // dsguard: ignore[unknown-key]')
    launch = "deepspeed --num_gpus 2 train.py --deepspeed_config ds.json\n"
    remark = "# dsguard: ignore[visible-devices-ignored] both are free\n"
    text = f"#!/bin/sh\n{remark}CUDA_VISIBLE_DEVICES=2,3 {launch}{launch}"
    (tmp_path / "run.sh").write_text(text)
    assert rules(dsguard, "check run.sh", tmp_path) == ([], 3)


def test_yaml(dsguard: Dsguard, tmp_path: Path) -> None:
    text = (
        "output_dir: 'out # dsguard: ignore[unknown-rule]'\n"
        "per_device_train_batch_size: 2\n"
        "deepspeed:\n"
        "  train_micro_batch_size_per_gpu: 2\n"
        "  gradient_clipping: 1.0\n"
        "  mine: 1{}\n"
    )
    (tmp_path / "job.yaml").write_text(text.format(""))
    found, _ = rules(dsguard, "check job.yaml", tmp_path)
    assert found.count("unknown-key") == 1
    (tmp_path / "job.yaml").write_text(text.format("  # dsguard: ignore[unknown-key] ours"))
    found, suppressed = rules(dsguard, "check job.yaml", tmp_path)
    assert "unknown-key" not in found
    assert "unknown-suppression" not in found
    assert suppressed == 1


def test_python(dsguard: Dsguard, tmp_path: Path) -> None:
    """Comments of the training script count, text in its strings does not."""
    (tmp_path / "ds.json").write_text(CONFIG % '  "gradient_clipping": 1.0')
    (tmp_path / "train.py").write_text(
        '"""Text\n# dsguard: ignore[no-such-rule]\n"""\nimport argparse\n'
        "x = 1  # dsguard: ignore[neither-this]\n"
    )
    line = "check ds.json -o concise --target 0.19.8 -- deepspeed --num_gpus 2 train.py"
    outcome = dsguard(f"{line} --deepspeed_config ds.json", tmp_path)
    assert outcome.out == (
        "train.py:5:26: warning[DSG010] unknown-suppression: this suppresses nothing: no rule is "
        "called neither-this\n"
    )


@pytest.mark.parametrize(
    ("pointer", "hidden"), [("", 2), ("/mine", 1), ("/bf16", 0), ("/min", 0), (r"/mi\nne", 0)]
)
def test_ignore_at(dsguard: Dsguard, tmp_path: Path, pointer: str, hidden: int) -> None:
    (tmp_path / "configs").mkdir()
    config = tmp_path / "configs" / "ds.json"
    config.write_text(CONFIG % '  "mine": {"a": 1},\n  "yours": 2', encoding="utf-8")
    (tmp_path / "dsguard.toml").write_text(
        f'[[ignore-at]]\nrule = "unknown-key"\nfile = "configs/*.json"\npointer = "{pointer}"\n'
        'reason = "ours"\n'
    )
    for line, folder in (("check configs/ds.json", tmp_path), ("check ds.json", config.parent)):
        found, suppressed = rules(dsguard, line, folder)
        assert suppressed == hidden
        unused = ["unused-suppression"] if not hidden else []
        assert found == ["unknown-key"] * (2 - hidden) + unused


def test_an_entry_for_another_file_is_not_unused(dsguard: Dsguard, tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(CONFIG % '  "gradient_clipping": 1.0')
    (tmp_path / "dsguard.toml").write_text(
        '[[ignore-at]]\nrule = "unknown-key"\nfile = "other.json"\nreason = "ours"\n'
    )
    assert rules(dsguard, "check ds.json", tmp_path) == ([], 0)


@pytest.mark.parametrize(
    ("today", "expired"),
    [(date(2026, 6, 29), False), (date(2026, 6, 30), False), (date(2026, 7, 1), True)],
)
def test_the_last_day_still_counts(tmp_path: Path, today: date, expired: bool) -> None:
    source = Source("ds.json", CONFIG % '  "mine": 1')
    check = check_source(source, None, Settings(Target("0.19.8", TargetOrigin.OPTION)))
    at = Location(Source("dsguard.toml", "rule"), Span(0, 4))
    globs = Globs(["ds.json"], Path.cwd())
    entry = IgnoreAt("unknown-key", "ds.json", globs, "ours", at, expires=date(2026, 6, 30))
    (kept,), count = suppress([check], [entry], today=today)
    found = [finding.rule for finding in kept.findings]
    assert found == (["unknown-key", "expired-suppression"] if expired else [])
    assert count == int(not expired)


def test_a_rule_that_lacks_an_answer_is_not_unused(dsguard: Dsguard, tmp_path: Path) -> None:
    remark = '  // dsguard: ignore[accumulation-ignored] ours\n  "gradient_accumulation_steps": 8'
    (tmp_path / "ds.json").write_text(CONFIG % remark)
    assert rules(dsguard, "check ds.json", tmp_path) == ([], 0)
    line = f"check ds.json --target 0.19.8 -o concise -- {LAUNCH}"
    assert "unused-suppression: nothing is suppressed here" in dsguard(line, tmp_path).out


def test_a_rule_that_does_not_run_is_not_unused(dsguard: Dsguard, tmp_path: Path) -> None:
    (tmp_path / "ds.json").write_text(CONFIG % '  "a": 1 // dsguard: ignore[deprecated-key] x')
    line = "check ds.json --ignore deprecated-key"
    assert rules(dsguard, line, tmp_path) == (["unknown-key"], 0)


def test_the_api_reads_comments() -> None:
    report = check_text(CONFIG % '  "mine": 1 // dsguard: ignore[unknown-key] ours')
    assert report.findings == []
    assert report.suppressed == 1


def test_a_crash_cannot_be_suppressed(
    dsguard: Dsguard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*arguments: object, **names: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("dsguard.checking.resolve", crash)
    text = CONFIG % '  "mine": 1'
    (tmp_path / "ds.json").write_text(f"// dsguard: ignore[internal-error] quiet\n{text}")
    outcome = dsguard("check ds.json -o concise", tmp_path)
    assert outcome.code == 3
    assert "internal-error: the resolution of facts crashed" in outcome.out
    assert "locked-suppression: internal-error is locked" in outcome.out


def test_a_directive_looks_at_the_findings_of_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f'  "k{at}": 1, // dsguard: ignore[unknown-key]' for at in range(200)]
    looks = 0
    covers = Directive.covers

    def count(directive: Directive, location: Location) -> bool:
        nonlocal looks
        looks += 1
        return covers(directive, location)

    monkeypatch.setattr(Directive, "covers", count)
    source = Source(
        "ds.json", CONFIG % ('"optimizer": {"type": "Adam",\n' + "\n".join(lines) + "\n}")
    )
    check = check_source(source, None, Settings(Target("0.19.8", TargetOrigin.OPTION)))
    assert len(check.findings) == 200
    (kept,), suppressed = suppress([check], today=date(2026, 7, 1))
    assert not kept.findings
    assert suppressed == 200
    assert looks <= 2 * 200
