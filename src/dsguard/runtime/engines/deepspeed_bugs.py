"""What a DeepSpeed engine can tell the table of known bugs about itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dsguard.facts.dtypes import canonical
from dsguard.runtime.loaded import release_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dsguard.facts.known_bugs import BugFact
    from dsguard.model.fact import FactName, Known


def bug_facts(engine: Any, known: Mapping[FactName, Known]) -> Mapping[BugFact, Any]:
    """The facts of ``known``, and settings that only matter to the table.

    A setting that the engine's release does not have is left out, so that rows about it say
    nothing.
    """
    facts: dict[BugFact, Any] = {name: fact.value for name, fact in known.items()}
    facts.update(_settings(engine))
    return facts


def _settings(engine: Any) -> Iterator[tuple[BugFact, Any]]:
    config = engine.__dict__.get("_config")
    zero = getattr(config, "zero_config", None)
    if zero is not None:
        yield "offload_optimizer", _device(getattr(zero, "offload_optimizer", None))
        yield "offload_param", _device(getattr(zero, "offload_param", None))
        yield "zero_hpz_partition_size", getattr(zero, "zero_hpz_partition_size", 1)
    if hasattr(config, "grad_accum_dtype"):
        dtype = config.grad_accum_dtype
        yield "grad_accum_dtype", None if dtype is None else canonical(dtype)
    # A switch of the config itself until the bf16 block became a model of its own.
    owner = getattr(config, "bfloat16_config", None)
    at_once = getattr(owner, "immediate_grad_update", None)
    if at_once is None:
        at_once = getattr(config, "bfloat16_immediate_grad_update", None)
    if at_once is not None:
        yield "immediate_grad_update", bool(at_once)
    optimizer = _optimizer(engine, config)
    if optimizer is not None:
        yield "optimizer", optimizer
    for package in ("transformers", "accelerate"):
        version = release_of(package)
        if version is not None:
            yield f"{package}_version", version  # type: ignore[misc]


def _device(offload: Any) -> str:
    """``none``, ``cpu`` or ``nvme``: where an offload block sends things."""
    device = getattr(offload, "device", None)
    return str(getattr(device, "value", device) or "none")


def _optimizer(engine: Any, config: Any) -> str | None:
    """The type of the config's optimizer block, else the class that the script has passed."""
    named = getattr(config, "optimizer_name", None)
    if isinstance(named, str):
        return named
    basic = getattr(engine, "basic_optimizer", None)
    return None if basic is None else type(basic).__name__
