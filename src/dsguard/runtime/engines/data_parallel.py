"""Putting a guard on a model under DDP, FSDP or ``fully_shard``, and on its optimizer."""

from __future__ import annotations

import sys
import weakref
from typing import TYPE_CHECKING, Any

from dsguard.runtime.engines.data_parallel_hooks import DataParallelHooks
from dsguard.runtime.engines.data_parallel_view import DataParallelView, data_parallel_size
from dsguard.runtime.engines.gradient_sync import find_syncs, world_size
from dsguard.runtime.engines.script import highest_learning_rate, length_of
from dsguard.runtime.fingerprint import Fingerprint
from dsguard.runtime.session import Guard, start

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dsguard.runtime.engines.tap import Tap
    from dsguard.runtime.expectation import Expectation
    from dsguard.runtime.plan import Plan

_STEP_HOOKS = ("register_step_pre_hook", "register_step_post_hook")


def recognises(model: Any) -> bool:
    """Whether it is a PyTorch module; :func:`attach` says what it lacks."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def attach(model: Any, plan: Plan) -> Guard:
    """Hook a guard onto the model and its optimizer, and ask the rules of the moment of attaching.

    Raises:
        TypeError: there is no optimizer, or nothing that synchronises the ranks there are.
    """
    optimizer = _optimizer(model, plan.optimizer)
    syncs = find_syncs(model)
    if not syncs and world_size() > 1:
        raise TypeError(
            f"{type(model).__name__} is under neither DDP nor FSDP, and {world_size()} ranks run: "
            "nothing averages its gradients. Wrap it first and guard what DDP(model), FSDP(model) "
            "or fully_shard(model) returned, or what deepspeed.initialize returned first"
        )
    ranks = data_parallel_size(syncs)
    expected = plan.expectation(ranks).completed(ranks)
    view = DataParallelView(model, optimizer, syncs, expected)
    alive = weakref.ref(optimizer)  # in each of its steps

    def hooks(tap: Tap) -> None:
        tap.fingerprint = Fingerprint(model.parameters(), _values, tap.later)
        DataParallelHooks(model, optimizer, view, tap)

    return start(
        model,
        view,
        expected,
        plan,
        hooks=hooks,
        learning_rate=lambda: highest_learning_rate(alive()),
        data_parallel_size=ranks,
        told=lambda: _told(view, expected, plan.dataloader),
    )


def _optimizer(model: Any, optimizer: Any) -> Any:
    """The optimizer that really steps: Accelerate and others put wrappers around it."""
    inner = getattr(optimizer, "optimizer", None)
    if inner is not None and all(hasattr(inner, name) for name in _STEP_HOOKS):
        optimizer = inner
    if optimizer is None:
        raise TypeError(
            f"{type(model).__name__} is a module: say guard(model, optimizer=...), or pass what "
            "deepspeed.initialize returned first"
        )
    if not all(hasattr(optimizer, name) for name in _STEP_HOOKS):
        raise TypeError(
            f"guard(optimizer=...) takes a torch.optim.Optimizer, not a {type(optimizer).__name__}"
        )
    return optimizer


def _values(parameter: Any) -> Any:
    """The tensor that holds this rank's share of a parameter."""
    return parameter.to_local() if hasattr(parameter, "to_local") else parameter


def _told(view: DataParallelView, expected: Expectation, dataloader: Any) -> Mapping[str, Any]:
    """What this rank is about to do, for the others to compare."""
    told: dict[str, Any] = {name: known.value for name, known in view.facts().items()}
    told |= {name: asked.value for name, asked in expected.asked.items()}
    told["learning_rate"] = highest_learning_rate(view.optimizer)
    told["dataloader_length"] = length_of(dataloader)
    if view.ranks == world_size() and view.keeps_gradients():
        # The stages of a pipeline hold different parameters, and so do the shards of FSDP.
        told["trainable_parameters"] = sum(
            parameter.numel() for parameter in view.model.parameters() if parameter.requires_grad
        )
    return told
