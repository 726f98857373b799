"""What hjson and json say of a text, and when two values are the same."""

from __future__ import annotations

import io
import json
from typing import Any

import hjson

from dsguard.model.source import Source
from dsguard.model.tree import Document
from dsguard.reading import HjsonSyntaxError, parse

REFUSED = object()


def as_opened(text: str) -> io.StringIO:
    """The text as ``open(path)`` gives it: with universal newlines."""
    return io.StringIO(text.replace("\r\n", "\n").replace("\r", "\n"))


def hjson_says(text: str) -> Any:
    """What ``hjson.load`` reads, or REFUSED. Of duplicate keys it keeps the last, as we do."""
    try:
        return hjson.load(as_opened(text), object_pairs_hook=dict)
    except Exception:  # hjson fails by accident in many ways: each of them is a refusal
        return REFUSED


def json_says(text: str) -> Any:
    """What ``json.load`` reads, or REFUSED."""
    try:
        return json.load(as_opened(text))
    except (ValueError, RecursionError):
        return REFUSED


def read(text: str) -> Document:
    return parse(Source("ds_config.json", text))


def dsguard_says(text: str) -> Any:
    try:
        return read(text).value
    except HjsonSyntaxError:
        return REFUSED


def same(left: Any, right: Any) -> bool:
    """Equal with equal types: 2 is not 2.0, 1 is not True, -0.0 is not 0.0, NaN is NaN."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float):
        return repr(left) == repr(right)
    return bool(left == right)
