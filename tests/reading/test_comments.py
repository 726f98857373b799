"""Where the comments of a Python file stand."""

from __future__ import annotations

import pytest

from dsguard.model.source import Source
from dsguard.reading.comments import python_comments


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_ends_where_python_ends_it(end: str) -> None:
    text = f"a = 1{end}b = '''{end}# no'''  # one{end}{end}# two\f# still{end}\tc(  # three{end})"
    source = Source("train.py", text)
    assert [source.slice(span) for span in python_comments(source)] == [
        "# one",
        "# two\f# still",
        "# three",
    ]


def test_more_lines_than_line_feeds() -> None:
    source = Source("train.py", "\r\r\r# one\n# two")
    assert [source.slice(span) for span in python_comments(source)] == ["# one", "# two"]
