"""``--fix``, ``--unsafe-fixes`` and ``--diff`` as they are called from a shell."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dsguard.cli import fixing
from dsguard.model.source import Source
from dsguard.reading.hjson import parse
from tests.conftest import Dsguard
from tests.contract.rule_cases import RuleCase, rule_cases

CONFIG = """{
  // ours
  "train_micro_batch_size_per_gpu": 4,   # per GPU
  "amp": {"enabled": false},
  "zero_optimization": {"stage": 2, "cpu_offload": true},
  "gradient_cliping": 1.0
}
"""
SAFE = CONFIG.replace('  "amp": {"enabled": false},\n', "").replace(
    '"cpu_offload": true', '"offload_optimizer": {"device": "cpu"}'
)
UNSAFE = SAFE.replace("cliping", "clipping")
FIXING = (
    "conflicting-keys",
    "deprecated-key",
    "duplicate-key",
    "misplaced-key",
    "mistyped-value",
    "not-strict-json",
    "removed-key",
    "unknown-key",
    "unknown-optimizer",
    "unknown-optimizer-parameter",
    "unknown-scheduler",
    "unknown-scheduler-parameter",
    "unquoted-literal",
)
"""Rules that offer safe fixes."""

CHECK = "check ds.json --target 0.19.8"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "ds.json"
    path.write_text(CONFIG, encoding="utf-8", newline="")
    return path


def test_safe_fixes(dsguard: Dsguard, config: Path) -> None:
    outcome = dsguard(f"{CHECK} --fix", config.parent)
    assert config.read_text(encoding="utf-8") == SAFE
    assert outcome.code == 0
    assert outcome.out.splitlines()[-1].startswith(
        "Found 1 warning (2 fixed, 1 fixable with --fix --unsafe-fixes) in 1 file"
    )


def test_unsafe_fixes(dsguard: Dsguard, config: Path) -> None:
    outcome = dsguard(f"{CHECK} --fix --unsafe-fixes", config.parent)
    assert config.read_text(encoding="utf-8") == UNSAFE
    assert outcome.out.startswith("No problems found (3 fixed) in 1 file")


def test_fixing_again_changes_nothing(dsguard: Dsguard, config: Path) -> None:
    dsguard(f"{CHECK} --fix --unsafe-fixes", config.parent)
    before = config.stat()
    outcome = dsguard(f"{CHECK} --fix --unsafe-fixes", config.parent)
    assert outcome.out.startswith("No problems found in 1 file")
    assert (config.stat().st_ino, config.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize("remains", [True, False])
def test_the_exit_code_is_about_what_remains(dsguard: Dsguard, config: Path, remains: bool) -> None:
    if remains:
        config.write_text(CONFIG.replace("{", '{"train_batch_size": -1,', 1), encoding="utf-8")
    assert dsguard(CHECK, config.parent).code == 1
    assert dsguard(f"{CHECK} --fix", config.parent).code == int(remains)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("CRLF", lambda text: text.replace("\n", "\r\n")),
        ("no newline at the end", lambda text: text.removesuffix("\n")),
        ("byte order mark", lambda text: "\ufeff" + text),
        ("tabs", lambda text: text.replace("  ", "\t")),
        ("several newlines at the end", lambda text: text + "\n\n"),
    ],
)
def test_the_rest_of_the_text_survives(dsguard: Dsguard, config: Path, name: str, change) -> None:
    config.write_bytes(change(CONFIG).encode())
    dsguard(f"{CHECK} --fix --unsafe-fixes", config.parent)
    assert config.read_bytes() == change(UNSAFE).encode()


def test_the_mode_survives(dsguard: Dsguard, config: Path) -> None:
    config.chmod(0o640)
    dsguard(f"{CHECK} --fix", config.parent)
    assert stat.S_IMODE(config.stat().st_mode) == 0o640
    assert [path.name for path in config.parent.iterdir()] == ["ds.json"]


def test_a_read_only_file(dsguard: Dsguard, config: Path) -> None:
    config.chmod(0o444)
    outcome = dsguard(f"{CHECK} --fix", config.parent)
    assert outcome.code == 3
    assert "ds.json: is read-only" in outcome.out
    assert config.read_text(encoding="utf-8") == CONFIG


def test_a_symbolic_link(dsguard: Dsguard, config: Path) -> None:
    real = config.rename(config.parent / "real.json")
    config.symlink_to("real.json")
    outcome = dsguard(f"{CHECK} --fix", config.parent)
    assert outcome.code == 3
    assert "is a symbolic link and is not replaced" in outcome.out
    assert "name real.json" in outcome.out
    assert config.is_symlink()
    assert real.read_text(encoding="utf-8") == CONFIG


def test_a_hard_link(dsguard: Dsguard, config: Path) -> None:
    (config.parent / "other.json").hardlink_to(config)
    outcome = dsguard(f"{CHECK} --fix", config.parent)
    assert outcome.code == 3
    assert "has 2 names (hard links)" in outcome.out
    assert config.read_text(encoding="utf-8") == CONFIG


def test_a_file_that_changes_meanwhile(
    dsguard: Dsguard, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(fixed) -> None:
        config.write_text("{}", encoding="utf-8")
        original(fixed)

    original = fixing.FixedConfig.write
    monkeypatch.setattr(fixing.FixedConfig, "write", write)
    outcome = dsguard(f"{CHECK} --fix", config.parent)
    assert outcome.code == 3
    assert "has changed since it was read" in outcome.out
    assert config.read_text(encoding="utf-8") == "{}"


def test_a_disk_that_is_full(
    dsguard: Dsguard, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    outcome = dsguard(f"{CHECK} --fix", config.parent)
    assert outcome.code == 3
    assert "ds.json: cannot be written: No space left on device" in outcome.out
    assert config.read_text(encoding="utf-8") == CONFIG
    assert [path.name for path in config.parent.iterdir()] == ["ds.json"]


def test_standard_input_is_passed_through(dsguard: Dsguard, config: Path) -> None:
    text = CONFIG.replace("\n", "\r\n")
    line = [sys.executable, "-m", "dsguard", "check", "-", "--target", "0.19.8", "--fix"]
    outcome = subprocess.run(line, input=text.encode(), capture_output=True, cwd=config.parent)
    assert outcome.stdout == SAFE.replace("\n", "\r\n").encode()
    assert b"2 fixed" in outcome.stderr


def test_standard_input_without_anything_to_fix(dsguard: Dsguard, tmp_path: Path) -> None:
    outcome = dsguard("check - --target 0.19.8 --fix", tmp_path, stdin=UNSAFE.encode())
    assert outcome.out == UNSAFE
    assert "No problems found" in outcome.err


def test_a_diff_writes_nothing_and_patch_takes_it(dsguard: Dsguard, config: Path) -> None:
    outcome = dsguard(f"{CHECK} --diff --unsafe-fixes", config.parent)
    assert outcome.code == 1
    assert outcome.err == "Would fix 3 problems in 1 file\n"
    assert config.read_text(encoding="utf-8") == CONFIG
    if shutil.which("patch") is None:
        pytest.skip("patch is not on this machine")
    subprocess.run(["patch", "-s", "ds.json"], input=outcome.out, text=True, check=True,
                   cwd=config.parent)  # fmt: skip
    assert config.read_text(encoding="utf-8") == UNSAFE


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not on this machine")
@pytest.mark.parametrize("end", ["\f", "\v", "\x85", "\u2028", "\x1c", "\r", "\r\n"])
def test_patch_takes_what_only_python_takes_for_the_end_of_a_line(
    dsguard: Dsguard, config: Path, end: str
) -> None:
    text = CONFIG.replace("// ours", f"// ours{end} ").replace("# per GPU", f"# per{end}# GPU")
    config.write_text(text, encoding="utf-8", newline="")
    (config.parent / "fixed.json").write_text(text, encoding="utf-8", newline="")
    dsguard("check fixed.json --target 0.19.8 --fix --unsafe-fixes", config.parent)
    outcome = dsguard(f"{CHECK} --diff --unsafe-fixes", config.parent)
    subprocess.run(["patch", "-s", "--binary", "ds.json"], input=outcome.out.encode(), check=True,
                   cwd=config.parent)  # fmt: skip
    fixed = (config.parent / "fixed.json").read_bytes()
    assert b"clipping" in fixed
    assert config.read_bytes() == fixed


def test_a_diff_without_a_difference(dsguard: Dsguard, config: Path) -> None:
    config.write_text(UNSAFE, encoding="utf-8")
    outcome = dsguard(f"{CHECK} --diff", config.parent)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "Would fix 0 problems in 0 files\n")


def test_a_diff_of_a_missing_last_newline(dsguard: Dsguard, config: Path) -> None:
    config.write_text(CONFIG.removesuffix("\n").replace("cliping", "clipping"), encoding="utf-8")
    outcome = dsguard(f"{CHECK} --diff", config.parent)
    assert outcome.out.endswith(" }\n\\ No newline at end of file\n")


def test_a_coloured_diff(dsguard: Dsguard, config: Path) -> None:
    outcome = dsguard(f"{CHECK} --diff --color always", config.parent)
    assert '\x1b[31m-  "amp": {"enabled": false},\x1b[0m\n' in outcome.out


def test_a_suppressed_finding_is_not_fixed(dsguard: Dsguard, config: Path) -> None:
    text = CONFIG.replace(
        '  "amp"', '  // dsguard: ignore[removed-key] for the old cluster\n  "amp"'
    )
    config.write_text(text, encoding="utf-8")
    dsguard(f"{CHECK} --fix", config.parent)
    assert '"amp": {"enabled": false}' in config.read_text(encoding="utf-8")


def test_one_config_of_two_launches_is_fixed_once(dsguard: Dsguard, config: Path) -> None:
    launch = "deepspeed --num_gpus {} train.py --deepspeed_config ds.json\n"
    (config.parent / "run.sh").write_text("#!/bin/sh\n" + launch.format(2) + launch.format(4))
    outcome = dsguard("check run.sh ds.json --target 0.19.8 --fix", config.parent)
    assert config.read_text(encoding="utf-8") == SAFE
    assert "2 fixed" in outcome.out


def test_launches_that_want_different_values(dsguard: Dsguard, tmp_path: Path) -> None:
    config = tmp_path / "ds.json"
    text = '{"train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1}\n'
    config.write_text(text, encoding="utf-8")
    launch = "deepspeed --num_gpus 2 train.py --gradient_accumulation_steps {} "
    launch += "--deepspeed_config ds.json\n"
    (tmp_path / "run.sh").write_text("#!/bin/sh\n" + launch.format(2) + launch.format(4))
    outcome = dsguard("check run.sh --target 0.19.8 --fix --unsafe-fixes", tmp_path)
    assert outcome.code == 3
    assert "ds.json: the fixes of accumulation-ignored undo each other" in outcome.out
    assert config.read_text(encoding="utf-8") == text


def test_a_config_inside_a_job_file_is_not_edited(dsguard: Dsguard, tmp_path: Path) -> None:
    text = (
        "output_dir: out\nper_device_train_batch_size: 2\ndeepspeed:\n"
        "  train_micro_batch_size_per_gpu: 2\n  zero_optimization: {stage: 2, cpu_offload: true}\n"
    )
    (tmp_path / "job.yaml").write_text(text)
    outcome = dsguard("check job.yaml --target 0.19.8 --fix", tmp_path)
    assert "fixed" not in outcome.out
    assert (tmp_path / "job.yaml").read_text() == text


def test_unsafe_fixes_alone_are_wrong_usage(dsguard: Dsguard, config: Path) -> None:
    outcome = dsguard(f"{CHECK} --unsafe-fixes", config.parent)
    assert outcome.code == 2
    assert "needs --fix or --diff beside it" in outcome.err


def test_the_new_batch_stands_in_the_title(dsguard: Dsguard, tmp_path: Path) -> None:
    text = '{"train_micro_batch_size_per_gpu": 4, "fp16": {}, "gradient_accumulation_stepz": 8}'
    (tmp_path / "ds.json").write_text(text)
    outcome = dsguard("check ds.json --target 0.19.8 --world-size 2 -o json", tmp_path)
    (finding,) = json.loads(outcome.out)["findings"]
    assert finding["fix"]["safety"] == "unsafe"
    assert finding["fix"]["title"] == (
        "rename it to gradient_accumulation_steps, so that one optimizer step trains on 64 samples"
    )


@pytest.mark.parametrize("slug", FIXING)
def test_every_fixture_with_safe_fixes(slug: str, dsguard: Dsguard, tmp_path: Path) -> None:
    """Fixed by the program itself, it has no safe fix left and its comments are all there."""
    cases = [case for case in rule_cases() if case.bad and case.slug == slug]
    shutil.copytree(cases[0].config.parent, tmp_path / "bad")
    fixed = [fixed_by_itself(case, dsguard, tmp_path / "bad") for case in cases]
    assert any(fixed)


def fixed_by_itself(case: RuleCase, dsguard: Dsguard, folder: Path) -> bool:
    line = case.line.replace("-o concise", "-o json", 1)
    config = folder / case.config.name
    before = json.loads(dsguard(line, folder).out)["findings"]
    if not safe_fixes(before):
        return False
    old = config.read_text(encoding="utf-8")
    after = json.loads(dsguard(line.replace("check", "check --fix", 1), folder).out)["findings"]
    assert not safe_fixes(after), case.id
    assert len(after) < len(before), case.id
    assert comments(old) == comments(config.read_text(encoding="utf-8")), case.id
    return True


def safe_fixes(findings: list[dict[str, Any]]) -> list[str]:
    fixes = [finding["fix"] for finding in findings if finding["fix"]]
    return [fix["title"] for fix in fixes if fix["safety"] == "safe" and fix["edits"]]


def comments(text: str) -> list[str]:
    source = Source("ds.json", text)
    return sorted(source.slice(span) for span in parse(source).comments)


def test_one_file_under_several_names_is_fixed_once(
    dsguard: Dsguard, config: Path, tmp_path: Path
) -> None:
    (tmp_path / "link.json").symlink_to(config)
    (tmp_path / "link2.json").symlink_to("link.json")
    line = "check --fix --unsafe-fixes link2.json link.json ds.json --target 0.19.8"
    outcome = dsguard(line, tmp_path)
    assert "changed" not in outcome.out + outcome.err
    assert config.read_text(encoding="utf-8") == UNSAFE


@pytest.mark.parametrize("between", [", ", ",\n  "])
def test_many_copies_of_a_key_are_taken_out(between: str, dsguard: Dsguard, tmp_path: Path) -> None:
    """One copy a pass came to no end after 100 of them."""
    path = tmp_path / "ds.json"
    copies = between.join(['"gradient_clipping": 1.0'] * 300)
    path.write_text(f'{{"train_micro_batch_size_per_gpu": 4, {copies}}}')
    outcome = dsguard("check --fix ds.json --target 0.19.8", tmp_path)
    assert "undo each other" not in outcome.out
    assert path.read_text() == '{"train_micro_batch_size_per_gpu": 4, "gradient_clipping": 1.0}'
