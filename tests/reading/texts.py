"""Hypothesis strategies for texts that are HJSON, nearly HJSON, or neither."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

json_values: SearchStrategy[object] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)

PIECES = (
    *("{", "}", "[", "]", ":", ",", "\n", "\r", "\r\n", " ", "\t", "{}", "[]", '""', "\n\n"),
    *('"a"', '"b"', "'c'", "key", "b:", '"k":', "auto", "x y", "é", "😀", "#", "/", "-", "."),
    *("1", "2.0", "5e8", "-0", "-0.0", ".5", "+1", "01", "1e10", "1e400", "0x10", "1_0", "0.1"),
    *("true", "false", "null", "tru", "True,", "None", "NaN", "NaN,", "Infinity", "-Infinity"),
    *("# c", "// d", "/* e */", "/*", "*/", "'''", "'''\n  x\n y'''", '"', "'", "\\"),
    *("\\u0041", "\\ud83d\\ude00", "\\ud800", "\\u 1f ", "\\u-001", "\\n", "\\'", "\\u00e\r\n"),
    *("\x0b", "\xa0", "\x85", "\u2028", "\x00", "\ufeff", "\xef\xbb\xbf", "\u0663", "1\u0663"),
)
"""Words that hjson treats in a way of its own, and the characters that it looks for."""

_blank = st.sampled_from(["", "", " ", "\n", "\n  ", " # c\n", " // c\n", "/*x*/", "\r\n", "\r"])
_separator = st.sampled_from([",", ", ", ",\n", "\n", " "])
_scalars = st.sampled_from(
    [
        *("1", '"x"', "'y'", "2.0", "5e8", "true", "null", "1e-5", "1e10", "-0.0", "12 ", "1.\n"),
        *("auto\n", "auto,\n", "True,\n", "007\n", "x y z\n", "1\u0663", "null\xa0", "true\x0b"),
        *("NaN\n", "NaN,\n", "NaN", "-Infinity\n", "NaN, 1\n", "NaN, [1]\n", 'NaN}, "c": {\n'),
        *('NaN,"b":2\n', "NaN], [\n", '"\\u00e9"', '"\\u 12 "', '"\\\'"', '"q\\"r"'),
        *("'''a'''", "'''\n    a\n   b\n   '''", "'''\r  a\r\n b'''"),
    ]
)
_keys = st.sampled_from(['"a"', '"b"', "c", "'d'", "k1 ", '""', '"k\\n"', "x/y", "z#"])


@st.composite
def _containers(draw: DrawFn, inner: SearchStrategy[str]) -> str:
    items = draw(st.lists(inner, max_size=4))
    opener, closer = draw(st.sampled_from(["{}", "[]"]))
    if opener == "{":
        items = [f"{draw(_keys)}{draw(_blank)}:{draw(_blank)}{item}" for item in items]
    body = draw(_separator).join(items) + draw(st.sampled_from(["", ",", "\n"]))
    return f"{opener}{draw(_blank)}{body if items else ''}{draw(_blank)}{closer}"


_values = st.recursive(_scalars, _containers, max_leaves=10)


@st.composite
def _without_braces(draw: DrawFn) -> str:
    return draw(_separator).join(
        f"{draw(_keys)}:{value}" for value in draw(st.lists(_values, min_size=1, max_size=3))
    )


hjson_texts: SearchStrategy[str] = _values | _without_braces()
"""Texts by the grammar; hjson takes most of them."""


@st.composite
def _mutated(draw: DrawFn) -> str:
    text = draw(hjson_texts)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text)))
        end = start + draw(st.sampled_from([0, 0, 1, 1, 3]))
        text = text[:start] + draw(st.sampled_from(("", *PIECES))) + text[end:]
    return text


any_texts: SearchStrategy[str] = st.one_of(
    hjson_texts, _mutated(), st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
)
