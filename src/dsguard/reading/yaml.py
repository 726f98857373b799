"""YAML as ``yaml.safe_load`` of PyYAML reads it, with every key and value at its place.

Accelerate, HF's argument parser, axolotl, ms-swift and TRL all read their files with PyYAML,
so by YAML 1.1: ``no`` is false, ``1e-5`` is text (a float needs its dot), ``010`` is eight. The
tokens come from ruamel.yaml's parser, which keeps positions; what they mean is decided here
(PyYAML's ``yaml/resolver.py`` and ``yaml/constructor.py``). The two agree on everything that
PyYAML writes and on scalars in blocks; in odd places, such as ``[a:]`` and ``&a:b``, tokens
differ. No object is ever constructed: any tag beyond plain strings, numbers, booleans, null,
mappings and sequences is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from dsguard.model.source import Location, Source, Span
from dsguard.model.tree import Array, Document, Member, Node, Object, Scalar
from dsguard.reading.errors import YamlSyntaxError, YamlUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_CHARACTERS = 1 << 20
"""A longer text is refused: it is no file of settings."""

MAX_DEPTH = 100
"""How many mappings and sequences may stand inside one another; PyYAML gives up at some 300."""

MAX_NODES = 100_000
"""How many values a text may stand for, a long one counted as several.

Aliases of aliases multiply without end.
"""

MAX_DIGITS = 1_000
"""A longer number is refused; Python itself turns no more than 4300 digits into text."""

_COUNTED_AS_ONE = 64
"""So many characters of a value are as good as a value of their own."""


def parse_yaml(source: Source) -> Document:
    """Read the one document that a text holds; an empty text is null.

    Repeated keys are kept, and the last one counts, as for PyYAML. Keys that are no text (``1:``,
    ``yes:``) keep the text they are written with. Dates stay text.

    Raises:
        YamlSyntaxError: PyYAML refuses the text, or it goes beyond a limit of this module.
        YamlUnavailableError: ruamel.yaml is not installed.
    """
    try:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import YAMLError
    except ImportError:
        raise YamlUnavailableError from None
    if len(source.text) > MAX_CHARACTERS:
        message = f"it is longer than {MAX_CHARACTERS} characters"
        raise YamlSyntaxError(message, Location(source, Span(0, 0)), "is it a file of settings?")
    parser = YAML(typ="safe", pure=True)
    parser.version = "1.1"
    try:
        return Document(source, _Composer(source).root(parser.parse(source.text)))
    except YAMLError as error:
        raise _syntax_error(source, error) from None
    except (ValueError, OverflowError):
        # Not checked by ruamel.yaml: an escape beyond Unicode, a version of thousands of digits.
        message = "an escape or a version number in it is out of range"
        raise YamlSyntaxError(message, Location(source, Span(0, 0))) from None


def _syntax_error(source: Source, error: Any) -> YamlSyntaxError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    at = mark.index if mark is not None else getattr(error, "position", 0)
    at = max(0, min(at, len(source.text)))
    message = getattr(error, "problem", None) or getattr(error, "reason", None) or "broken YAML"
    tab = source.text[at : at + 1] == "\t"
    help = "YAML is indented with blanks only" if tab else ""
    return YamlSyntaxError(str(message), Location(source, Span(at, at)), help)


class _Anchored(Struct):
    """What an alias stands for; None while it is still being read."""

    node: Node | None
    nodes: int


class _Open(Struct):
    """A mapping or sequence whose end has not been reached."""

    mapping: bool
    start: int
    flow: bool
    anchor: str | None
    nodes_before: int
    items: list[Node] = field(default_factory=list)
    merged: list[Member] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)
    key: Scalar | None = None
    merging: bool = False
    end: int = 0

    def node(self, end: int) -> Node:
        # A block has no closing mark: its parser's end is where the next token starts.
        span = Span(self.start, end if self.flow else max(self.start, self.end))
        if not self.mapping:
            return Array(span, tuple(self.items), [item.value for item in self.items])
        members = (*self.merged, *self.members)
        return Object(span, members, {member.key: member.node.value for member in members})


class _Composer:
    """Makes the tree of the events of a parser, without calling itself."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}
        self._nodes = 0
        self._root: Node | None = None

    def root(self, events: Iterable[Any]) -> Node:
        documents = 0
        for event in events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent":
                documents += 1
                if documents > 1:
                    raise self._error("a second document starts here", event)
            elif kind in ("MappingStartEvent", "SequenceStartEvent"):
                self._start(event, mapping=kind == "MappingStartEvent")
            elif kind in ("MappingEndEvent", "SequenceEndEvent"):
                self._end(event)
            elif kind == "ScalarEvent":
                self._scalar(event)
            elif kind == "AliasEvent":
                self._alias(event)
        return self._root or Scalar(Span(0, len(self._source.text)), None)

    def _error(self, message: str, event: Any, help: str = "") -> YamlSyntaxError:
        limit = len(self._source.text)
        start = min(event.start_mark.index, limit)
        span = Span(start, max(start, min(event.end_mark.index, limit)))
        return YamlSyntaxError(message, Location(self._source, span), help)

    def _count(self, nodes: int, event: Any) -> None:
        self._nodes += nodes
        if self._nodes > MAX_NODES:
            raise self._error(f"it stands for more than {MAX_NODES} values", event)

    def _new_anchor(self, event: Any) -> str | None:
        anchor: str | None = event.anchor
        if anchor is not None and anchor in self._anchors:
            raise self._error(f"two anchors are named {anchor!r}", event)
        if anchor is not None:
            self._anchors[anchor] = _Anchored(None, 0)
        return anchor

    def _start(self, event: Any, *, mapping: bool) -> None:
        expected = "map" if mapping else "seq"
        if event.ctag is not None and str(event.tag) != f"tag:yaml.org,2002:{expected}":
            raise self._tag_error(event)
        if len(self._open) == MAX_DEPTH:
            raise self._error(f"more than {MAX_DEPTH} levels stand inside one another", event)
        if self._awaits_key():
            raise self._error("a mapping or sequence cannot be a key", event)
        self._count(1, event)
        anchor = self._new_anchor(event)
        self._open.append(
            _Open(mapping, event.start_mark.index, bool(event.flow_style), anchor, self._nodes - 1)
        )

    def _end(self, event: Any) -> None:
        done = self._open.pop()
        node = done.node(event.end_mark.index)
        if done.anchor is not None:
            self._anchors[done.anchor] = _Anchored(node, self._nodes - done.nodes_before)
        self._add(node, event)

    def _scalar(self, event: Any) -> None:
        nodes = 1 + len(event.value) // _COUNTED_AS_ONE
        self._count(nodes, event)
        anchor = self._new_anchor(event)
        span = Span(event.start_mark.index, event.end_mark.index)
        node = Scalar(span, self._value(event))
        if anchor is not None:
            self._anchors[anchor] = _Anchored(node, nodes)
        if not self._awaits_key():
            self._add(node, event)
        elif event.value == "<<" and not event.style and event.ctag is None:
            self._open[-1].merging = True
        else:
            text = node.value if isinstance(node.value, str) else event.value
            self._open[-1].key = Scalar(span, text)

    def _alias(self, event: Any) -> None:
        anchored = self._anchors.get(event.anchor)
        if anchored is None:
            raise self._error(f"there is no anchor named {event.anchor!r}", event)
        if anchored.node is None:
            raise self._error(f"an alias stands inside what it names, {event.anchor!r}", event)
        self._count(anchored.nodes, event)
        node, span = anchored.node, Span(event.start_mark.index, event.end_mark.index)
        if not self._awaits_key():
            # The alias is the place of the value; what is inside it stands at the anchor.
            self._add(replace(node, span=span), event)
        elif isinstance(node, Scalar):
            self._open[-1].key = Scalar(span, str(node.value))
        else:
            raise self._error("a mapping or sequence cannot be a key", event)

    def _awaits_key(self) -> bool:
        parent = self._open[-1] if self._open else None
        return parent is not None and parent.mapping and parent.key is None and not parent.merging

    def _add(self, node: Node, event: Any) -> None:
        """Hand a finished node to what it stands in."""
        if not self._open:
            self._root = node
            return
        parent = self._open[-1]
        parent.end = max(parent.end, node.span.end)
        if not parent.mapping:
            parent.items.append(node)
        elif parent.merging:
            parent.merging = False
            parent.merged.extend(self._merged(node, event))
        elif parent.key is not None and isinstance(parent.key.value, str):
            parent.members.append(Member(parent.key.value, parent.key.span, node))
            parent.key = None

    def _merged(self, node: Node, event: Any) -> list[Member]:
        """The members behind ``<<``; of several mappings an earlier one wins, so it comes last."""
        parts = node.items if isinstance(node, Array) else (node,)
        members: list[Member] = []
        for part in reversed(parts):
            if not isinstance(part, Object):
                raise self._error("<< takes a mapping, or a sequence of them", event)
            members.extend(part.members)
        self._count(len(members), event)
        return members

    def _tag_error(self, event: Any) -> YamlSyntaxError:
        return self._error(
            f"the tag {event.tag} is not read", event, "no file of settings needs it"
        )

    def _value(self, event: Any) -> str | int | float | bool | None:
        """The value of a scalar; an explicit tag has to be the one it has anyway."""
        written: str = event.value
        if event.ctag is not None:
            tag = str(event.tag).removeprefix("tag:yaml.org,2002:")
            if tag == "str":
                return written
            if tag not in _PLAIN:
                raise self._tag_error(event)
            value = self._plain(written, event)
            if type(value) not in _PLAIN[tag]:
                raise self._error(f"{written!r} is not what its tag !!{tag} says", event)
            return value
        return written if event.style else self._plain(written, event)

    def _plain(self, written: str, event: Any) -> str | int | float | bool | None:
        try:
            return plain_value(written)
        except ValueError:
            raise self._error("the number is too long or has no digits", event) from None


_PLAIN: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (float,),
    "bool": (bool,),
    "null": (type(None),),
}

_WORDS = ("yes", "no", "true", "false", "on", "off")
_BOOLEAN = re.compile("|".join(form for w in _WORDS for form in (w, w.title(), w.upper())))
_OCTAL = re.compile(r"[-+]?0[0-7_]+")
_INTEGER = re.compile(r"[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)")
_FLOAT = re.compile(r"[-+]?[0-9][0-9_]*\.[0-9_]*([eE][-+][0-9]+)?|\.[0-9][0-9_]*([eE][-+][0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_SIXTIES = re.compile(r"[-+]?([1-9][0-9_]*(:[0-5]?[0-9])+|[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*)")


def plain_value(written: str) -> str | int | float | bool | None:
    """The value of a scalar without quotes, by YAML 1.1 as PyYAML resolves it.

    Raises:
        ValueError: it looks like a number and is none: no digits, or too many of them.
    """
    if written in ("", "~", "null", "Null", "NULL"):
        return None
    if _BOOLEAN.fullmatch(written):
        return written.lower() in ("yes", "true", "on")
    for number, convert in _NUMBERS:
        if number.fullmatch(written):
            if len(written) > MAX_DIGITS:
                raise ValueError(written)
            return convert(written.replace("_", ""))
    return written


def _by_sixties(digits: str) -> int | float:
    """``1:30`` is ninety: hours, minutes and seconds, in whatever unit the last part is."""
    sign = -1 if digits.startswith("-") else 1
    value: int | float = 0
    for part in digits.lstrip("+-").split(":"):
        value = value * 60 + (float(part) if "." in part else int(part))
    return sign * value


_NUMBERS: tuple[tuple[re.Pattern[str], Callable[[str], int | float]], ...] = (
    (_OCTAL, lambda digits: int(digits, 8)),
    (_INTEGER, lambda digits: int(digits, 0)),
    (_FLOAT, float),
    (_SPECIAL, lambda digits: float(digits.replace(".", ""))),
    (_SIXTIES, _by_sixties),
)
"""How numbers are written, and what they are; the first that fits counts."""
