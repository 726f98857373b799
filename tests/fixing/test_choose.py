"""Which fixes go together."""

from __future__ import annotations

from random import Random

import pytest

from dsguard.fixing.choose import together
from dsguard.fixing.compare import outside
from dsguard.fixing.passes import MAX_PASSES, FixError, fix_config
from dsguard.model.finding import Consequence, Edit, Finding, Fix, Safety
from dsguard.model.rule import Reporter
from dsguard.model.source import Location, Source, Span
from dsguard.rules import find_rule
from tests.calls import calls


def finding(source: Source, *edits: Edit) -> Finding:
    rule = find_rule("duplicate-key")
    assert rule is not None
    fix = Fix("write it", Safety.SAFE, edits)
    at = Location(source, Span(0, 1), "")
    return Reporter(rule.meta)(at, "x", Consequence.DIFFERS, fix=fix)


def meet(one: Edit, other: Edit) -> bool:
    return one.start <= other.end and other.start <= one.end


def test_no_edit_meets_one_of_another_fix() -> None:
    random, source = Random(1), Source("ds.json", "")
    for _ in range(300):
        offered = []
        for _ in range(random.randint(1, 12)):
            ends = sorted(random.choices(range(40), k=2 * random.randint(1, 2)))
            edits = [Edit(*pair, "") for pair in zip(ends[::2], ends[1::2], strict=True)]
            offered.append(finding(source, *edits))
        expected: list[Finding] = []
        for one in offered:
            assert one.fix is not None
            taken = [edit for chosen in expected if chosen.fix for edit in chosen.fix.edits]
            if not any(meet(new, old) for new in one.fix.edits for old in taken):
                expected.append(one)
        assert together(offered) == expected


def test_each_fix_is_not_compared_with_all_others() -> None:
    source = Source("ds.json", "")
    offered = [finding(source, Edit(10 * at, 10 * at + 1, "")) for at in range(500)]
    assert calls(lambda: together(offered)) < 20 * len(offered)


def test_fixes_that_come_to_no_end_do_not_undo_each_other() -> None:
    def longer(source: Source) -> list[Finding]:
        end = len(source.text) - 1
        return [finding(source, Edit(end, end, " "))]

    with pytest.raises(FixError, match=f"do not come to an end in {MAX_PASSES} passes"):
        fix_config(Source("ds.json", "{}"), longer, unsafe=False)


def test_what_changes_outside_of_what_is_named() -> None:
    changed = ["", "/a", "/a/b", "/ab", "/c/d/e"]
    assert outside(changed, ["/a", "/c/d"]) == ["", "/ab"]
    assert outside(changed, [""]) == []
