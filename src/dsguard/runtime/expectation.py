"""What was asked for: keywords, a mapping or a ds_config file, each value with its origin."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from dsguard.facts.equation import solve
from dsguard.facts.values import is_count, is_number, written
from dsguard.model.fact import Fact, FactName, Known, Origin, OriginKind
from dsguard.model.tree import Document, Object
from dsguard.reading.errors import HjsonSyntaxError, ReadError
from dsguard.reading.hjson import parse
from dsguard.reading.load import load_path

if TYPE_CHECKING:
    from dsguard.model.source import Location


@dataclass(frozen=True)
class Asked:
    """Values that something other than the caller of ``guard`` asks for, such as a trainer."""

    values: Mapping[str, Any]
    said_by: str


Expected: TypeAlias = "Mapping[str, Any] | Asked | str | os.PathLike[str] | None"
"""What ``guard(expect=…)`` takes."""

_COUNTS: tuple[FactName, ...] = (
    "train_batch_size",
    "micro_batch_size",
    "gradient_accumulation_steps",
    "data_parallel_size",
    "world_size",
)
_BATCH: tuple[FactName, ...] = (
    "train_batch_size",
    "micro_batch_size",
    "gradient_accumulation_steps",
)
NAMES: tuple[FactName, ...] = (*_COUNTS, "gradient_clipping", "zero_stage", "precision")
"""The facts that a running engine can be held to."""

_SPELLINGS: dict[str, FactName] = {
    "train_micro_batch_size_per_gpu": "micro_batch_size",
    "micro_batch_size_per_gpu": "micro_batch_size",
}
_FACTS: dict[str, FactName] = {name: name for name in NAMES} | _SPELLINGS
_PRECISIONS = ("fp32", "fp16", "bf16")


@dataclass(frozen=True)
class Expectation:
    """Values that were asked for, by fact; what nobody asked for is absent."""

    asked: Mapping[FactName, Known] = field(default_factory=dict)

    def without(self, *names: FactName) -> Expectation:
        """The same without these facts, as after the script has changed them on purpose."""
        return replace(self, asked={n: k for n, k in self.asked.items() if n not in names})

    def completed(self, data_parallel_size: int) -> Expectation:
        """With the third batch size, where two were asked for and nobody else can say it.

        Raises:
            ValueError: the samples of a step do not divide.
        """
        train, *parts = (self.asked.get(name) for name in _BATCH)
        missing = [name for name, part in zip(_BATCH[1:], parts, strict=True) if part is None]
        given = next((part for part in parts if part is not None), None)
        if train is None or given is None or len(missing) != 1:
            return self
        value, left = divmod(train.value, given.value * data_parallel_size)
        formula = f"{train.value} / {given.value} / {data_parallel_size} ranks"
        if left:
            raise ValueError(
                f"guard(expect=...): no whole {missing[0]} makes train_batch_size "
                f"{train.value} ({formula})"
            )
        derived = Known(value, Origin(OriginKind.DERIVED, formula=formula))
        return replace(self, asked={**self.asked, missing[0]: derived})

    @classmethod
    def read(cls, expect: Expected, said_at: Location, data_parallel_size: int) -> Expectation:
        """Understand what the caller of ``guard`` expects.

        A config file is solved by the batch equation with the engine's data-parallel size; a
        value of ``"auto"`` in it expects nothing.

        Raises:
            TypeError: neither a mapping nor a path.
            ValueError: an unknown name, a value of the wrong kind, or a file that cannot be
                read; the message names file and line.
        """
        if expect is None:
            return cls()
        if isinstance(expect, Asked):
            values, said_by = expect.values, expect.said_by
            return cls(dict(_asked(name, value, None, said_by) for name, value in values.items()))
        if isinstance(expect, Mapping):
            return cls(
                dict(
                    _asked(name, value, said_at, f"guard({name}={value})")
                    for name, value in expect.items()
                )
            )
        if isinstance(expect, (str, os.PathLike)):
            return cls(_of_config(_document(Path(expect)), data_parallel_size))
        raise TypeError(
            f"guard(expect=...) takes a mapping or the path of a ds_config, not {expect!r}"
        )


def _asked(name: str, value: Any, said_at: Location | None, said_by: str) -> tuple[FactName, Known]:
    known = _FACTS.get(name)
    if known is None:
        close = difflib.get_close_matches(name, [*NAMES, *_SPELLINGS], 1)
        hint = f"; did you mean {close[0]}?" if close else f"; it knows {', '.join(NAMES)}"
        raise ValueError(f"guard(expect=...) does not know {name!r}{hint}")
    if isinstance(value, bool) or not _fits(known, value):
        raise ValueError(f"guard(expect=...): {name} cannot be {value!r}")
    return known, Known(value, Origin(OriginKind.SCRIPT, said_at, argument=said_by))


def _fits(name: FactName, value: Any) -> bool:
    if name == "precision":
        return value in _PRECISIONS
    if name == "gradient_clipping":
        return is_number(value) and value >= 0
    if name == "zero_stage":
        return value in (0, 1, 2, 3)
    return isinstance(value, int) and value > 0


def _document(path: Path) -> Document:
    try:
        document = parse(load_path(path))
    except (ReadError, HjsonSyntaxError) as error:
        way_out = f" ({error.help})" if error.help else ""
        raise ValueError(f"guard(expect=...): {error}{way_out}") from None
    if not isinstance(document.root, Object) or not document.root.members:
        raise ValueError(f"guard(expect=...): {path} holds no settings of a ds_config")
    return document


def _of_config(document: Document, data_parallel_size: int) -> dict[FactName, Known]:
    asked: dict[FactName, Known] = {}
    ranks = Known(data_parallel_size, Origin(OriginKind.DERIVED, formula="the engine's ranks"))
    batch = solve(
        _count(document, "train_batch_size"),
        _count(document, "train_micro_batch_size_per_gpu", "train_micro_batch_size"),
        _count(document, "gradient_accumulation_steps"),
        ranks,
    )
    solved: dict[FactName, Fact] = {
        "train_batch_size": batch.train,
        "micro_batch_size": batch.micro,
        "gradient_accumulation_steps": batch.accumulation,
    }
    if batch.failure is None and not _auto_batch(document):
        asked |= {name: fact for name, fact in solved.items() if isinstance(fact, Known)}
    clipping = written(document, "gradient_clipping")
    if clipping is not None and is_number(clipping.value):
        asked["gradient_clipping"] = Known(clipping.value, clipping.origin)
    stage = written(document, "zero_optimization.stage")
    if stage is not None and stage.value in (0, 1, 2, 3):
        asked["zero_stage"] = Known(int(stage.value), stage.origin)
    for name in ("fp16", "bf16"):
        enabled = written(document, f"{name}.enabled")
        if enabled is not None and enabled.value is True:
            asked["precision"] = Known(name, enabled.origin)
    return asked


def _count(document: Document, *keys: str) -> Known | None:
    given = written(document, *keys)
    if given is None or not is_count(given.value):
        return None
    return Known(given.value, given.origin)


def _auto_batch(document: Document) -> bool:
    """Whether a batch size of the file is no number, so that the equation has no solution yet."""
    keys = ("train_batch_size", "train_micro_batch_size_per_gpu", "gradient_accumulation_steps")
    given = (written(document, key) for key in keys)
    return any(value is not None and not is_count(value.value) for value in given)
