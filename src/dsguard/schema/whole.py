"""The config as a whole, for what one block alone cannot tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from dsguard.schema.block import CheckedBlock
from dsguard.schema.problem import ROOT, Place
from dsguard.schema.releases import as_of
from dsguard.schema.tensor_parallel import TensorParallel
from dsguard.schema.zero import ZeroOptimization


@dataclass(frozen=True)
class Whole:
    """A config with the blocks that DeepSpeed accepts in it.

    ``given`` is the config as written, ``blocks`` its checked top-level blocks by key. A block that
    is present and not in ``blocks`` has problems of its own, and nothing is judged by it.
    """

    given: dict[str, Any]
    blocks: Mapping[str, CheckedBlock]
    target: Version

    def is_since(self, release: str) -> bool:
        """Whether the config is judged by this release or a newer one."""
        return self.target >= Version(release)

    def place(self, dotted: str) -> Place:
        """The place of a key by its dotted path."""
        at = ROOT
        for name in dotted.split("."):
            at = at.child(name)
        return at

    def written(self, dotted: str) -> Any:
        """The value at a dotted path as it is written, None where there is none."""
        value: Any = self.given
        for name in dotted.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        return value

    def other(self, dotted: str) -> Place | None:
        """The place of a key that is written, to be named as the second half of a problem."""
        return self.place(dotted) if self.written(dotted) is not None else None

    def is_on(self, dotted: str) -> bool:
        """Whether a switch is written and true; ``"auto"`` and other text are not decided."""
        return self.written(dotted) is True

    def is_on_or_off(self, dotted: str) -> bool | None:
        """A switch that is written as true or false, else None."""
        value = self.written(dotted)
        return value if isinstance(value, bool) else None

    @property
    def zero(self) -> ZeroOptimization | None:
        """The ZeRO settings in force, None where they are refused by themselves."""
        written = self.given.get("zero_optimization", {})
        if isinstance(written, bool):
            return as_of(ZeroOptimization, self.target).model_validate({"stage": int(written)})
        if "zero_optimization" not in self.given:
            return as_of(ZeroOptimization, self.target)()
        zero = self.blocks.get("zero_optimization")
        return zero if isinstance(zero, ZeroOptimization) else None

    @property
    def stage_at(self) -> Place | None:
        """Where the ZeRO stage stands, None where it is not written in a block."""
        return self.other("zero_optimization.stage")

    @property
    def tensor_parallel_size(self) -> int:
        """The degree of AutoTP; 0 where it is off."""
        block = self.blocks.get("tensor_parallel")
        return block.autotp_size if isinstance(block, TensorParallel) else 0


def offloads(device: Any) -> bool:
    """Whether an offload block, or None for an absent one, keeps anything off the device."""
    return device is not None and device.device in ("cpu", "nvme")
