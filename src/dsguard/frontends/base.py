"""The shape of a front end.

A front end stands between the people who ask for values and ``deepspeed.initialize``: a plain
script, the HF Trainer, Accelerate's own loop, Lightning. Each decides in its own way what
DeepSpeed is handed.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from dsguard.model.fact import Candidate, Fact


class FrontEndName(str, Enum):
    """The front ends that dsguard knows; the values of ``--front-end``."""

    PLAIN = "plain"
    TRANSFORMERS = "transformers"
    ACCELERATE = "accelerate"
    LIGHTNING = "lightning"


THROUGH_ACCELERATE = (FrontEndName.TRANSFORMERS, FrontEndName.ACCELERATE)
"""The front ends whose config goes through Accelerate's DeepSpeed plugin."""

AUTO = "auto"
"""The placeholder that trainers fill; DeepSpeed itself gives it no meaning."""


class Setting(Struct, frozen=True):
    """One value as the config writes it and as the command line asks for it.

    ``key`` is DeepSpeed's dotted name. ``written`` is None where the config has no such key
    (or null, which DeepSpeed reads as absent). ``asked`` is what the command line says under
    one of the names people use for the same thing; ``handed`` is what the script plainly gives to
    the front end itself, as in ``Trainer(accumulate_grad_batches=4)``. ``filled`` is what a
    ``DeepSpeedPlugin(…)`` of the script puts in place of ``"auto"``, unknown where it cannot be
    read.
    """

    key: str
    written: Candidate | None
    asked: Candidate | None
    handed: Candidate | None = None
    filled: Fact | None = None

    @property
    def value(self) -> Any:
        """The written value, None where absent."""
        return self.written.value if self.written else None

    @property
    def is_auto(self) -> bool:
        """Whether the config leaves the value to a trainer."""
        return bool(self.value == AUTO)

    @property
    def losers(self) -> tuple[Candidate, ...]:
        """What was asked for, as a value that lost; nothing where both places agree."""
        return (self.asked,) if self.asked and not self.agree else ()

    @property
    def agree(self) -> bool:
        """Whether both places give the same value (``1 == 1.0`` counts as the same)."""
        return bool(self.written and self.asked and self.written.value == self.asked.value)


class FrontEnd(Protocol):
    """What dsguard asks of a front end."""

    name: FrontEndName
    title: str
    """The name in messages, such as ``HF Trainer``."""
    strict_json: bool
    """Whether the config goes through ``json.load`` instead of DeepSpeed's HJSON reader."""

    stops_at_auto: bool
    """Whether an ``"auto"`` that is left over stops the front end with an error."""

    def fills(self, key: str) -> bool:
        """Whether ``"auto"`` under this dotted key is replaced before DeepSpeed sees it."""

    def settle(self, setting: Setting) -> Fact | None:
        """What DeepSpeed is handed for a setting.

        Known or unknown, a conflict where the front end stops over it, or None where the
        key stays absent and DeepSpeed's own default or derivation applies.
        """
