"""The linter's rules and the guard's are one catalogue."""

from __future__ import annotations

import pytest

from dsguard import catalogue
from dsguard.rules import all_rules
from dsguard.runtime.rule import all_guard_rules
from tests.conftest import ROOT, Dsguard


def test_codes_and_slugs_are_unique() -> None:
    metas = [rule.meta for rule in catalogue.rules()]
    assert len(metas) == len(all_rules()) + len(all_guard_rules())
    assert len({meta.code for meta in metas}) == len({meta.slug for meta in metas}) == len(metas)
    assert [meta.code for meta in metas] == sorted(meta.code for meta in metas)


@pytest.mark.parametrize("rule", catalogue.rules(), ids=lambda rule: rule.meta.slug)
def test_a_rule_is_found_by_either_name(rule) -> None:
    assert catalogue.find(rule.meta.code) is rule
    assert catalogue.find(rule.meta.code.lower()) is rule
    assert catalogue.find(rule.meta.slug) is rule


def test_a_name_that_nothing_has() -> None:
    assert catalogue.find("DSG099") is None


def test_explain_knows_the_guard(dsguard: Dsguard) -> None:
    outcome = dsguard("explain DSG912")
    found = catalogue.find("accumulated-twice")
    assert found is not None
    assert (outcome.code, outcome.out) == (0, catalogue.page(found))
    assert "ranks-differ" in dsguard('explain "losses of the ranks drift apart"').out


def test_the_guide_names_every_rule_of_the_guard() -> None:
    guide = (ROOT / "docs" / "guard.md").read_text(encoding="utf-8")
    for rule in all_guard_rules():
        assert f"(rules/{rule.meta.slug}.md)" in guide
