"""Every rule finds what its bad fixtures show, and is silent on its good ones."""

from __future__ import annotations

import pytest

from dsguard.rules import all_rules
from tests.conftest import Dsguard, compare
from tests.contract.rule_cases import RuleCase, job_cases, rule_cases, script_cases

pytestmark = pytest.mark.usefixtures("compared")

CASES = [*rule_cases(), *job_cases(), *script_cases()]
SLUGS = [rule.meta.slug for rule in all_rules() if rule.meta.slug != "internal-error"]


@pytest.mark.parametrize("case", [c for c in CASES if c.bad], ids=lambda c: c.id)
def test_bad_fixture_is_found(case: RuleCase, dsguard: Dsguard) -> None:
    outcome = dsguard(case.line, case.config.parent)
    assert f" {case.slug}: " in outcome.out, "the rule of this folder does not find it"
    compare(case.expected, outcome.out)


@pytest.mark.parametrize("case", [c for c in CASES if not c.bad], ids=lambda c: c.id)
def test_good_fixture_is_clean(case: RuleCase, dsguard: Dsguard) -> None:
    outcome = dsguard(case.line, case.config.parent)
    assert f" {case.slug}: " not in outcome.out
    assert "error[" not in outcome.out
    assert "warning[" not in outcome.out
    assert outcome.code == 0


@pytest.mark.parametrize("slug", SLUGS)
def test_rule_has_two_bad_and_two_good_fixtures(slug: str) -> None:
    bad = [c for c in CASES if c.slug == slug and c.bad]
    good = [c for c in CASES if c.slug == slug and not c.bad]
    assert len(bad) >= 2
    assert len(good) >= 2


@pytest.mark.parametrize("slug", SLUGS)
def test_one_pair_differs_in_a_single_place(slug: str) -> None:
    """A rule is about one thing when a single change turns its finding on or off."""
    bad = [c for c in CASES if c.slug == slug and c.bad]
    good = [c for c in CASES if c.slug == slug and not c.bad]
    assert any(_differ_in_one_place(b, g) for b in bad for g in good)


def _differ_in_one_place(bad: RuleCase, good: RuleCase) -> bool:
    texts = [c.config.read_text(encoding="utf-8").splitlines() for c in (bad, good)]
    words = [c.args.replace(c.config.name, "{config}").split() for c in (bad, good)]
    return _changed(*texts) + _changed(*words) == 1


def _changed(one: list[str], other: list[str]) -> int:
    """How many stretches of two lists differ: 1 for one changed, added or removed stretch."""
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return sum(tag != "equal" for tag, *_ in matcher.get_opcodes())
