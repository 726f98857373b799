"""What a strict JSON reader makes of a text that HJSON accepts."""

from __future__ import annotations

import pytest

from dsguard.model.tree import DeviationKind as Kind
from tests.reading.judges import REFUSED, json_says, read

STOPS = [
    # text, and each deviation with the text that it covers
    ('\ufeff{"a": 1}', [(Kind.BYTE_ORDER_MARK, "\ufeff")]),
    ("", [(Kind.EMPTY, "")]),
    ("# c", [(Kind.EMPTY, ""), (Kind.COMMENT, "# c")]),
    ('{"a": 1 // c\n}', [(Kind.COMMENT, "// c")]),
    ('{"a": 1,}', [(Kind.TRAILING_COMMA, ",")]),
    ('{"a": 1\n"b": 2}', [(Kind.MISSING_COMMA, "")]),
    ('{a: 1, "b": 2}', [(Kind.UNQUOTED_KEY, "a")]),
    ("{'a': 'b'}", [(Kind.SINGLE_QUOTES, "'a'"), (Kind.SINGLE_QUOTES, "'b'")]),
    ('"a": 1', [(Kind.MISSING_BRACES, '"a": 1')]),
    ("{\n\"a\": '''x'''\n}", [(Kind.MULTILINE_STRING, "'''x'''")]),
    ('{"a": auto\n}', [(Kind.BARE_STRING, "auto")]),
    ('{"a": True,\n"b": 1}', [(Kind.BARE_STRING, "True,")]),
    ('{"a": True,\n}', [(Kind.BARE_STRING, "True,"), (Kind.TRAILING_COMMA, ",")]),
    ('{"a": True,\n,"b": 1}', [(Kind.BARE_STRING, "True,"), (Kind.OTHER, ",")]),
    ('["\\\'"]', [(Kind.ESCAPE, "\\'")]),
    ('["\\u 1f "]', [(Kind.ESCAPE, "\\u 1f ")]),
    ("[1\u0663]", [(Kind.NUMBER, "1\u0663")]),
    ("[true\x0b]", [(Kind.OTHER, "\x0b")]),
    ("[NaN x\n]", [(Kind.BARE_STRING, "NaN x")]),
    (
        "a: 1, # c\nb: auto\n",
        [
            (Kind.MISSING_BRACES, "a: 1, # c\nb: auto"),
            (Kind.UNQUOTED_KEY, "a"),
            (Kind.COMMENT, "# c"),
            (Kind.UNQUOTED_KEY, "b"),
            (Kind.BARE_STRING, "auto"),
        ],
    ),
]


@pytest.mark.parametrize(("text", "expected"), STOPS)
def test_every_place_to_repair_is_found(text: str, expected: list[tuple[Kind, str]]) -> None:
    assert json_says(text) is REFUSED, "json accepts this"
    document = read(text)
    assert all(deviation.stops for deviation in document.deviations)
    found = [(d.kind, document.source.slice(d.span)) for d in document.deviations]
    assert sorted(found) == sorted(expected)


def test_the_place_of_a_missing_comma_is_right_behind_the_value() -> None:
    text = '{"a": 1  \n "b": 2}'
    (deviation,) = read(text).deviations
    assert deviation.span == (text.index("1") + 1,) * 2


DIFFERS = [
    ('{"a": 5e8}', ["5e8"]),
    ('{"a": 2.0}', ["2.0"]),
    ('{"a": -0.0}', ["-0.0"]),
    ('{"a": NaN\n}', ["NaN"]),
    ('{"a": NaN,\n"b": 1}', ["NaN,"]),
    ("[-Infinity\n]", ["-Infinity"]),
    # json sees members where HJSON sees one long string
    ('{"a": NaN, "b": 2\n}', ['NaN, "b": 2']),
    ('{"x": {"a": NaN}, "c": {"d": 1\n}}', ['NaN}, "c": {"d": 1']),
    ("[NaN, 1,\n2]", ["NaN, 1,"]),
]


@pytest.mark.parametrize(("text", "expected"), DIFFERS)
def test_other_values_do_not_stop(text: str, expected: list[str]) -> None:
    assert json_says(text) is not REFUSED, "json refuses this"
    document = read(text)
    assert [document.source.slice(d.span) for d in document.deviations] == expected
    assert not any(deviation.stops for deviation in document.deviations)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": NaN}\n}',
        "[NaN, 1, 2]\n]",
        "[NaN, x\n]",
        "[NaN, " + "9" * 5000 + "\n]",
        "[NaN, " + "[" * 100_000 + "\n]",
    ],
)
def test_json_may_stop_inside_a_string_that_starts_with_nan(text: str) -> None:
    assert json_says(text) is REFUSED, "json accepts this"
    assert any(deviation.stops for deviation in read(text).deviations)


@pytest.mark.parametrize(
    "text", ['{"a": [1, -0, 1.5, 1e-5, 1e10, "\\u00e9", true, null]}', "[]", ' "x" ', "1"]
)
def test_strict_json_has_no_deviations(text: str) -> None:
    assert read(text).deviations == ()


def test_the_detail_names_both_values() -> None:
    (deviation,) = read('{"a": 5e8}').deviations
    assert "500000000" in deviation.detail
    assert "500000000.0" in deviation.detail
