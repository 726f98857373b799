"""Texts by the table: what HJSON makes of them, where things stand, what an error says."""

from __future__ import annotations

import json
import sys
from threading import Thread

import pytest

from dsguard.model.source import Position
from dsguard.model.tree import Array, DeviationKind, Object, Scalar
from dsguard.reading import HjsonSyntaxError
from dsguard.reading.hjson import MAX_DEPTH
from tests.reading.judges import REFUSED, hjson_says, read, same

VALUES = [
    ("", {}),
    (" \n\t", {}),
    ("# nothing\n", {}),
    ('\ufeff{"a": 1}', {"a": 1}),
    ('\xef\xbb\xbf{"a": 1}', {"a": 1}),
    ('{"a": 1 // c\n # d\n, /* e\n */ "b": 2}', {"a": 1, "b": 2}),
    ('{"a": 1,}', {"a": 1}),
    ("[1, 2,]", [1, 2]),
    ('{"a": 1\n"b": 2}', {"a": 1, "b": 2}),
    ('["a" "b"]', ["a", "b"]),
    ("{a: 1, b : 2, c\n: 3}", {"a": 1, "b": 2, "c": 3}),
    ("{a//b: 1}", {"a//b": 1}),
    ("{a\xa0 : 1, b\xa0: 2}", {"a": 1, "b\xa0": 2}),
    ("{'a': 'it is \"x\"'}", {"a": 'it is "x"'}),
    ("a: 1\nb: 2", {"a": 1, "b": 2}),
    ('"a": 1,', {"a": 1}),
    ("a: '''x\ny'''\n", {"a": "x\ny"}),
    ("{\n  a: '''\n        x\n      y\n  '''\n}", {"a": "   x\n y"}),
    ("{\r\n  a: '''\r\n        x\r\n      y\r\n  '''\r\n}", {"a": "   x\n y"}),
    ("{\n  a:\n  '''\r    x\r  y'''\n}", {"a": "  x\ny"}),
    ("{a: auto\n}", {"a": "auto"}),
    ("{a: auto,\n}", {"a": "auto,"}),
    ("{a: auto // c\n}", {"a": "auto // c"}),
    ("{a: auto /* c */\n}", {"a": "auto /* c */"}),
    *(
        (f"{{a: {word}\n}}", {"a": word})
        for word in ("True,", "None,", "TRUE,", "NaN,", ".5,", "+1,", "01,", "0x10,", "1_000,")
    ),
    ("{a: 5*2,\n}", {"a": "5*2,"}),
    ("{a: ${X},\n}", {"a": "${X},"}),
    ("{a: NaN\n}", {"a": "NaN"}),
    ("{a: \xa0x\xa0\n}", {"a": "x"}),
    ("{a: true\xa0,b: null\x0b}", {"a": True, "b": None}),
    ("[5e8, 2.0, 1e-5, 1e10]", [500000000, 2, 1e-05, 1e10]),
    ("[-0, -0.0, 9999999999.0, 1.5e3]", [0, 0, 9999999999, 1500]),
    ("[1\u0663]", [13]),
    ("[true, false, null]", [True, False, None]),
    ('["\\u0041\\ud83d\\ude00\\ud800\\u 1f "]', ["A😀\ud800\x1f"]),
    ('["\\u00e\r\n"]', ["\x0e"]),
    ('["\\"\\\\\\/\\b\\f\\n\\r\\t\\\'"]', ["\"\\/\b\f\n\r\t'"]),
    ('{"a": 1, "a": 2}', {"a": 2}),
    ("true", True),
    (' "x" # c', "x"),
    ("free text", "free text"),
    ("'''x'''\n", "x"),
    ("[]", []),
]


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_value(text: str, value: object) -> None:
    assert same(read(text).value, value)
    assert same(hjson_says(text), value), "the table does not say what hjson says"


REFUSALS = [
    # text, line and column of the place to repair, words of the message
    ("\ufeff", (1, 1), "byte order mark and no value"),
    ('{"a": 1', (1, 1), "`{` is never closed"),
    ('{"a": [1, 2', (1, 7), "`[` is never closed"),
    ('{"a": True, "b": 1}', (1, 1), "`{` is never closed"),
    ("{a: 1]", (1, 6), "`]` does not close the `{` of line 1, column 1"),
    ("[1}", (1, 3), "`}` does not close the `[` of line 1, column 1"),
    ('{"a": 1}\n{"b": 2}', (2, 1), "text follows after the end"),
    ("{}]", (1, 3), "text follows after the end"),
    ('{"a" 1}', (1, 2), "not followed by a `:`"),
    ("{a, b}", (1, 2), "not followed by a `:`"),
    ("{a b: 1}", (1, 2), "white space"),
    ("{: 1}", (1, 2), "no key before the `:`"),
    ("{, a: 1}", (1, 2), "`,` stands where a key was expected"),
    ("{a: 1,, b: 1}", (1, 7), "`,` stands where a key was expected"),
    ("{a: }", (1, 5), "`}` stands where a value was expected"),
    ("{a:", (1, 2), "the key has no value"),
    ("[1,,2]", (1, 4), "`,` stands where a value was expected"),
    ("a: 1\n}", (2, 1), "`}` stands where a key was expected"),
    ("one\ntwo", (1, 1), "white space"),
    ('{"a": "x\n"}', (1, 7), 'no closing "'),
    ("{'a", (1, 2), "no closing '"),
    ('{"a": "x\ty"}', (1, 9), "control character '\\t'"),
    ('{"a": "\\q"}', (1, 8), "unknown escape \\q"),
    ('{"a": "\\', (1, 7), "no closing"),
    ('["\\u12"]', (1, 3), "four hexadecimal digits"),
    ('["\\u0x12"]', (1, 3), "four hexadecimal digits"),
    ('["\\u-001"]', (1, 3), "negative number"),
    ("{a: '''x\n}", (1, 5), "no closing '''"),
    ("\na: '''  ", (2, 4), "no closing '''"),
    ("{a: '''x'''}", (1, 5), "without a line feed"),
    ("{ /* a", (1, 3), "no closing */"),
    ("a: 1 /*", (1, 6), "no closing */"),
    ("[1e400]", (1, 2), "too large"),
    (f"[{'9' * 5000}]", (1, 2), "too large"),
]


@pytest.mark.parametrize(("text", "position", "words"), REFUSALS)
def test_refusal(text: str, position: Position, words: str) -> None:
    assert hjson_says(text) is REFUSED, "hjson accepts this"
    with pytest.raises(HjsonSyntaxError) as caught:
        read(text)
    assert words in caught.value.message
    source, span, _ = caught.value.location
    assert source.position(span.start) == position
    assert span.end <= len(text)


def test_a_bare_string_that_takes_a_bracket_is_named_in_the_help() -> None:
    with pytest.raises(HjsonSyntaxError) as caught:
        read('{\n "a": 1,\n "b": True}\n')
    assert "line 3" in caught.value.help


def test_spans_count_code_points_and_cover_keys_with_their_quotes() -> None:
    text = '{"é😀": [1, "x"], bare : word  \n}'
    document = read(text)
    assert isinstance(document.root, Object)
    first, second = document.root.members
    assert document.source.slice(first.key_span) == '"é😀"'
    assert isinstance(first.node, Array)
    assert [document.source.slice(item.span) for item in first.node.items] == ["1", '"x"']
    assert document.source.slice(first.node.span) == '[1, "x"]'
    assert document.source.slice(second.span) == "bare : word"
    assert isinstance(second.node, Scalar)
    assert second.node.bare
    assert document.root.span == (0, len(text))


def test_comments_have_spans() -> None:
    text = "# one\r\n{ // two\n /* three\n */ a: x # not one\n}\n# four"
    document = read(text)
    assert [document.source.slice(span) for span in document.comments] == [
        "# one",
        "// two",
        "/* three\n */",
        "# four",
    ]


def test_a_root_without_braces_ends_with_its_last_value() -> None:
    text = "\n a: 1\n b: [2] , # c\n"
    document = read(text)
    assert document.source.slice(document.root.span) == "a: 1\n b: [2]"


def test_what_a_failed_try_without_braces_met_is_forgotten() -> None:
    document = read("# one\na: 1.0 /* two */ }")
    assert document.value == "a: 1.0 /* two */ }"
    assert [document.source.slice(span) for span in document.comments] == ["# one"]
    kinds = [deviation.kind for deviation in document.deviations]
    assert kinds == [DeviationKind.COMMENT, DeviationKind.BARE_STRING]


def test_duplicates_are_kept() -> None:
    root = read('{"a": 1, "b": 2, "a": 3}').root
    assert isinstance(root, Object)
    assert root.value == {"a": 3, "b": 2}
    assert [(first.node.value, again.node.value) for first, again in root.duplicates()] == [(1, 3)]


@pytest.mark.parametrize(("opener", "closer"), [("[", "]"), ('{"a":', "}"), ("{a:[", "]}")])
def test_nesting_of_10000_is_refused_with_a_clear_message(opener: str, closer: str) -> None:
    for text in (opener * 10_000 + "1" + closer * 10_000, opener * 10_000):
        with pytest.raises(HjsonSyntaxError) as caught:
            read(text)
        assert "RecursionError" in caught.value.message


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def test_the_deepest_nesting_is_read_without_python_calls() -> None:
    document = read(nested(MAX_DEPTH))
    assert document.root.span == (0, 2 * MAX_DEPTH)
    with pytest.raises(HjsonSyntaxError):
        read(nested(MAX_DEPTH + 1))


def test_the_depth_limit_is_that_of_hjson() -> None:
    """Asked in a thread, whose calls start from nothing, as in a script."""
    accepted: dict[int, bool] = {}

    def ask() -> None:
        for depth in (MAX_DEPTH - 10, MAX_DEPTH + 1):
            accepted[depth] = hjson_says(nested(depth)) is not REFUSED

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    try:
        thread = Thread(target=ask)
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(limit)
    assert accepted == {MAX_DEPTH - 10: True, MAX_DEPTH + 1: False}


BIG = {
    "json": json.dumps([{"name": f"layer {i}", "lr": i / 7, "on": True} for i in range(20_000)]),
    "escapes": '["' + "\\n" * 500_000 + '"]',
    "one long string": '["' + "x" * 1_000_000 + '"]',
    "slashes": "a: " + "/ " * 500_000,
    "digits": "[" + "1" * 1_000_000 + "x\n]",
    "white space after a number": "[1" + " " * 1_000_000 + "x\n]",
    "multi-line strings on one line": "[" + "'''x'''" * 100_000 + "\n]",
    "one multi-line string": "a: '''" + "\n x" * 300_000 + "'''\n",
    "comments": "#\n" * 200_000,
    "bare strings": "[" + "a\n" * 100_000 + "]",
}


@pytest.mark.parametrize("text", BIG.values(), ids=BIG.keys())
def test_a_million_characters_are_read(text: str) -> None:
    """With work that grows faster than the text these would not come to an end."""
    assert read(text).source.text == text


def test_a_million_quotes_are_refused() -> None:
    with pytest.raises(HjsonSyntaxError):
        read("'" * 1_000_000)
