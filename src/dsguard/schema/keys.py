"""Looking a key up: what it means, which releases have it, what takes its place."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from packaging.version import Version

from dsguard.model.tree import split_pointer
from dsguard.schema.block import Block, CheckedBlock, UnknownKeys, cached
from dsguard.schema.config import Config
from dsguard.schema.history import NEWEST_KNOWN, OLDEST_KNOWN
from dsguard.schema.releases import as_of
from dsguard.schema.shape import FieldFacts, fields_of


class Form(Struct, frozen=True):
    """A key as the releases from ``since`` on read it, up to the next form.

    ``present`` is False where they do not read it. ``type`` says in words what it takes;
    ``unknown_keys`` is, for a key that holds a block, what they do with unknown keys in it.
    """

    since: Version
    present: bool
    type: str = ""
    default: Any = None
    unknown_keys: UnknownKeys | None = None


class KeyInfo(Struct, frozen=True):
    """A key of the config.

    ``dotted`` is its path in the documented spelling, with ``*`` for a name that is free. A key
    exists no longer than the blocks that it stands in.
    """

    dotted: str
    _path: tuple[FieldFacts, ...]
    _holder: type[Block]

    @property
    def _facts(self) -> FieldFacts:
        return self._path[-1]

    @property
    def spellings(self) -> tuple[str, ...]:
        """All spellings of the key, the documented one first."""
        return self._facts.spellings

    @property
    def doc(self) -> str:
        """What the key means, with its unit."""
        return self._facts.doc

    @property
    def type(self) -> str:
        """What the key takes in the newest release that has it, in words."""
        return self._facts.shape.expected

    @property
    def default(self) -> Any:
        """What the newest release that has the key uses when it is absent."""
        return self._facts.default

    @property
    def unknown_keys(self) -> UnknownKeys | None:
        """For a key that holds a block: what becomes of unknown keys in it, else None."""
        block = self._facts.shape.block
        return block.unknown_keys if block is not None else None

    @property
    def since(self) -> Version:
        """The first release that reads the key; 0.9.0 means that one or an older one."""
        return max(facts.history.since for facts in self._path)

    @property
    def removed(self) -> Version | None:
        """The first release that no longer reads the key, None while it exists."""
        ends = [facts.history.removed for facts in self._path]
        return min((end for end in ends if end is not None), default=None)

    @property
    def refused_when_gone(self) -> bool:
        """Whether the mere presence of the key stops releases that no longer read it."""
        return self._facts.history.refused_when_gone

    @property
    def deprecated(self) -> Version | None:
        """The first release that warns about the key or treats it as an old form."""
        return self._facts.history.deprecated

    @property
    def replaced_by(self) -> str | None:
        """The dotted path or the words to use instead."""
        return self._facts.history.replaced_by

    @property
    def forms(self) -> tuple[Form, ...]:
        """All forms of the key, oldest first."""
        return _forms(self._path, self._holder)

    def form_in(self, release: Version) -> Form:
        """The key as a release reads it; one older or newer than known counts as the nearest."""
        reached = [form for form in self.forms if form.since <= max(release, OLDEST_KNOWN)]
        return reached[-1] if reached else Form(OLDEST_KNOWN, present=False)

    def exists_in(self, release: Version) -> bool:
        """Whether a release reads the key."""
        return self.form_in(release).present

    def default_in(self, release: Version) -> Any:
        """What a release uses when the key is absent.

        Raises:
            LookupError: the release does not read the key.
        """
        form = self.form_in(release)
        if not form.present:
            raise LookupError(f"DeepSpeed {release} does not read {self.dotted}")
        return form.default


def find(path: str) -> KeyInfo | None:
    """The key at a JSON pointer (``/zero_optimization/stage``) or dotted path, if there is one.

    Keys that releases up to the newest known one have removed are found as well.
    """
    tokens = split_pointer(path) if path.startswith("/") else path.split(".")
    holder: type[Block] = Config
    block: type[Block] | None = Config
    free_names: type[Block] | None = None
    dotted, found = list[str](), list[FieldFacts]()
    for token in tokens:
        if free_names is not None:
            dotted.append("*")
            block, free_names = free_names, None
            continue
        facts = fields_of(block).get(token) if block is not None else None
        if block is None or facts is None:
            return None
        dotted.append(facts.name)
        found.append(facts)
        holder, block, free_names = block, facts.shape.block, facts.shape.blocks
    if not found or dotted[-1] == "*":
        return None
    return KeyInfo(".".join(dotted), tuple(found), holder)


@cache
def all_keys(release: Version | None = NEWEST_KNOWN) -> tuple[KeyInfo, ...]:
    """Every key that a release has; None stands for those of all known releases."""
    return tuple(_keys(Config, "", (), release))


def _keys(
    block: type[Block], prefix: str, path: tuple[FieldFacts, ...], release: Version | None
) -> Iterator[KeyInfo]:
    for facts in dict.fromkeys(fields_of(block).values()):
        if release is not None and not facts.history.exists_in(release):
            continue
        dotted, inner = prefix + facts.name, (*path, facts)
        yield KeyInfo(dotted, inner, block)
        if facts.shape.block is not None:
            yield from _keys(facts.shape.block, f"{dotted}.", inner, release)
        if facts.shape.blocks is not None:
            yield from _keys(facts.shape.blocks, f"{dotted}.*.", inner, release)


@cached
def _forms(path: tuple[FieldFacts, ...], holder: type[Block]) -> tuple[Form, ...]:
    """The forms of the key at the end of a path, oldest first."""
    first = max(facts.history.since for facts in path)
    starts = {first, *(start for facts in path for start in facts.history.changes)}
    block = path[-1].shape.block
    if block is not None and issubclass(block, CheckedBlock):
        starts.add(block.checked_since)
    forms: list[Form] = []
    for start in sorted(start for start in starts if start >= first):
        form = _form(path, holder, start)
        if not forms or replace(form, since=forms[-1].since) != forms[-1]:
            forms.append(form)
    return tuple(forms)


def _form(path: tuple[FieldFacts, ...], holder: type[Block], start: Version) -> Form:
    if not all(facts.history.exists_in(start) for facts in path):
        return Form(start, present=False)
    then = fields_of(as_of(holder, start))[path[-1].name]
    block = then.shape.block
    return Form(
        start,
        present=True,
        type=then.shape.expected,
        default=then.default,
        unknown_keys=block.unknown_keys if block is not None else None,
    )
