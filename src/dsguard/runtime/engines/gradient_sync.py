"""Whether a backward pass synchronises gradients over the ranks, read from what does it.

DDP decides in its forward, FSDP in the backward pass. What cannot be read is unknown, never
guessed: the names below are PyTorch's own and may be called otherwise in another release.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, Protocol

from dsguard.runtime.ranks import rank_and_world_size

if TYPE_CHECKING:
    from collections.abc import Iterator


class GradientSync(Protocol):
    """One way of averaging gradients, as it stands on a model."""

    name: str
    ranks: int
    """Ranks whose gradients are averaged, which consume different samples."""

    missing: str
    """Attributes of PyTorch that are not where they were; empty where all can be read."""

    harm: str
    """What becomes of a step without it; empty where nothing does, as on a single rank."""

    keeps_gradients: bool
    """Whether gradients that are not synchronised yet lie in ``parameter.grad``."""

    def forwarded(self) -> None:
        """A forward with gradients has run."""

    def synchronises(self) -> bool:
        """Asked once in each backward pass, at its start."""


class DdpSync:
    """``DistributedDataParallel``: armed by a forward outside ``no_sync()``.

    Its reducer waits for the next backward pass and is done with that: a second pass through
    the same forward is not synchronised.
    """

    name = "DDP"
    keeps_gradients = True

    def __init__(self, model: Any) -> None:
        self._model = weakref.ref(model)
        self._armed = False
        self.ranks = _size(getattr(model, "process_group", None))
        known = isinstance(getattr(model, "require_backward_grad_sync", None), bool)
        self.missing = "" if known else "require_backward_grad_sync"
        self.harm = "every rank goes on with weights of its own" if self.ranks > 1 else ""

    def forwarded(self) -> None:
        """Read the flag that ``no_sync()`` clears."""
        if getattr(self._model(), "require_backward_grad_sync", True):
            self._armed = True

    def synchronises(self) -> bool:
        """Whether a forward has armed the reducer for this pass."""
        armed, self._armed = self._armed, False
        return armed


class FsdpSync:
    """``FullyShardedDataParallel``: ``no_sync()`` clears a flag on every part of the model."""

    name = "FSDP"
    keeps_gradients = False

    def __init__(self, parts: list[Any]) -> None:
        self._parts = [weakref.ref(part) for part in parts]
        known = all(isinstance(getattr(part, _FSDP_FLAG, None), bool) for part in parts)
        self.missing = "" if known else _FSDP_FLAG
        root = parts[0]
        self.ranks = _size(getattr(root, "process_group", None))
        self.ranks *= _size(getattr(root, "_inter_node_pg", None))
        self.harm = (
            "the gradients are those of this rank alone, and do not fit its shard of the weights"
            if self.ranks > 1
            else ""
        )

    def forwarded(self) -> None:
        """Nothing depends on the forward."""

    def synchronises(self) -> bool:
        """Whether every part is going to reduce its gradients."""
        return all(getattr(part(), _FSDP_FLAG, True) for part in self._parts)


class Fsdp2Sync:
    """``fully_shard``: ``set_requires_gradient_sync`` sets a flag on every group of parameters.

    With replicas of the shards, the all-reduce between them has a flag of its own.
    """

    name = "FSDP2"
    keeps_gradients = False

    def __init__(self, parts: list[Any]) -> None:
        groups = [group for part in parts for group in _groups(part)]
        self._groups = [weakref.ref(group) for group in groups]
        known = groups and all(
            isinstance(getattr(group, flag, None), bool)
            for group in groups
            for flag in _FSDP2_FLAGS
        )
        self.missing = "" if known else f"_fsdp_param_group.{_FSDP2_FLAGS[0]}"
        self.ranks = max((_mesh_size(group) for group in groups), default=1)
        self.harm = (
            "the sharded weights are not moved by these gradients, or replicas of them drift apart"
        )

    def forwarded(self) -> None:
        """Nothing depends on the forward."""

    def synchronises(self) -> bool:
        """Whether every group is going to reduce its gradients, and over all replicas."""
        return all(_reduces(group()) for group in self._groups)


_FSDP_FLAG = "_sync_gradients"
_FSDP2_FLAGS = ("reduce_grads", "all_reduce_grads")


def find_syncs(model: Any) -> tuple[GradientSync, ...]:
    """What averages the gradients of this model or of parts of it; empty where nothing does."""
    syncs: list[GradientSync] = []
    fsdp: list[Any] = []
    fsdp2: list[Any] = []
    for part in model.modules():
        names = {cls.__name__ for cls in type(part).__mro__}
        if "DistributedDataParallel" in names:
            syncs.append(DdpSync(part))
        elif "FullyShardedDataParallel" in names:
            fsdp.append(part)
        elif "FSDPModule" in names:
            fsdp2.append(part)
    if fsdp:
        syncs.append(FsdpSync(fsdp))
    if fsdp2:
        syncs.append(Fsdp2Sync(fsdp2))
    return tuple(syncs)


def _groups(part: Any) -> Iterator[Any]:
    state = getattr(part, "_get_fsdp_state", lambda: None)()
    groups = getattr(state, "_fsdp_param_groups", None)
    if groups is None:  # releases with one group a module
        groups = [getattr(state, "_fsdp_param_group", None)]
    yield from (group for group in groups if group is not None)


def _reduces(group: Any) -> bool:
    if not getattr(group, "reduce_grads", True):
        return False
    return bool(getattr(group, "all_reduce_grads", True)) or not getattr(group, "_is_hsdp", False)


def _mesh_size(group: Any) -> int:
    mesh = getattr(getattr(group, "mesh_info", None), "mesh", None)
    return int(mesh.size()) if mesh is not None else world_size()


def _size(process_group: Any) -> int:
    if process_group is None:
        return 1
    import torch.distributed as dist

    return dist.get_world_size(process_group)


def world_size() -> int:
    """Ranks of the run; 1 without a process group."""
    return rank_and_world_size()[1]
