"""Every rule broken in turn: it becomes a finding of its own, and nothing else changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from msgspec.structs import replace

from dsguard.cli.commands.check import exit_code
from dsguard.facts.case import Case
from dsguard.model.finding import Finding
from dsguard.model.report import Check
from dsguard.model.rule import Rule
from dsguard.pairing import Input
from dsguard.policy import Policy, make_report
from dsguard.rules import CRASH, all_rules
from dsguard.settings.model import FailOn
from tests.conftest import FIXTURES, Dsguard
from tests.contract.rule_cases import RuleCase, inputs_of, job_cases, rule_cases, script_cases

RULES = all_rules()


def broken(rule: Rule[Case]) -> Rule[Case]:
    """The rule, which fails on the way: what it has found until then is not to be trusted.

    It is asked wherever its facts are known, also where it finds nothing.
    """

    def fail(case: object, report: object) -> Iterator[Finding]:
        yield from rule.check(case, report)  # type: ignore[arg-type]
        raise RuntimeError("planted")

    return replace(rule, check=fail, meta=replace(rule.meta, when=()))


@pytest.fixture(scope="module")
def cases() -> dict[str, RuleCase]:
    """One input for every rule: one that it finds something in, where there is one."""
    found = [case for case in (*rule_cases(), *job_cases(), *script_cases()) if case.bad]
    return {case.slug: case for case in reversed(found)}


def checks_of(inputs: Sequence[Input], rules: Sequence[Rule[Case]]) -> list[Check]:
    """The checks that these rules make."""
    return [replace(it, settings=replace(it.settings, rules=rules)).check() for it in inputs]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.meta.slug)
def test_the_rest_is_unchanged(
    rule: Rule[Case],
    cases: dict[str, RuleCase],
    dsguard: Dsguard,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slug = rule.meta.slug
    case = cases.get(slug)
    inputs = inputs_of(case.line, case.config.parent, dsguard, monkeypatch) if case else []
    if not inputs:
        story = FIXTURES / "runs" / "accumulation-ignored"
        inputs = inputs_of("check ds_config.json", story, dsguard, monkeypatch)
    whole = checks_of(inputs, RULES)
    torn = checks_of(inputs, [broken(one) if one is rule else one for one in RULES])
    crashes = [finding for check in torn for finding in check.findings if finding.rule == CRASH]
    skipped = [any(one.rule == slug for one in check.skipped) for check in whole]
    assert crashes or all(skipped), "the rule was broken and nobody noticed"
    assert all(f"the rule {slug} crashed (RuntimeError: planted" in it.message for it in crashes)
    assert {finding.code for finding in crashes} <= {"DSG000"}
    report = make_report(torn, Policy())
    assert (report.crashed, report.complete) == (bool(crashes), not crashes)
    assert exit_code(report, FailOn.NEVER) == (3 if crashes else 0)
    for before, after in zip(whole, torn, strict=True):
        kept = [finding for finding in before.findings if finding.rule != slug]
        assert [finding for finding in after.findings if finding.rule != CRASH] == kept
        assert (after.facts, after.skipped) == (before.facts, before.skipped)
        assert after.judged == before.judged - {slug}
