"""Where a key of a TOML text stands, told by the reader itself."""

from __future__ import annotations

import pytest

from dsguard.model.source import Source
from dsguard.settings.places import TomlPath, place_of

TEXT = '''# select = "in a comment"
title = """
select = ["in a string"]
"""
select = [
  "all",
  "batch", # the second
]
[tool.other]
select = 1
[severity]
"unknown-key" = "eror"
[[job]]
name = "a"
[[job]]
name = "b"
launch = { line = "x", nested = 1 }
'''


@pytest.mark.parametrize(
    ("path", "line", "text"),
    [
        (("select",), 5, "select"),
        (("select", 1), 7, '"batch"'),
        (("tool", "other", "select"), 10, "select"),
        (("severity", "unknown-key"), 12, "unknown-key"),
        (("job", 1), 15, "[[job]]"),
        (("job", 1, "name"), 16, "name"),
        (("job", 1, "launch", "nested"), 17, "nested"),
        (("nowhere",), 1, "#"),
        ((), 1, "#"),
    ],
)
def test_places(path: TomlPath, line: int, text: str) -> None:
    for end in ("\n", "\r\n"):
        source = Source("dsguard.toml", TEXT.replace("\n", end))
        span = place_of(source.text, path)
        assert (source.position(span.start).line, source.slice(span)[: len(text)]) == (line, text)


def test_a_text_without_keys() -> None:
    assert place_of("", ("select",)) == (0, 0)
