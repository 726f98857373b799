"""What DeepSpeed says to a config: refused, ignored, or read otherwise than written.

Everything is judged here that does not depend on the world size or the batch equation. The
judgement follows ``DeepSpeedConfig`` (deepspeed/runtime/config.py) and the readers it calls.
"""

from __future__ import annotations

from typing import Any

from packaging.version import Version
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dsguard.model.finding import Consequence
from dsguard.model.tree import split_pointer
from dsguard.schema import names, wording
from dsguard.schema.block import (
    OLDEST_KNOWN,
    Block,
    CheckedBlock,
    UncheckedBlock,
    UnknownKeys,
)
from dsguard.schema.config import Config
from dsguard.schema.problem import ROOT, Place, Problem
from dsguard.schema.removed import REMOVED
from dsguard.schema.shape import FieldFacts, Shape, fields_of, kind_of
from dsguard.schema.together import refused_together

_RANGE_ERRORS = frozenset(
    {"greater_than", "greater_than_equal", "less_than", "less_than_equal", "out_of_range"}
)
_CHOICE_ERRORS = frozenset({"enum", "literal_error"})


def validate(value: dict[str, Any], target: Version) -> list[Problem]:
    """The problems of a config for a release of DeepSpeed, in the order of the config.

    ``value`` is the config as plain Python values. Which keys exist is judged for ``target``;
    types and ranges are those of the newest known release. Never raises for any JSON value.
    """
    judge = _Judge(target)
    judge.unchecked(Config, value, ROOT)
    judge.problems.extend(refused_together(value, judge.blocks))
    return sorted(judge.problems, key=lambda p: (_position(value, p.pointer), p.part != "key"))


def _position(value: Any, pointer: str) -> tuple[int, ...]:
    """Where a pointer stands in the order of the config: the number of each member on the way."""
    position = []
    for token in split_pointer(pointer):
        if isinstance(value, dict) and token in value:
            position.append(list(value).index(token))
            value = value[token]
        elif isinstance(value, list):
            position.append(int(token))
            value = value[int(token)]
    return tuple(position)


class _Judge:
    """One walk over one config.

    ``blocks`` are the checked top-level blocks that DeepSpeed's own models would accept.
    """

    def __init__(self, target: Version) -> None:
        self.target = target
        self.problems: list[Problem] = []
        self.blocks: dict[str, CheckedBlock] = {}

    # Blocks that are read key by key

    def unchecked(self, block: type[UncheckedBlock], given: dict[str, Any], at: Place) -> None:
        """Judge an object that DeepSpeed reads with ``dict.get``."""
        fields, unread = fields_of(block), block.unread(given)
        for key, value in given.items():
            place, facts = at.child(key), fields.get(key)
            if facts is None:
                self._unknown(block, key, value, at)
            elif self._exists(block, facts, value, place) and key not in unread:
                before = len(self.problems)
                self._value(facts, value, place)
                if len(self.problems) == before:
                    self._outdated(facts, value, place)
        self.problems.extend(block.combinations(given, at))

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
                self._named_blocks(shape, value, at)
            elif issubclass(block, CheckedBlock):
                self._checked(block, value, at)
            elif issubclass(block, UncheckedBlock):
                self.unchecked(block, value, at)
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

    def _named_blocks(self, shape: Shape, given: dict[str, Any], at: Place) -> None:
        for name, value in given.items():
            place = at.child(name)
            if (
                isinstance(value, dict)
                and shape.blocks
                and issubclass(shape.blocks, UncheckedBlock)
            ):
                self.unchecked(shape.blocks, value, place)
            else:
                self.problems.append(
                    wording.wrong_value(place, value, "an object", Consequence.LATE)
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
            if shape.choices and kind == "string" and value not in shape.choices:
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
        waiting = [(value, at)]
        while waiting:
            value, at = waiting.pop()
            if value == "auto":
                self.problems.append(wording.unfilled_auto(at, Consequence.LATE))
            elif isinstance(value, dict):
                waiting.extend((child, at.child(name)) for name, child in value.items())
            elif isinstance(value, list):
                waiting.extend((child, at.child(i)) for i, child in enumerate(value))

    # Blocks that DeepSpeed hands to pydantic

    def _checked(self, block: type[CheckedBlock], given: dict[str, Any], at: Place) -> None:
        """Judge an object as DeepSpeed's own model does."""
        kept = self._kept(block, given, at)
        try:
            model = block.model_validate(kept)
        except ValidationError as error:
            self._type_errors(
                block, given, at, error.errors(include_url=False, include_input=False)
            )
            return
        self._combinations(model, given, at)
        if "." not in at.dotted:
            self.blocks[at.dotted] = model

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
                self._unknown(block, key, value, at, dropped=key not in taken)
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
            elif self._exists(block, facts, value, place):
                seen[facts.name] = place
                self._outdated(facts, value, place)
                kept[key] = self._kept_value(facts, value, place)
        return kept

    def _kept_value(self, facts: FieldFacts, value: Any, at: Place) -> Any:
        inner = facts.shape.block
        if inner is not None and isinstance(value, dict):
            if issubclass(inner, CheckedBlock):
                return self._kept(inner, value, at)
            if issubclass(inner, UncheckedBlock):
                self.unchecked(inner, value, at)
        return value

    def _combinations(self, model: CheckedBlock, given: dict[str, Any], at: Place) -> None:
        self.problems.extend(model.combinations(given, at))
        for attribute in model.model_fields_set:
            inner = getattr(model, attribute)
            if isinstance(inner, CheckedBlock):
                facts = fields_of(type(model))[attribute]
                key = next(spelling for spelling in facts.spellings if spelling in given)
                self._combinations(inner, given[key] or {}, at.child(key))

    def _type_errors(
        self, block: type[Block], given: dict[str, Any], at: Place, errors: list[ErrorDetails]
    ) -> None:
        """Turn pydantic's errors into problems, one for each place."""
        named = set[str]()
        for error in errors:
            place, value, shape = _find(block, given, at, error["loc"])
            if place.pointer in named:
                continue
            named.add(place.pointer)
            in_range = error["type"] in _RANGE_ERRORS or (
                error["type"] in _CHOICE_ERRORS and kind_of(value) in shape.kinds
            )
            say = wording.out_of_range if in_range else wording.wrong_value
            self.problems.append(say(place, value, shape.expected))

    # Keys

    def _exists(self, block: type[Block], facts: FieldFacts, value: Any, at: Place) -> bool:
        """Whether the target release has a key that the newest known one has."""
        if facts.since <= self.target or facts.since == OLDEST_KNOWN:
            return True
        if block.unknown_keys is UnknownKeys.FREE:
            return True
        refuses = self._refuses_unknown(block)
        consequence = Consequence.REFUSED if refuses else Consequence.IGNORED
        self.problems.append(
            wording.too_new_key(at, value, consequence, since=facts.since, target=self.target)
        )
        return False

    def _outdated(self, facts: FieldFacts, value: Any, at: Place) -> None:
        if facts.outdated is not None and facts.deprecated is not None:
            self.problems.append(
                wording.deprecated_key(at, value, facts.outdated, facts.replaced_by)
            )

    def _refuses_unknown(self, block: type[Block]) -> bool:
        refuses = block.unknown_keys is UnknownKeys.REFUSED
        return refuses and block.refused_since <= max(self.target, OLDEST_KNOWN)

    def _unknown(
        self, block: type[Block], key: str, value: Any, at: Place, *, dropped: bool = False
    ) -> None:
        place = at.child(key)
        refused = self._refuses_unknown(block) and not dropped
        removed = REMOVED.get(place.dotted)
        if removed is not None:
            if removed.removed_in <= self.target:
                refused = refused or removed.refused
                self.problems.append(
                    wording.removed_key(
                        place,
                        value,
                        Consequence.REFUSED if refused else Consequence.IGNORED,
                        removed_in=str(removed.removed_in),
                        target=self.target,
                        replacement=removed.replacement,
                    )
                )
            return
        if block.unknown_keys is UnknownKeys.FREE:
            if issubclass(block, UncheckedBlock) and block.passes_on:
                self._autos(value, place)
            return
        if not refused and not dropped and names.is_comment(key):
            return
        hint = names.hint(key, block, at.dotted)
        self.problems.append(
            wording.unknown_key(
                place,
                value,
                Consequence.REFUSED if refused else Consequence.IGNORED,
                dropped=dropped,
                suggestions=hint.suggestions,
                belongs=hint.belongs,
                misplaced=hint.misplaced,
            )
        )


def _compatible(kinds: set[str]) -> set[str]:
    """The JSON types that work where these are read: numbers and booleans stand for each other."""
    numeric = {"whole", "number", "boolean"}
    return kinds | numeric if kinds & numeric else kinds


def _find(
    block: type[Block], given: Any, at: Place, loc: tuple[int | str, ...]
) -> tuple[Place, Any, Shape]:
    """The place, value and shape an error of pydantic is about.

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
