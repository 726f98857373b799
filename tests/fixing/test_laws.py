"""The laws of fixing, over configs of any style."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import example, given, settings
from msgspec.structs import replace

from dsguard.checking import Settings, check_source
from dsguard.fixing.compare import changed_pointers, outside
from dsguard.fixing.passes import FixError, fix_config
from dsguard.model.finding import Edit, Finding, Fix, Safety
from dsguard.model.report import Target, TargetOrigin
from dsguard.model.source import Location, Source
from dsguard.reading.hjson import parse
from tests.contract.rule_cases import TARGET
from tests.fixing.written import configs

SETTINGS = Settings(Target(TARGET, TargetOrigin.OPTION))


class Finder:
    """Finds what is wrong with a text, and keeps the pointers that the fixes name."""

    def __init__(self) -> None:
        self.named: set[str] = set()

    def __call__(self, source: Source) -> Iterable[Finding]:
        findings = check_source(source, None, SETTINGS).findings
        for finding in findings:
            if finding.fix is not None:
                pointers = {finding.location.pointer, *finding.fix.pointers}
                self.named |= {pointer for pointer in pointers if pointer is not None}
        return findings


def rules(source: Source) -> Counter[str]:
    return Counter(finding.rule for finding in check_source(source, None, SETTINGS).findings)


@settings(max_examples=60)
@given(configs())
def test_fixing_changes_what_is_named_and_nothing_else(text: str) -> None:
    finder = Finder()
    source = Source("ds_config.json", text)
    before = parse(source)
    fixed = fix_config(source, finder, unsafe=True)
    after = parse(fixed.source)
    assert outside(changed_pointers(before, after), finder.named) == []
    assert sorted(comments(source)) == sorted(comments(fixed.source))
    assert text.startswith("\ufeff") == fixed.source.text.startswith("\ufeff")
    assert text.endswith("\n") == fixed.source.text.endswith("\n")
    if "\r\n" in text:
        assert "\n" not in fixed.source.text.replace("\r\n", "")
    else:
        assert "\r" not in fixed.source.text


TWICE = """{
  "zero_optimization": {"stage": 2, "gradient_clipping": 0.5},
  "gradient_cliping": 1.0
}
"""
"""Two fixes, in two places, that both write gradient_clipping."""

HARD_SPACES = '{"train_batch_size": 8, "optimizer": {"type": \xa0auto,\n "params": {}}}'
"""White space before a value that is none for hjson: behind it, quotes do not quote."""


@settings(max_examples=40)
@given(configs())
@example(TWICE)
@example(HARD_SPACES)
def test_what_was_fixed_is_gone_and_stays_gone(text: str) -> None:
    source = Source("ds_config.json", text)
    fixed = fix_config(source, Finder(), unsafe=True)
    before, after = rules(source), rules(fixed.source)
    offered = {
        finding.rule
        for finding in check_source(fixed.source, None, SETTINGS).findings
        if finding.fix is not None and finding.fix.edits
    }
    assert not offered
    for rule in fixed.rules:
        assert after[rule] < before[rule] or before[rule] == 0
    again = fix_config(fixed.source, Finder(), unsafe=True)
    assert again.count == 0
    assert again.source.text == fixed.source.text


@settings(max_examples=40)
@given(configs())
def test_safe_fixes_alone_never_touch_the_batch(text: str) -> None:
    """What is trained stays: no key of the batch equation appears or changes."""
    source = Source("ds_config.json", text)
    fixed = fix_config(source, Finder(), unsafe=False)
    keys = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    before, after = parse(source).value, parse(fixed.source).value
    assert {key: before.get(key) for key in keys} == {key: after.get(key) for key in keys}


def comments(source: Source) -> list[str]:
    return [source.slice(span) for span in parse(source).comments]


def test_fixes_that_make_one_another_longer_are_refused() -> None:
    source = Source("ds_config.json", '{"train_batch_sise": 8}')
    found = check_source(source, None, SETTINGS).findings
    finding = next(finding for finding in found if finding.fix is not None)

    def find(source: Source) -> list[Finding]:
        end = len(source.text)
        longer = Fix("write it twice as long", Safety.SAFE, (Edit(end, end, " " * end),))
        location = Location(source, finding.location.span, finding.location.pointer)
        return [replace(finding, location=location, fix=longer)]

    with pytest.raises(FixError, match="undo each other"):
        fix_config(source, find, unsafe=False)
