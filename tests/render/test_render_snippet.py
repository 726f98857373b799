"""Carets stand under what they point at, whatever the line holds."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsguard.model.source import Source, Span
from dsguard.render.snippet import Mark, Row, draw


def picture(text: str, *marks: Mark, width: int = 200, unicode: bool = True) -> list[str]:
    return plain(draw(Source("a.json", text), marks, unicode=unicode, width=width))


def plain(rows: list[Row]) -> list[str]:
    return [f"{row.gutter}|{row.body.plain}" for row in rows]


def primary(start: int, end: int) -> Mark:
    return Mark(Span(start, end), primary=True)


def test_one_mark() -> None:
    assert picture('{"a": 12}', primary(6, 8)) == ['1|{"a": 12}', "|      ^^"]


def test_reasons_have_dashes_and_labels() -> None:
    text = "run --n 4 --steps 8"
    rows = picture(text, Mark(Span(4, 9), "n is 4"), Mark(Span(10, 19), "steps is 8"))
    assert rows == [
        "1|run --n 4 --steps 8",
        "|    ----- --------- steps is 8",
        "|    |",
        "|    n is 4",
    ]


def test_a_label_without_room_goes_below_and_keeps_within_the_width() -> None:
    rows = picture("run --steps 8", Mark(Span(4, 13), "steps is 8 and more"), width=20)
    assert rows == [
        "1|run --steps 8",
        "|    ---------",
        "|    |",
        "| steps is 8 and more",
    ]


def test_three_labels_read_from_right_to_left() -> None:
    marks = [Mark(Span(i, i + 2), f"{i} here") for i in (0, 4, 8)]
    assert picture("aa  bb  cc", *marks) == [
        "1|aa  bb  cc",
        "|--  --  -- 8 here",
        "||   |",
        "||   4 here",
        "|0 here",
    ]


def test_marks_on_one_span_are_one_mark() -> None:
    rows = picture("abc", Mark(Span(0, 1), "x is 1"), Mark(Span(0, 1), "y is 1"), primary(0, 1))
    assert rows == ["1|abc", "|^ x is 1, y is 1"]


def test_the_primary_mark_is_drawn_over_a_reason() -> None:
    assert picture("abcde", Mark(Span(0, 5)), primary(1, 3)) == ["1|abcde", "|-^^--"]


@pytest.mark.parametrize(
    ("text", "span", "rows"),
    [
        ("", (0, 0), ["1|", "|^"]),
        ("ab", (2, 2), ["1|ab", "|  ^"]),
        ("ab\r\ncd", (2, 4), ["1|ab", "|  ^"]),
        ("ab\n", (3, 3), ["2|", "|^"]),
        ("a {\n1\n}", (2, 7), ["1|a {", "|  ^ to line 3"]),
        ("ab", (0, 99), ["1|ab", "|^^"]),
    ],
    ids=["empty text", "end of text", "CRLF", "after last LF", "several lines", "past the end"],
)
def test_edges(text: str, span: tuple[int, int], rows: list[str]) -> None:
    assert picture(text, primary(*span)) == rows


def test_lines_left_out_are_a_gap_and_a_single_one_is_shown() -> None:
    text = "a\nb\nc\nd\ne\nf"
    marks = [primary(0, 1), Mark(Span(4, 5)), Mark(Span(10, 11))]
    assert picture(text, *marks) == ["1|a", "|^", "2|b", "3|c", "|-", "...|", "6|f", "|-"]


def test_words_of_a_command_have_no_line_number() -> None:
    command = Source("<launch command>", "run x", is_file=False)
    assert plain(draw(command, [primary(4, 5)], unicode=True, width=80)) == ["|run x", "|    ^"]
    stdin = Source("<stdin>", "{\nx\n}", is_file=False)
    assert plain(draw(stdin, [primary(2, 3)], unicode=True, width=80)) == ["2|x", "|^"]


def test_tabs_wide_characters_and_escapes_move_the_caret() -> None:
    assert picture("\t模型\x1b: 1", primary(6, 7)) == ["1|    模型\\x1b: 1", "|              ^"]
    assert picture("模: 1", primary(3, 4), unicode=False) == ["1|\\u6a21: 1", "|        ^"]


def test_a_long_line_is_cut_around_the_mark_in_whole_words() -> None:
    text = "word " * 100 + "here" + " word" * 100
    shown, carets = picture(text, primary(500, 504), width=40)
    assert shown == "1|… word word word here word word word …"
    assert carets == "|                 ^^^^"


def test_both_ends_of_a_long_line_are_shown_when_both_are_marked() -> None:
    text = '{"a": 1,' + " " * 300 + '"b": 2}'
    shown, carets = picture(text, primary(6, 7), Mark(Span(313, 314)), width=60)
    assert shown.startswith('1|{"a": 1,')
    assert "…" in shown
    assert shown.endswith('"b": 2}')
    assert [shown[carets.index(sign) + 1] for sign in "^-"] == ["1", "2"]


def test_a_mark_longer_than_the_room_shows_its_head() -> None:
    shown, carets = picture("x" * 5000, primary(100, 4900), width=40)
    assert shown == "1|…" + "x" * 38 + "…"
    assert carets == "| " + "^" * 38


def test_a_huge_line_is_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from dsguard.render import snippet

    seen = 0
    real = snippet.visible

    def counting(text: str, *, unicode: bool) -> str:
        nonlocal seen
        seen += len(text)
        return real(text, unicode=unicode)

    monkeypatch.setattr(snippet, "visible", counting)
    picture("x " * 500_000, primary(500_000, 500_001), width=80)
    assert seen < 10_000


LINES = st.text(alphabet="ab \t模，é\x1b\u202e\xa0", max_size=60)


def cells(text: str) -> list[str]:
    """The cells a text takes on a terminal, by an own account: a wide character takes two."""
    taken: list[str] = []
    for char in text:
        taken.append(char)
        if unicodedata.east_asian_width(char) in "WF":
            taken.append("")
    return taken


def as_shown(text: str) -> str:
    escapes = {"\t": "    ", "\x1b": "\\x1b", "\u202e": "\\u202e", "\xa0": "\\xa0"}
    return "".join(escapes.get(char, char) for char in text)


@settings(max_examples=300)
@given(line=LINES, data=st.data(), width=st.integers(30, 200))
def test_carets_stand_under_the_marked_text(line: str, data: st.DataObject, width: int) -> None:
    start = data.draw(st.integers(0, len(line)))
    end = data.draw(st.integers(start, min(len(line), start + 3)))
    text = f"first\n{line}\nlast"
    rows = draw(
        Source("a", text), [Mark(Span(6 + start, 6 + end), primary=True)], unicode=True, width=width
    )
    (number, body), (_, carets) = rows
    assert number == "2"
    left = len(carets.plain) - len(carets.plain.lstrip())
    assert set(carets.plain[left:]) == {"^"}
    # An empty mark points at the character behind it, at the end of the line at nothing.
    marked = as_shown(line[start : max(end, start + 1)]) or " "
    assert "".join(cells(body.plain.ljust(200))[left : len(carets.plain)]) == marked
    assert body.plain.isprintable()
    assert len(cells(body.plain)) <= width
    if "…" not in body.plain:
        assert left == len(cells(as_shown(line[:start])))
