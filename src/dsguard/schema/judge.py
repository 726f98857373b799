"""One walk over one config, block by block, as ``DeepSpeedConfig`` reads it.

Source: ``DeepSpeedConfig`` (deepspeed/runtime/config.py) and the readers it calls.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from dsguard.model.finding import Consequence
from dsguard.model.tree import inside_value, walk
from dsguard.schema import wording
from dsguard.schema.block import Block, CheckedBlock, UncheckedBlock, UnknownKeys
from dsguard.schema.problem import Place, Problem
from dsguard.schema.shape import FieldFacts, Shape, fields_of, kind_of, made
from dsguard.schema.strangers import stranger

if TYPE_CHECKING:
    from dsguard.schema.checked import Fault


class Judge:
    """One walk over one config for one release.

    ``blocks`` are the checked top-level blocks that DeepSpeed accepts, as it reads them.
    """

    def __init__(self, target: Version) -> None:
        self.target = target
        self.problems: list[Problem] = []
        self.blocks: dict[str, CheckedBlock] = {}

    # Blocks that are read key by key

    def unchecked(self, block: type[Block], given: dict[str, Any], at: Place) -> None:
        """Judge an object that DeepSpeed reads with ``dict.get``."""
        fields, unread = fields_of(block), block.unread(given)
        for key, value in given.items():
            place, facts = at.child(key), fields.get(key)
            if facts is None:
                self._stranger(block, key, value, at)
            elif key not in unread:
                before = len(self.problems)
                self._value(facts, value, place)
                if len(self.problems) == before:
                    self._outdated(facts, value, place)
        if issubclass(block, UncheckedBlock):
            self.problems.extend(block.combinations(given, at))

    def _stranger(
        self, block: type[Block], key: str, value: Any, at: Place, *, dropped: bool = False
    ) -> None:
        """Judge a key that the block does not have in this release."""
        if block.unknown_keys is not UnknownKeys.FREE:
            self.problems.extend(stranger(block, key, value, at, self.target, dropped=dropped))
        elif issubclass(block, UncheckedBlock) and block.passes_on:
            self._autos(value, at.child(key))

    def _outdated(self, facts: FieldFacts, value: Any, at: Place) -> None:
        history = facts.history
        if history.outdated is None or history.deprecated is None:
            return
        if history.deprecated <= self.target:
            self.problems.append(
                wording.deprecated_key(at, value, history.outdated, history.replaced_by)
            )

    def _value(self, facts: FieldFacts, value: Any, at: Place) -> None:
        shape = facts.shape
        if shape.block is not None or shape.blocks is not None:
            self._object(facts, value, at)
        elif value == "auto":
            self._auto(facts, at)
        elif shape.takes is not None:
            if not shape.takes.test(value):
                self._refused_value(shape, value, at)
        elif value is not None and "anything" not in shape.kinds:
            self._unchecked_value(facts, value, at)

    def _object(self, facts: FieldFacts, value: Any, at: Place) -> None:
        shape = facts.shape
        block = shape.block
        if isinstance(value, dict):
            if block is None:
                self._named_blocks(facts, value, at)
            elif issubclass(block, CheckedBlock) and block.is_checked():
                self._checked(block, value, at)
            else:
                self.unchecked(block, value, at)
                self._keep_as_read(block, value, at)
            return
        passes = shape.takes.test(value) if shape.takes else kind_of(value) in shape.kinds
        if value == "auto":
            consequence = facts.wrong or Consequence.REFUSED
            if passes:
                consequence = Consequence.IGNORED
            self.problems.append(wording.unfilled_auto(at, consequence, expected=shape.expected))
        elif not passes:
            consequence = facts.wrong or Consequence.REFUSED
            self.problems.append(wording.wrong_value(at, value, shape.expected, consequence))
        elif value and "boolean" not in shape.kinds:
            self.problems.append(
                wording.wrong_value(at, value, shape.expected, Consequence.IGNORED)
            )

    def _named_blocks(self, facts: FieldFacts, given: dict[str, Any], at: Place) -> None:
        block = facts.shape.blocks
        for name, value in given.items():
            if isinstance(value, dict) and block is not None:
                self.unchecked(block, value, at.child(name))
            else:
                consequence = facts.wrong or Consequence.LATE
                self.problems.append(
                    wording.wrong_value(at.child(name), value, "an object", consequence)
                )

    def _auto(self, facts: FieldFacts, at: Place) -> None:
        shape = facts.shape
        if "auto" in shape.choices or facts.default == "auto":
            return
        if shape.takes is not None and not shape.takes.test("auto"):
            consequence = Consequence.REFUSED
        elif "boolean" in shape.kinds and facts.wrong is None:
            self.problems.append(wording.auto_counts_as_true(at))
            return
        elif "string" in shape.kinds and not shape.choices and facts.wrong is not Consequence.LATE:
            return  # a text like any other
        else:
            consequence = facts.wrong or Consequence.LATE
        self.problems.append(wording.unfilled_auto(at, consequence, expected=shape.expected))

    def _refused_value(self, shape: Shape, value: Any, at: Place) -> None:
        """A value that the reader itself stops at."""
        kind = kind_of(value)
        fits = kind in _compatible(shape.kinds) and kind != "list"  # its items are at fault
        say = wording.out_of_range if fits else wording.wrong_value
        self.problems.append(say(at, value, shape.expected))

    def _unchecked_value(self, facts: FieldFacts, value: Any, at: Place) -> None:
        """A value that nothing looks at before it is used; only clear mistakes are named."""
        shape, kind = facts.shape, kind_of(value)
        if kind in _compatible(shape.kinds):
            choices = [choice for choice in shape.choices if kind_of(choice) == kind]
            if (choices and value not in choices) or not shape.in_bounds(value):
                consequence = facts.wrong or Consequence.LATE
                self.problems.append(wording.out_of_range(at, value, shape.expected, consequence))
            elif isinstance(value, list):
                self._autos(value, at)
        elif "boolean" in shape.kinds and facts.wrong is None:
            self.problems.append(wording.not_a_boolean(at, value))
        else:
            consequence = facts.wrong or Consequence.LATE
            self.problems.append(wording.wrong_value(at, value, shape.expected, consequence))

    def _autos(self, value: Any, at: Place) -> None:
        """Every ``"auto"`` in an argument that is handed to a constructor."""
        for trail, text in walk(value, inside_value):
            if text == "auto":
                place = reduce(Place.child, trail.tokens, at)
                self.problems.append(wording.unfilled_auto(place, Consequence.LATE))

    # Blocks that DeepSpeed hands to pydantic

    def _checked(self, block: type[CheckedBlock], given: dict[str, Any], at: Place) -> None:
        """Judge an object as DeepSpeed's own model does."""
        from dsguard.schema.checked import RefusedError, read  # imports pydantic-core

        kept = self._kept(block, given, at)
        try:
            taken = read(block, kept)
        except RefusedError as refused:
            self._type_errors(block, given, at, refused.faults)
            return
        self._combinations(taken, given, at)
        if "." not in at.dotted:
            self.blocks[at.dotted] = taken

    def _keep_as_read(self, block: type[Block], given: dict[str, Any], at: Place) -> None:
        """Keep a block of a release that had no model for it yet, with its values unchecked."""
        if issubclass(block, CheckedBlock):
            fields = fields_of(block)
            read = {fields[key].attribute: given[key] for key in given if key in fields}
            self.blocks[at.dotted] = made(block, read)

    def _kept(self, block: type[CheckedBlock], given: dict[str, Any], at: Place) -> dict[str, Any]:
        """The part of an object whose values count; everything else becomes a problem."""
        fields, taken = fields_of(block), block.arguments(given)
        kept: dict[str, Any] = {}
        seen: dict[str, Place] = {}
        for key, value in given.items():
            place, facts = at.child(key), fields.get(key)
            if facts is None:
                if key == "strict":
                    kept[key] = value
                self._stranger(block, key, value, at, dropped=key not in taken)
            elif key not in taken:
                if facts.default != "auto":
                    self.problems.append(
                        wording.dropped_auto(place, facts.default, facts.shape.expected)
                    )
            elif facts.name in seen:
                self.problems.append(
                    wording.conflict(
                        place,
                        value,
                        seen[facts.name],
                        Consequence.REFUSED,
                        "DeepSpeed takes one spelling, refuses the other as unknown and stops when "
                        "it reads the config",
                    )
                )
            else:
                seen[facts.name] = place
                self._outdated(facts, value, place)
                kept[key] = self._kept_value(facts, value, place)
        return kept

    def _kept_value(self, facts: FieldFacts, value: Any, at: Place) -> Any:
        inner = facts.shape.block
        if inner is not None and isinstance(value, dict):
            if issubclass(inner, CheckedBlock):
                return self._kept(inner, value, at)
            self.unchecked(inner, value, at)
        return value

    def _combinations(self, taken: CheckedBlock, given: dict[str, Any], at: Place) -> None:
        self.problems.extend(taken.combinations(given, at))
        for attribute in taken.written:
            inner = getattr(taken, attribute)
            if isinstance(inner, CheckedBlock):
                facts = fields_of(type(taken))[attribute]
                key = next(spelling for spelling in facts.spellings if spelling in given)
                self._combinations(inner, given[key] or {}, at.child(key))

    def _type_errors(
        self, block: type[Block], given: dict[str, Any], at: Place, faults: list[Fault]
    ) -> None:
        """Turn what pydantic refuses into problems, one for each place."""
        named = set[tuple[str, ...]]()
        for fault in faults:
            place, value, shape = _find(block, given, at, fault.place)
            if place.tokens in named:
                continue
            named.add(place.tokens)
            fits = fault.sort == "range" or (
                fault.sort == "choice" and kind_of(value) in shape.kinds
            )
            say = wording.out_of_range if fits else wording.wrong_value
            self.problems.append(say(place, value, shape.expected))


def _compatible(kinds: set[str]) -> set[str]:
    """The JSON types that work where these are read: numbers and booleans stand for each other."""
    numeric = {"whole", "number", "boolean"}
    return kinds | numeric if kinds & numeric else kinds


def _find(
    block: type[Block], given: Any, at: Place, loc: tuple[int | str, ...]
) -> tuple[Place, Any, Shape]:
    """The place, value and shape a fault is about.

    Its location ends with names of a union's alternatives, which no value stands under.
    """
    inner: type[Block] | None = block
    shape = Shape(kinds={"object"}, expected="an object")
    for token in loc:
        if isinstance(given, dict) and token in given and inner is not None:
            facts = fields_of(inner).get(str(token))
            if facts is None:
                break
            at, given, shape, inner = at.child(token), given[token], facts.shape, facts.shape.block
        elif isinstance(given, list) and isinstance(token, int) and token < len(given):
            at, given, inner = at.child(token), given[token], None
            shape = shape.items or shape
        else:
            break
    return at, given, shape
