"""Which class DeepSpeed makes of the optimizer block."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from packaging.version import Version

from dsguard.model.fact import Known
from dsguard.schema.optimizers import DEEPSPEED_OPTIMIZERS, torch_optimizers

if TYPE_CHECKING:
    from dsguard.facts.blocks import Block
    from dsguard.facts.case import Case

CPU_DEVICES = ("cpu", "nvme")


class Built(Struct, frozen=True):
    """The class that is built; ``offloaded`` is whether that is due to optimizer offload."""

    name: str
    offloaded: bool = False


def built(case: Case, block: Block) -> Built | None:
    """The class, None where it is not known: an unknown name, or a device left to a trainer.

    Source: ``_configure_basic_optimizer`` in deepspeed/runtime/engine.py.
    """
    own = DEEPSPEED_OPTIMIZERS.get(block.type.lower())
    if own is None or not own.exists(Version(case.target.version)):
        return Built(f"torch.optim.{block.type}") if block.type in torch_optimizers() else None
    if own.title in ("Adam", "AdamW") and block.params.get("torch_adam"):
        decoupled = own.title == "AdamW" or block.params.get("adam_w_mode", True)
        return Built("torch.optim.AdamW" if decoupled else "torch.optim.Adam")
    if own.on_cpu is None:
        return Built(own.on_device)
    device = case.facts["offload_optimizer"]
    if not isinstance(device, Known):
        return None
    if device.value in CPU_DEVICES:
        return Built(own.on_cpu, offloaded=True)
    return Built(own.on_device)
