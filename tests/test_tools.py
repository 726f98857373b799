"""The tools that contributors run."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from msgspec.structs import replace

import rule_modules
from dsguard.model.rule import Rule
from dsguard.rules import all_rules, rule_of
from dsguard.rules.conditions import Condition
from tests.conftest import ROOT


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_generated_files_are_up_to_date() -> None:
    done = run("tools/generate.py", "--check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_index_of_the_rules_is_what_their_modules_say() -> None:
    """What stands in the index and not in a module would be asked for, and the other way round."""
    index = (ROOT / rule_modules.INDEX).read_text(encoding="utf-8")
    assert index == rule_modules.index_of_rules(), "run: python tools/generate.py"


def test_the_index_holds_what_the_modules_hold() -> None:
    """Members of enums stand in the index by their values, which have to compare equal."""
    for indexed, rule in zip(all_rules(), rule_modules.linter_rules(), strict=True):
        assert indexed.module == rule.module
        assert replace(indexed.meta, when=()) == replace(rule.meta, when=())
        assert [same(one) for one in indexed.meta.when] == [same(one) for one in rule.meta.when]


def same(condition: Any) -> Any:
    """A condition as something that compares."""
    if isinstance(condition, Condition):
        return (type(condition), tuple(same(name) for name in condition.names))
    return condition


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"code": "DSG2"}, "three digits"),
        ({"code": "DSG899"}, "the family script"),
        ({"slug": "Two_words"}, "kebab-case"),
        ({"code": "DSG202"}, "share a code"),
    ],
)
def test_a_rule_under_a_wrong_name_is_not_indexed(
    changed: dict[str, str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed_rule(module: str) -> Rule[Any]:
        rule = rule_of(module)
        wrong = replace(rule, meta=replace(rule.meta, **changed))
        return wrong if rule.meta.code == "DSG201" else rule

    monkeypatch.setattr(rule_modules, "rule_of", changed_rule)
    with pytest.raises(RuntimeError, match=why):
        rule_modules.linter_rules.__wrapped__()


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
