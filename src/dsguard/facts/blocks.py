"""The blocks of a config that name what DeepSpeed builds."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from dsguard.frontends.base import AUTO, THROUGH_ACCELERATE
from dsguard.model.finding import Confidence
from dsguard.model.tree import Document, Object, join_pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.model.source import Location

_NAME = r"[\w.+ -]+"
"""A name as people type it; ``${OPTIMIZER}`` or ``{{ optimizer }}`` is still to be filled in."""


class Block(Struct, frozen=True):
    """An optimizer or scheduler block with a type.

    ``params`` are its parameters, empty where it has none.
    """

    document: Document
    path: Literal["optimizer", "scheduler"]
    type: str
    params: dict[str, Any]

    @property
    def type_at(self) -> Location:
        """Where the type stands."""
        return self.document.locate(f"/{self.path}/type")

    def at(self, name: str, part: Literal["key", "value", "member"] = "value") -> Location:
        """Where a parameter stands."""
        return self.document.locate(join_pointer(f"/{self.path}/params", name), part)

    def given(self) -> Iterator[str]:
        """The names of the parameters whose value is not left to a trainer."""
        return (name for name, value in self.params.items() if value != AUTO)

    def number(self, name: str) -> float | int | None:
        """A parameter that is a number, None where it is absent or something else."""
        value = self.params.get(name)
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return value if is_number else None


def block(case: Case, path: Literal["optimizer", "scheduler"]) -> Block | None:
    """The block that names what DeepSpeed builds, None where the config names nothing."""
    document = case.document
    if document is None or not case.recognised:
        return None
    node = document.get(f"/{path}")
    if not isinstance(node, Object):
        return None
    kind = node.value.get("type")
    if not isinstance(kind, str) or kind == AUTO or not re.fullmatch(_NAME, kind):
        return None
    params = document.get(f"/{path}/params")
    return Block(document, path, kind, params.value if isinstance(params, Object) else {})


def trust_in_blocks(case: Case) -> Confidence:
    """How sure it is that DeepSpeed builds from the blocks of the config.

    A script of its own may pass an optimizer and a scheduler to ``deepspeed.initialize``, which
    then never looks at the blocks. HF Trainer and Accelerate stop or give way when the config has
    them.
    """
    sure = case.front_end is not None and case.front_end.name in THROUGH_ACCELERATE
    return Confidence.HIGH if sure else Confidence.MEDIUM
