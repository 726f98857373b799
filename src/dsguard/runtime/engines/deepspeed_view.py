"""A DeepSpeed engine as rules see it, by what its release can do and not by its number."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dsguard.model.fact import FactName, Known, Origin, OriginKind
from dsguard.runtime.engines.deepspeed_bugs import bug_facts
from dsguard.runtime.loaded import release_of
from dsguard.runtime.ranks import rank_and_world_size
from dsguard.runtime.run import Boundary, said_by
from dsguard.runtime.wording import ENGINE

if TYPE_CHECKING:
    from dsguard.facts.known_bugs import BugFact

_FILLED_BY_FRONT_ENDS = (
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "gradient_clipping",
    "fp16.enabled",
    "bf16.enabled",
    "optimizer.params.lr",
    "optimizer.params.betas",
    "optimizer.params.eps",
    "optimizer.params.weight_decay",
    "scheduler.params.warmup_min_lr",
    "scheduler.params.warmup_max_lr",
    "scheduler.params.warmup_num_steps",
    "scheduler.params.total_num_steps",
    "zero_optimization.reduce_bucket_size",
    "zero_optimization.stage3_prefetch_bucket_size",
    "zero_optimization.stage3_param_persistence_threshold",
)
"""Keys that HF Trainer and Accelerate replace where they say ``auto``; DeepSpeed never does.

transformers, ``integrations/deepspeed.py``: ``HfTrainerDeepSpeedConfig``.
"""

_CONFIG_KEYS: dict[FactName, str] = {
    "train_batch_size": "train_batch_size",
    "micro_batch_size": "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "gradient_clipping": "gradient_clipping",
    "zero_stage": "zero_optimization.stage",
}


BOUNDARY = "_is_gradient_accumulation_boundary"
"""In the engine's ``__dict__``: what the script has declared, None where it has not."""

UNSYNCHRONISED = "inside_no_sync_ctxt"
"""In the engine's ``__dict__``: whether a backward pass leaves gradients as they are."""


class DeepSpeedView:
    """Implements :class:`dsguard.runtime.run.Engine` for ``DeepSpeedEngine`` and its subclasses."""

    words = ENGINE

    def __init__(self, engine: Any) -> None:
        self._ref = weakref.ref(engine)
        self.kind = type(engine).__name__
        self.zero_stage = int(engine.zero_optimization_stage())
        self.pipeline = any(cls.__name__ == "PipelineEngine" for cls in type(engine).__mro__)
        self._zenflow = bool(engine.__dict__.get("zenflow"))
        # The engine checks it against its other settings once, when it is made.
        managed = getattr(engine, "managed_gradient_accumulation", None)
        self.counts = Boundary.ENGINE if managed is None or managed() else Boundary.CALLER
        """Who decides where a window ends, unless the script says it itself."""
        # DeepSpeed 0.18.3 brought engine.scale(), and with it hooks on the engine's outputs.
        self._hooks_outputs = hasattr(type(engine), "scale")
        # Later it tells apart, by graph, what engine.backward() has divided already.
        self._tracks_graphs = hasattr(_module_of(type(engine)), "_ENGINE_BACKWARD_GRAPH_TRACKER")

    @property
    def engine(self) -> Any:
        """The live engine.

        Raises:
            ReferenceError: it is gone.
        """
        engine = self._ref()
        if engine is None:
            raise ReferenceError("the engine is gone")
        return engine

    @property
    def judgeable(self) -> bool:
        """False where the engine accumulates by rules of its own (ZenFlow)."""
        return not self._zenflow

    def accumulation(self) -> int:
        """``engine.gradient_accumulation_steps()``."""
        return int(self.engine.gradient_accumulation_steps())

    def micro_batch(self) -> int | None:
        """``engine.train_micro_batch_size_per_gpu()``."""
        size = self.engine.train_micro_batch_size_per_gpu()
        return size if isinstance(size, int) else None

    def boundary(self) -> Boundary:
        """Who decides where a window ends."""
        manual = self.engine.__dict__.get(BOUNDARY) is not None
        return Boundary.MANUAL if manual else self.counts

    def at_boundary(self) -> bool:
        """What the script has set through ``set_gradient_accumulation_boundary``."""
        return bool(self.engine.__dict__.get(BOUNDARY))

    def unsynchronised(self) -> bool:
        """Inside ``no_sync()`` or ``coalesce_grad_reduction()``."""
        return bool(self.engine.__dict__.get(UNSYNCHRONISED))

    def keeps_last_backward_only(self) -> bool:
        """ZeRO-1 and 2 since 0.18.3: each backward at a boundary overwrites the one before."""
        return self.zero_stage in (1, 2) and self._hooks_outputs

    def needs_engine_forward(self) -> str:
        """What a forward through ``engine.module`` costs; see :class:`Engine`."""
        if self.zero_stage == 3 and self._hooks_outputs:
            return "ZeRO-3 then keeps only the gradients of the last micro-batch"
        if self._hooks_outputs and not self._tracks_graphs:
            return "this release divides by the accumulation only what the engine returned"
        return ""

    def needs_engine_backward(self) -> str:
        """What ``loss.backward()`` costs; see :class:`Engine`."""
        if self._hooks_outputs:
            return ""  # supported, or refused by DeepSpeed itself
        if self.zero_stage == 0:
            return "gradients are neither averaged over the ranks nor divided by the accumulation"
        return "this release reduces gradients in engine.backward() only"

    def needs_boundary_in_backward(self) -> str:
        """What a boundary that is declared after the backward pass costs; see :class:`Engine`."""
        if self.zero_stage == 0:
            if self.data_parallel_size() < 2:
                return ""
            return "the gradients of the window are not averaged over the ranks, which drift apart"
        if self.zero_stage in (1, 2):
            return f"the step of ZeRO-{self.zero_stage} finds no gradients and stops with KeyError"
        return ""

    def release(self) -> str:
        """``deepspeed.__version__``; see :class:`Engine`."""
        return release_of("deepspeed") or ""

    def bug_facts(self) -> Mapping[BugFact, Any]:
        """The engine's own settings; see :class:`Engine`."""
        return bug_facts(self.engine, self.facts())

    def loses_gradients(self, owner: str) -> bool:
        """Whether ``zero_grad()`` of this owner throws away an open window.

        ``owner`` is ``engine``, ``optimizer`` (the engine's) or ``base`` (the one inside it).
        """
        engine = self.engine
        plain = engine.optimizer is engine.basic_optimizer
        lossy = {
            0: ("engine", "optimizer", "base") if plain else ("engine", "optimizer"),
            1: ("engine", "optimizer"),
            3: ("optimizer",),
        }
        return owner in lossy.get(self.zero_stage, ())

    def needs_synchronised_step(self) -> str:
        """Nothing that a loop could get wrong: ``step()`` inside ``no_sync()`` is refused."""
        return ""

    def synchronisation_unseen(self) -> str:
        """DeepSpeed synchronises at the boundary, or refuses."""
        return ""

    def foreign_optimizer(self) -> str:
        """DeepSpeed replaces the parameters in the optimizer it is given."""
        return ""

    def leftover_auto(self) -> tuple[str, ...]:
        """Keys of the engine's config that still say ``auto``."""
        config = self._config()
        return tuple(key for key in _FILLED_BY_FRONT_ENDS if _written(config, key) == "auto")

    def loader_length(self) -> int | None:
        """Batches in one pass over ``engine.training_dataloader``."""
        loader = self.engine.__dict__.get("training_dataloader")
        try:
            return len(loader) if loader is not None else None
        except TypeError:
            return None

    def loss_scale(self) -> float:
        """What the engine multiplies a loss by now; 1 without loss scaling."""
        optimizer = self.engine.optimizer
        # ZeRO's optimizers keep a scaler, those of ZeRO-0 its settings.
        scalers = (getattr(optimizer, name, None) for name in ("loss_scaler", "loss_scale_config"))
        for owner in (*scalers, optimizer):
            scale = getattr(owner, "cur_scale", None)
            if isinstance(scale, (int, float)) and scale > 0:
                return float(scale)
        return 1.0

    def facts(self) -> Mapping[FactName, Known]:
        """What the engine answers now, with the origin its config shows."""
        return dict(self._facts())

    def data_parallel_size(self) -> int:
        """Ranks that consume different samples."""
        return int(getattr(self.engine, "dp_world_size", 1) or 1)

    def config_blocks(self) -> Mapping[str, Any]:
        """The engine's config by top-level key."""
        return dict(self._config())

    def _facts(self) -> Iterator[tuple[FactName, Known]]:
        engine, config = self.engine, self._config()
        values: dict[FactName, Any] = {
            "train_batch_size": engine.train_batch_size(),
            "micro_batch_size": engine.train_micro_batch_size_per_gpu(),
            "gradient_accumulation_steps": engine.gradient_accumulation_steps(),
            "gradient_clipping": engine.gradient_clipping(),
            "zero_stage": self.zero_stage,
        }
        for name, value in values.items():
            if isinstance(value, float) and name != "gradient_clipping" and value.is_integer():
                value = int(value)  # divided with a slash where sequences are split over ranks
            key = _CONFIG_KEYS[name]
            if _written(config, key) == value:
                yield name, Known(value, said_by(f"engine.config: {key}"))
            elif name in ("train_batch_size", "micro_batch_size", "gradient_accumulation_steps"):
                yield name, Known(value, said_by(f"engine.{_METHODS[name]}()"))
            else:
                yield name, Known(value, Origin(OriginKind.DEFAULT, whose="DeepSpeed"))
        base = engine.basic_optimizer
        if base is not None:
            yield "optimizer", Known(type(base).__name__, said_by("the engine's optimizer"))
        yield "precision", Known(self._precision(), said_by("the engine's own precision"))
        ranks = said_by("the engine's process group")
        yield "data_parallel_size", Known(self.data_parallel_size(), ranks)
        yield "world_size", Known(rank_and_world_size()[1], ranks)

    def _precision(self) -> str:
        engine = self.engine
        if engine.bfloat16_enabled():
            return "bf16"
        return "fp16" if engine.fp16_enabled() else "fp32"

    def _config(self) -> Mapping[str, Any]:
        config = getattr(self.engine.__dict__.get("_config"), "_param_dict", None)
        return config if isinstance(config, Mapping) else {}


_METHODS: dict[FactName, str] = {
    "train_batch_size": "train_batch_size",
    "micro_batch_size": "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
}


def _written(config: Mapping[str, Any], dotted: str) -> Any:
    value: Any = config
    for key in dotted.split("."):
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def _module_of(cls: type) -> Any:
    import sys

    engine = next((c for c in cls.__mro__ if c.__name__ == "DeepSpeedEngine"), cls)
    return sys.modules.get(engine.__module__)
