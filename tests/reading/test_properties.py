"""The laws: the reader agrees with hjson about every text, and the deviations with json."""

from __future__ import annotations

import json
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from dsguard.model.tree import Array, Node, Object
from dsguard.reading import HjsonSyntaxError, ReadError, load_bytes, parse
from tests.reading.judges import REFUSED, dsguard_says, hjson_says, json_says, read, same
from tests.reading.texts import any_texts, hjson_texts, json_values

law = settings(max_examples=400)


def nodes(node: Node) -> Iterator[Node]:
    yield node
    if isinstance(node, Object):
        for member in node.members:
            yield from nodes(member.node)
    elif isinstance(node, Array):
        for item in node.items:
            yield from nodes(item)


@law
@given(json_values, st.sampled_from([None, 0, 2]), st.booleans())
def test_json_reads_as_hjson_reads_it(value: object, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    assert same(dsguard_says(text), hjson_says(text))


@law
@given(json_values, st.sampled_from([None, 2]))
def test_every_span_of_json_holds_its_own_value(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    expected = hjson_says(text)
    if expected is REFUSED:  # a float of 1e308 and more is beyond hjson
        return
    document = read(text)
    for node in nodes(document.root):
        assert same(read(document.source.slice(node.span)).value, node.value)
        if isinstance(node, Object):
            for member in node.members:
                assert json.loads(document.source.slice(member.key_span)) == member.key


@law
@given(any_texts)
def test_accepts_what_hjson_accepts_and_reads_the_same(text: str) -> None:
    ours, theirs = dsguard_says(text), hjson_says(text)
    assert (ours is REFUSED) == (theirs is REFUSED)
    assert same(ours, theirs)


@law
@given(any_texts)
def test_stops_exactly_where_json_stops(text: str) -> None:
    if hjson_says(text) is REFUSED:
        return
    document, strict = read(text), json_says(text)
    assert any(deviation.stops for deviation in document.deviations) == (strict is REFUSED)
    if not document.deviations:
        assert same(strict, document.value)


@law
@given(hjson_texts)
def test_spans_are_in_order_and_inside_their_parents(text: str) -> None:
    if hjson_says(text) is REFUSED:
        return
    document = read(text)
    for node in nodes(document.root):
        at, end = node.span
        if isinstance(node, Object):
            spans = [s for member in node.members for s in (member.key_span, member.node.span)]
        else:
            spans = [item.span for item in node.items] if isinstance(node, Array) else []
        for span in spans:
            assert at <= span.start <= span.end <= end
            at = span.end
    assert all(document.source.slice(span)[0] in "#/" for span in document.comments)
    assert list(document.deviations) == sorted(document.deviations, key=lambda d: d.span)


@law
@given(st.binary() | any_texts.map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_bytes_never_give_a_traceback(data: bytes) -> None:
    message = "read"
    try:
        parse(load_bytes(data, "<stdin>"))
    except (ReadError, HjsonSyntaxError) as error:
        message = error.message
    assert message
    assert not message.endswith(".")
