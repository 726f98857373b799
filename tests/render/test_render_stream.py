from __future__ import annotations

import io
from typing import Any

import pytest

from dsguard.render.stream import ColorChoice, look_of


class Stream(io.TextIOWrapper):
    """A stream that may claim to be a terminal."""

    def __init__(self, terminal: bool = True, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("choice", "terminal", "environ", "color"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"TERM": "dumb"}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", False, {"FORCE_COLOR": "1"}, True),
        ("auto", False, {"FORCE_COLOR": "0"}, False),
        ("auto", False, {"FORCE_COLOR": ""}, False),
        ("auto", False, {"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        ("auto", True, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ("always", False, {"NO_COLOR": "1", "TERM": "dumb"}, True),
        ("never", True, {"FORCE_COLOR": "1"}, False),
    ],
)
def test_color(choice: str, terminal: bool, environ: dict[str, str], color: bool) -> None:
    assert look_of(Stream(terminal), environ, ColorChoice(choice)).color is color


@pytest.mark.parametrize(
    ("encoding", "unicode"),
    [("utf-8", True), ("UTF8", True), ("utf-8-sig", True), ("ascii", False), ("cp1252", False)],
)
def test_unicode(encoding: str, unicode: bool) -> None:
    assert look_of(Stream(encoding=encoding), {}).unicode is unicode


def test_a_stream_without_an_encoding_gets_ascii() -> None:
    assert look_of(io.StringIO(), {}) == (False, False, None)


@pytest.mark.parametrize(
    ("terminal", "environ", "columns"),
    [
        (True, {"COLUMNS": "72"}, 72),
        (False, {"COLUMNS": "72"}, None),
        (True, {}, None),
        (True, {"COLUMNS": "0"}, None),
        (True, {"COLUMNS": "wide"}, None),
        (True, {"COLUMNS": "9" * 9999}, None),
    ],
)
def test_columns(terminal: bool, environ: dict[str, Any], columns: int | None) -> None:
    assert look_of(Stream(terminal), environ).columns == columns


def test_columns_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    stream = Stream()
    monkeypatch.setattr(stream, "fileno", lambda: 7, raising=False)
    monkeypatch.setattr(os, "get_terminal_size", lambda fd: os.terminal_size((fd * 10, 24)))
    assert look_of(stream, {}).columns == 70
