"""YAML: the values PyYAML gives, each at its place, and nothing that runs or grows."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsguard.model.source import Source
from dsguard.model.tree import Array, Document, Node, Object
from dsguard.reading.yaml import (
    MAX_CHARACTERS,
    YamlSyntaxError,
    YamlUnavailableError,
    parse_yaml,
)

pytest.importorskip("ruamel.yaml", reason="the yaml extra is not installed")

TEXT = """\
# written by hand
yes: no
block: &block
  stage: 3
  lr: 1e-5
  rate: 1.0e-5
  octal: 010
  hex: 0x1F
  big: 1_000
  time: 1:30
  quoted: "no"
  none: ~
  off: -.inf
  text: |
    two
    lines
  folded: >-
    one
    line
list: [1, on, {a: b}, 'c']
merged:
  <<: *block
  stage: 1
again: *block
empty:
"""


def read(text: str) -> Any:
    return parse_yaml(Source("job.yaml", text)).value


def same(ours: Any, theirs: Any) -> bool:
    """Equal in value and type; dates are text here, and keys that are no text are text."""
    if isinstance(theirs, float) and math.isnan(theirs):
        return isinstance(ours, float) and math.isnan(ours)
    if isinstance(theirs, dict):
        return len(ours) == len(theirs) and all(
            key in ours and same(ours[key], value) for key, value in theirs.items()
        )
    if isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return type(ours) is type(theirs) and ours == theirs


def test_values_are_those_of_pyyaml() -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    theirs = yaml.safe_load(TEXT)
    theirs["yes"] = theirs.pop(True)
    theirs["block"]["off"] = theirs["block"].pop(False)
    theirs["merged"]["off"] = theirs["merged"].pop(False)
    assert same(read(TEXT), theirs)


WORDS = (
    "yes", "Yes", "YES", "yEs", "no", "on", "Off", "true", "TRUE", "null", "Null", "~",
    ".inf", "-.INF", ".nan", "=", "<<",
)  # fmt: skip
PLAIN = st.one_of(
    st.from_regex(r"[-+]?[0-9_.:eExXoOabcf]{1,9}", fullmatch=True),
    st.from_regex(
        r"[-+]?(0x|0b|0o|0)?[0-9a-f_]{1,6}(\.[0-9_]*)?([eE][-+]?[0-9]{1,3})?", fullmatch=True
    ),
    st.sampled_from(WORDS),
    st.text("abcdefnoy~.-:#,!'\"|>%@ ", min_size=1, max_size=8),
)
SCALARS = st.one_of(
    PLAIN,
    st.text(max_size=6),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.none(),
)
KEYS = st.from_regex(r"[a-z_]{2,6}", fullmatch=True).filter(
    lambda key: key not in ("no", "yes", "on", "off", "true", "false", "null")
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=12,
)


@settings(max_examples=500)
@given(PLAIN)
def test_scalars_are_read_as_pyyaml_reads_them(text: str) -> None:
    agree(f"a: {text}\n")


@settings(max_examples=300)
@given(VALUES, st.booleans())
def test_what_pyyaml_writes_is_read_back(value: Any, flow: bool) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    agree(yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True))


@settings(max_examples=400)
@given(st.text("ab:-[]{}&*!<#|>'\" \n\t,?%@012.", max_size=30))
def test_any_text_is_read_or_refused_at_a_place(text: str) -> None:
    document, _ = attempt(Source("job.yaml", text))
    if document is not None:
        check_spans(document.root, len(text))


def agree(text: str) -> None:
    """Both read the same, or both refuse; PyYAML may read dates, keys and tags that we do not."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    refused = False
    try:
        theirs = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, TypeError, KeyError, IndexError, AttributeError):
        refused = True
    ours, message = attempt(Source("job.yaml", text))
    if ours is None:
        beyond = ("tag", "cannot be a key", "<<")
        assert refused or any(word in message for word in beyond), f"{text!r}: {message}"
    elif not refused and comparable(theirs):
        assert same(ours.value, theirs), f"{text!r}: {ours.value!r}, not {theirs!r}"


def attempt(source: Source) -> tuple[Document | None, str]:
    """The document, or None with the message; the place of an error is a real one."""
    try:
        return parse_yaml(source), ""
    except YamlSyntaxError as error:
        caught = error
    start, end = caught.location.span
    assert 0 <= start <= end <= len(source.text)
    assert caught.message
    assert not caught.message.endswith(".")
    return None, caught.message


def comparable(value: Any) -> bool:
    """Whether a value holds no dates, and text keys only."""
    if isinstance(value, dict):
        return all(isinstance(k, str) and comparable(v) for k, v in value.items())
    if isinstance(value, list):
        return all(comparable(item) for item in value)
    return value is None or isinstance(value, str | int | float | bool)


@settings(max_examples=300)
@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    source = Source("job.yaml", data.decode("utf-8", errors="replace"))
    document, _ = attempt(source)
    if document is not None:
        check_spans(document.root, len(source.text))


def check_spans(node: Node, length: int) -> None:
    assert 0 <= node.span.start <= node.span.end <= length
    if isinstance(node, Array):
        for item in node.items:
            check_spans(item, length)
    elif isinstance(node, Object):
        assert node.value == {member.key: member.node.value for member in node.members}
        for member in node.members:
            assert 0 <= member.key_span.start <= member.key_span.end <= length
            check_spans(member.node, length)


@pytest.mark.parametrize(
    ("pointer", "part", "text"),
    [
        ("/yes", "member", "yes: no"),
        ("/block/stage", "key", "stage"),
        ("/block/quoted", "value", '"no"'),
        ("/list", "value", "[1, on, {a: b}, 'c']"),
        ("/list/2/a", "member", "a: b"),
        ("/merged/stage", "member", "stage: 1"),
        ("/merged/lr", "member", "lr: 1e-5"),
        ("/again", "value", "*block"),
        ("/merged", "member", "merged:\n  <<: *block\n  stage: 1"),
    ],
)
def test_values_stand_at_their_places(pointer: str, part: Any, text: str) -> None:
    place = parse_yaml(Source("job.yaml", TEXT)).locate(pointer, part)
    assert place.source.slice(place.span) == text


def test_a_byte_order_mark_shifts_nothing() -> None:
    place = parse_yaml(Source("job.yaml", "\ufeffa: b\n")).locate("/a")
    assert place.source.slice(place.span) == "b"


def test_repeated_keys_are_kept_and_the_last_one_counts() -> None:
    root = parse_yaml(Source("job.yaml", "a: 1\nb: 2\na: 3\n")).root
    assert isinstance(root, Object)
    assert [member.key for member in root.members] == ["a", "b", "a"]
    assert root.value == {"a": 3, "b": 2}


def test_of_merged_mappings_an_earlier_one_wins_and_own_keys_win_over_all() -> None:
    text = "one: &one {key: 1, own: 1}\ntwo: &two {key: 2}\nc: {own: 3, <<: [*one, *two]}\n"
    assert read(text)["c"] == {"key": 1, "own": 3}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [1", "expected ',' or ']'"),
        ("a: b: c", "mapping values are not allowed here"),
        ("a: &x [*x]", "stands inside what it names"),
        ("a: *y", "no anchor named 'y'"),
        ("a: &x 1\nb: &x 2", "two anchors"),
        ("a: 1\n---\nb: 2", "a second document"),
        ("? [a]\n: b", "cannot be a key"),
        ("a: !!binary aGk=", "tag"),
        ("a: !Ref x", "tag"),
        ("a: !!int x", "not what its tag"),
        ("a: " + "9" * 5000, "too long"),
        ("a: 0x" + "f" * 5000, "too long"),
        ("a: 1" + ":1" * 5000, "too long"),
        ("[" * 5000, "levels"),
        ("a:\n\t- b", "cannot start any token"),
        ("a: \x07", "special characters"),
        ('a: "\\UFFFFFFFF"', "out of range"),
        ("%YAML " + "1" * 5000 + ".1\n---\na: 1", "out of range"),
        ("#" * (MAX_CHARACTERS + 1), "longer than"),
    ],
)
def test_what_is_refused(text: str, says: str) -> None:
    with pytest.raises(YamlSyntaxError) as error:
        read(text)
    assert says in error.value.message


@pytest.mark.parametrize(
    "text",
    [
        "a0: &a0 [x, x]\n" + "".join(f"a{i}: &a{i} [{f'*a{i - 1},' * 9}]\n" for i in range(1, 9)),
        "a0: &a0 {x: 1}\n"
        + "".join(f"a{i}: &a{i} {{p: *a{i - 1}, q: *a{i - 1}}}\n" for i in range(1, 40)),
        "a: &a " + "x" * 100_000 + "\nb: [" + "*a," * 1000 + "]\n",
    ],
)
def test_aliases_do_not_multiply_without_end(text: str) -> None:
    with pytest.raises(YamlSyntaxError) as error:
        read(text)
    assert "stands for more than" in error.value.message


@pytest.mark.parametrize(
    "tag",
    [
        "!!python/object/apply:os.system",
        "!!python/object/new:subprocess.Popen",
        "!!python/name:os.system",
        "!<tag:yaml.org,2002:python/object/apply:os.mkdir>",
    ],
)
def test_no_tag_runs_anything(tmp_path: Path, tag: str) -> None:
    planted = tmp_path / "planted"
    for text in (f"a: {tag} ['touch {planted}']", f"{tag} ['{planted}']"):
        with pytest.raises(YamlSyntaxError):
            read(text)
    assert not planted.exists()


@pytest.mark.parametrize(("text", "value"), [("", None), ("# nothing\n", None), ("a", "a")])
def test_texts_without_a_mapping(text: str, value: object) -> None:
    assert read(text) == value


def test_without_the_extra_the_reader_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "ruamel.yaml", None)
    with pytest.raises(YamlUnavailableError, match=r"dsguard\[yaml\]"):
        read("a: 1")
