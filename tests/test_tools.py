"""The tools that contributors run."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import ROOT


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_generated_files_are_up_to_date() -> None:
    done = run("tools/generate.py", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_new_rule_may_not_take_a_name_that_is_taken() -> None:
    done = run("tools/new_rule.py", "batch-size-mismatch", "--family", "batch")
    assert done.returncode == 2
    assert "there is a rule batch-size-mismatch" in done.stderr


def test_a_new_rule_starts_with_everything_it_needs(tmp_path, monkeypatch) -> None:
    import importlib.util

    spec = importlib.util.spec_from_file_location("new_rule", ROOT / "tools" / "new_rule.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["new_rule.py", "stale-total", "--family", "batch"])
    assert tool.main() == 0
    written = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert written == [
        "changelog.d/+stale-total.added.md",
        "fixtures/rules/stale-total/bad/todo-1.json",
        "fixtures/rules/stale-total/bad/todo-2.json",
        "fixtures/rules/stale-total/good/todo-1.json",
        "fixtures/rules/stale-total/good/todo-2.json",
        "src/dsguard/rules/batch/__init__.py",
        "src/dsguard/rules/batch/stale_total.md",
        "src/dsguard/rules/batch/stale_total.py",
    ]
    module = tmp_path / "src" / "dsguard" / "rules" / "batch" / "stale_total.py"
    compile(module.read_text(), "stale_total.py", "exec")
