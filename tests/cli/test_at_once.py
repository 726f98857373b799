"""Several dsguards over one tree, as pre-commit and CI start them: files stay whole."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from tests.conftest import Dsguard

FIXABLE = """{
  // kept
  "train_micro_batch_size_per_gpu": 1,
  "zero_optimization": {"stage": 2, "cpu_offload": true},
  "amp": {"enabled": false}
}
"""
CONFIGS = [f"ds_{number}.json" for number in range(4)]
AT_ONCE = 3


def fill(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for name in CONFIGS:
        (folder / name).write_text(FIXABLE)


def run(line: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "dsguard", *shlex.split(line)],
        cwd=folder,
        env={**os.environ, "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_fixes_baselines_and_reports_of_one_tree(dsguard: Dsguard, tmp_path: Path) -> None:
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    fill(alone)
    fill(shared)
    dsguard("check . --fix --target 0.19.8", alone)
    expected = {path.name: path.read_text() for path in alone.iterdir()}
    assert expected[CONFIGS[0]] != FIXABLE
    line = "check . --fix --target 0.19.8 -o text -o json=../report.json"
    fixing = [run(line, shared) for _ in range(AT_ONCE)]
    texts = [process.communicate(timeout=300)[0] for process in fixing]
    for process, text in zip(fixing, texts, strict=True):
        # Whoever comes second finds the file fixed, or says that it has changed meanwhile.
        assert process.returncode == 0 or (process.returncode, "has changed" in text) == (3, True)
    report = json.loads((tmp_path / "report.json").read_text())
    assert {path.name: path.read_text() for path in shared.iterdir()} == expected
    assert len(report["checks"]) == len(CONFIGS)
    creating = [
        run("baseline create . --baseline kept.json --force --target 0.19.8", shared)
        for _ in range(AT_ONCE)
    ]
    assert [process.wait(300) for process in creating] == [0] * AT_ONCE
    dsguard("baseline create . --baseline kept.json --target 0.19.8", alone)
    assert (shared / "kept.json").read_text() == (alone / "kept.json").read_text()
    assert {path.name for path in shared.iterdir()} == {*expected, "kept.json"}
