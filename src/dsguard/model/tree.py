"""A document read with every key and value at its place.

The readers build this tree; everything after them asks it for values by JSON pointer
(RFC 6901) and for the span of the key, the value or the whole member.
"""

from __future__ import annotations

from enum import Enum
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, field

from dsguard.model.digits import whole_number
from dsguard.model.source import Location, Source, Span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

Part: TypeAlias = Literal["key", "value", "member"]


class Scalar(Struct, frozen=True):
    """A string, number, boolean or null.

    ``value`` is the Python value. ``bare`` marks an HJSON string written without quotes,
    which runs to the end of its line.
    """

    span: Span
    value: str | int | float | bool | None
    bare: bool = False


class Array(Struct, frozen=True):
    """A list of nodes; ``value`` is the plain Python list."""

    span: Span
    items: tuple[Node, ...]
    value: list[Any]


class Member(Struct, frozen=True):
    """One ``key: value`` of an object; ``span`` runs from the key to the end of the value.

    ``perhaps`` says that a program only writes it under a condition.
    """

    key: str
    key_span: Span
    node: Node
    perhaps: bool = False

    @property
    def span(self) -> Span:
        """From the start of the key to the end of the value."""
        return Span(self.key_span.start, self.node.span.end)


class Object(Struct, frozen=True, dict=True):
    """An object with all its members in the order written, duplicates included.

    ``value`` is the plain dict; of a duplicated key it holds the last value. ``open`` says that a
    program may write more keys into it, or below it, than are known.
    """

    span: Span
    members: tuple[Member, ...]
    value: dict[str, Any]
    open: bool = False

    def member(self, key: str) -> Member | None:
        """The member that counts for a key: the last one written."""
        return self._by_key.get(key)

    @cached_property
    def _by_key(self) -> dict[str, Member]:
        return {member.key: member for member in self.members}

    def duplicates(self) -> Iterator[tuple[Member, Member]]:
        """Each repeated member together with the first member of the same key."""
        first: dict[str, Member] = {}
        for member in self.members:
            if member.key in first:
                yield first[member.key], member
            else:
                first[member.key] = member


_LONGEST_NAME = 200
"""Characters; the longest name in the schema of DeepSpeed has about fifty."""

Node: TypeAlias = Scalar | Array | Object
Tree = TypeVar("Tree")


class Trail(NamedTuple):
    """The way to a value in a tree, by keys and indices from the root.

    A pointer repeats every key on its way, and keys may be long: it is only made for a value that
    there is something to say about.
    """

    above: Trail | None
    token: str | int

    @property
    def tokens(self) -> tuple[str, ...]:
        """The keys and indices, as ``split_pointer`` gives them for the pointer."""
        tokens: list[str] = []
        trail: Trail = self
        while trail.above is not None:
            tokens.append(str(trail.token))
            trail = trail.above
        return tuple(reversed(tokens))

    @property
    def pointer(self) -> str:
        """The JSON pointer."""
        return "".join(join_pointer("", token) for token in self.tokens)


class DeviationKind(str, Enum):
    """What makes a text something else than strict JSON (RFC 8259 as ``json.load`` reads it)."""

    BYTE_ORDER_MARK = "byte order mark"
    COMMENT = "comment"
    EMPTY = "empty file"
    MISSING_BRACES = "no braces around the document"
    MISSING_COMMA = "missing comma"
    TRAILING_COMMA = "trailing comma"
    UNQUOTED_KEY = "key without quotes"
    SINGLE_QUOTES = "single quotes"
    BARE_STRING = "string without quotes"
    MULTILINE_STRING = "multi-line string"
    ESCAPE = "escape that JSON does not have"
    NUMBER = "number"
    OTHER = "other"


class Deviation(Struct, frozen=True):
    """A place where ``json.load`` stops (``stops``) or reads another value than HJSON does."""

    kind: DeviationKind
    span: Span
    stops: bool
    detail: str = ""


class Document(Struct, frozen=True):
    """A text and the tree read from it.

    ``comments`` are the spans of comments; ``deviations`` the places where a strict JSON
    reader would stop or differ, in the order of the text. ``in_code`` says that the tree is what
    a program writes, such as a dict in Python: no edit of JSON fits into its text. ``elsewhere``
    says where a program changes values of the text, by their pointers.
    """

    source: Source
    root: Node
    comments: tuple[Span, ...] = ()
    deviations: tuple[Deviation, ...] = ()
    in_code: bool = False
    elsewhere: Mapping[str, Location] = field(default_factory=dict)

    @property
    def value(self) -> Any:
        """The plain Python value of the whole document."""
        return self.root.value

    def get(self, pointer: str) -> Node | None:
        """The node at a JSON pointer, or None where there is none."""
        found = self._walk(pointer)
        return found[1] if found else None

    def member(self, pointer: str) -> Member | None:
        """The member whose value stands at a JSON pointer; None for array items and the root."""
        found = self._walk(pointer)
        return found[0] if found else None

    def locate(self, pointer: str, part: Part = "value") -> Location:
        """Where something stands.

        Falls back to the nearest enclosing node that exists, so that a message about an
        absent key still has a place. ``key`` and ``member`` of something that is not a
        member mean its value.
        """
        while True:
            found = self._walk(pointer)
            if found is not None:
                break
            pointer = pointer.rpartition("/")[0]
        above = pointer
        while above and above not in self.elsewhere:
            above = above.rpartition("/")[0]
        if above:
            return self.elsewhere[above]._replace(pointer=pointer)
        member, node = found
        if member is not None and part == "key":
            return Location(self.source, member.key_span, pointer)
        if member is not None and part == "member":
            return Location(self.source, member.span, pointer)
        return Location(self.source, node.span, pointer)

    def is_perhaps(self, pointer: str) -> bool:
        """Whether a program leaves out what stands here, or an object around it, in some runs."""
        while pointer:
            member = self.member(pointer)
            if member is not None and member.perhaps:
                return True
            pointer = pointer.rpartition("/")[0]
        return False

    @property
    def start(self) -> Location:
        """The first character of the root: the place of what the whole document lacks or is."""
        span = self.root.span
        return Location(self.source, span._replace(end=span.start + 1), "")

    def nodes(self) -> Iterator[tuple[Trail, Node]]:
        """Every node in the order of the text, what holds others before them."""
        return walk(self.root, inside)

    def objects(self) -> Iterator[tuple[Trail, Object]]:
        """Every object, outermost first."""
        return ((trail, node) for trail, node in self.nodes() if isinstance(node, Object))

    def _walk(self, pointer: str) -> tuple[Member | None, Node] | None:
        member: Member | None = None
        node: Node = self.root
        for token in split_pointer(pointer):
            if isinstance(node, Object):
                member = node.member(token)
                if member is None:
                    return None
                node = member.node
            else:
                index = whole_number(token) if isinstance(node, Array) else None
                if not isinstance(node, Array) or index is None or index >= len(node.items):
                    return None
                member, node = None, node.items[index]
        return member, node


def walk(
    root: Tree, inside: Callable[[Tree], Iterable[tuple[str | int, Tree]]]
) -> Iterator[tuple[Trail, Tree]]:
    """A tree with all that it holds, and what holds others before them.

    ``inside`` gives the keys or indices of a value with what stands there.
    """
    trail = Trail(None, "")
    yield trail, root
    stack = [(trail, iter(inside(root)))]
    while stack:
        above, rest = stack[-1]
        for token, value in rest:
            trail = Trail(above, token)
            yield trail, value
            stack.append((trail, iter(inside(value))))
            break
        else:
            stack.pop()


def inside(node: Node) -> Iterable[tuple[str | int, Node]]:
    """What an object or array holds, by key or index; a repeated key comes again."""
    if isinstance(node, Object):
        return ((member.key, member.node) for member in node.members)
    return enumerate(node.items) if isinstance(node, Array) else ()


def inside_value(value: Any) -> Iterable[tuple[str | int, Any]]:
    """What a plain dict or list holds, by key or index."""
    if isinstance(value, dict):
        return value.items()
    return enumerate(value) if isinstance(value, list) else ()


def same_value(one: Node, other: Node) -> bool:
    """Whether two nodes hold the same value, to the type of every number.

    The order of keys does not count, save that of a key that is repeated. No more is looked at
    than the smaller of the two.
    """
    pairs = [(one, other)]
    while pairs:
        one, other = pairs.pop()
        if isinstance(one, Scalar) and isinstance(other, Scalar):
            same = type(one.value) is type(other.value) and repr(one.value) == repr(other.value)
        elif isinstance(one, Array) and isinstance(other, Array):
            same = len(one.items) == len(other.items)
            pairs += zip(one.items, other.items, strict=False)
        elif isinstance(one, Object) and isinstance(other, Object):
            same = len(one.members) == len(other.members)
            if same:
                ordered = [sorted(node.members, key=lambda m: m.key) for node in (one, other)]
                same = all(m.key == n.key for m, n in zip(*ordered, strict=True))
                pairs += ((m.node, n.node) for m, n in zip(*ordered, strict=True))
        else:
            same = False
        if not same:
            return False
    return True


def join_pointer(parent: str, token: str | int) -> str:
    """The pointer of a child: ``/`` and ``~`` in keys are escaped as RFC 6901 says."""
    return f"{parent}/{str(token).replace('~', '~0').replace('/', '~1')}"


def split_pointer(pointer: str) -> tuple[str, ...]:
    """The unescaped tokens of a pointer; the empty pointer is the whole document."""
    if not pointer:
        return ()
    # A thousand long ones that are kept would take as much as a thousand documents.
    return _split_often(pointer) if len(pointer) <= _LONGEST_NAME else _split(pointer)


def _split(pointer: str) -> tuple[str, ...]:
    return tuple(
        token.replace("~1", "/").replace("~0", "~")
        for token in pointer.removeprefix("/").split("/")
    )


_split_often = lru_cache(maxsize=1024)(_split)


def dotted(pointer: str) -> str:
    """DeepSpeed's dotted name of a key, for people: ``zero_optimization.stage``."""
    return ".".join(map(shown_name, split_pointer(pointer)))


def shown_name(key: str) -> str:
    """A key as a message names it: of one that no setting is as long as, its beginning."""
    return key if len(key) <= _LONGEST_NAME else key[: _LONGEST_NAME - 1] + "…"
