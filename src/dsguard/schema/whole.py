"""The config as a whole, for what one block alone cannot tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct
from packaging.version import Version

from dsguard.schema.block import CheckedBlock
from dsguard.schema.config import Config, zero_of
from dsguard.schema.history import numbered
from dsguard.schema.problem import ROOT, Place
from dsguard.schema.releases import as_of
from dsguard.schema.shape import made

if TYPE_CHECKING:
    from dsguard.schema.compile import Compile
    from dsguard.schema.precision import Bf16, Fp16
    from dsguard.schema.tensor_parallel import TensorParallel
    from dsguard.schema.zero import ZeroOptimization

STANDS_APART = frozenset(
    {
        "activation_checkpointing",
        "comet",
        "comms_logger",
        "csv_monitor",
        "dataloader_drop_last",
        "dump_state",
        "flops_profiler",
        "gradient_accumulation_steps",
        "log_level",
        "memory_breakdown",
        "nebula",
        "steps_per_print",
        "tensorboard",
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "wall_clock_breakdown",
        "wandb",
    }
)
"""Top-level keys that neither cause nor cure a combination of values, unless it names them.

Whatever they hold, and be they there or not, the other combinations stay what they are.
"""


class Whole(Struct, frozen=True):
    """A config with the blocks that DeepSpeed accepts in it.

    ``given`` is the config as written, ``blocks`` its checked top-level blocks by key. A block that
    is present and not in ``blocks`` has problems of its own, and nothing is judged by it.
    """

    given: dict[str, Any]
    blocks: Mapping[str, CheckedBlock]
    target: Version

    def is_since(self, release: str) -> bool:
        """Whether the config is judged by this release or a newer one."""
        return self.target >= numbered(release)

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
        written = self.given.get("zero_optimization", False)
        if not isinstance(written, bool):
            return cast("ZeroOptimization | None", self.blocks.get("zero_optimization"))
        return made(zero_of(as_of(Config, self.target)), {"stage": int(written)})

    @property
    def fp16(self) -> Fp16 | None:
        """The block fp16 as it is read, None where it is absent or refused by itself."""
        return cast("Fp16 | None", self.blocks.get("fp16"))

    @property
    def bf16(self) -> Bf16 | None:
        """The block bf16 as it is read; not what stands under its old name."""
        return cast("Bf16 | None", self.blocks.get("bf16"))

    @property
    def compile(self) -> Compile | None:
        """The block compile as it is read."""
        return cast("Compile | None", self.blocks.get("compile"))

    @property
    def tensor_parallel(self) -> TensorParallel | None:
        """The block tensor_parallel as it is read."""
        return cast("TensorParallel | None", self.blocks.get("tensor_parallel"))

    @property
    def stage_at(self) -> Place | None:
        """Where the ZeRO stage stands, None where it is not written in a block."""
        return self.other("zero_optimization.stage")

    @property
    def tensor_parallel_size(self) -> int:
        """The degree of AutoTP; 0 where it is off."""
        block = self.tensor_parallel
        return block.autotp_size if block is not None else 0


def offloads(device: Any) -> bool:
    """Whether an offload block, or None for an absent one, keeps anything off the device."""
    return device is not None and device.device in ("cpu", "nvme")
