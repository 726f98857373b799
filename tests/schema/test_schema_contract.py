"""Our models against DeepSpeed's own: the same keys, spellings, defaults and bounds."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from typing import Any

import pytest
from annotated_types import Ge, Gt, Le, Lt

from dsguard.schema.block import Block, CheckedBlock
from dsguard.schema.comms_logger import CommsLogger
from dsguard.schema.compile import Compile
from dsguard.schema.config import Config
from dsguard.schema.history import NEWEST_KNOWN
from dsguard.schema.hybrid_engine import HybridEngine
from dsguard.schema.keys import all_keys, find
from dsguard.schema.monitor import Comet, CsvMonitor, TensorBoard, WandB
from dsguard.schema.precision import Bf16, Fp16
from dsguard.schema.releases import as_of
from dsguard.schema.shape import fields_of
from dsguard.schema.tensor_parallel import TensorParallel, TensorParallelGroup
from dsguard.schema.timers import Throughput
from dsguard.schema.weight_quantization import WeightQuantization
from dsguard.schema.zenflow import ZenFlow
from dsguard.schema.zero import LeafModule, OffloadOptimizer, OffloadParam, ZeroOptimization
from tests.schema.configs import BATCH, WRITTEN, whole_config

pytestmark = pytest.mark.deepspeed
pytest.importorskip("deepspeed")

THEIRS: dict[type[CheckedBlock], str] = {
    CommsLogger: "comm.config:CommsLoggerConfig",
    Compile: "compile.config:CompileConfig",
    HybridEngine: "runtime.config:HybridEngineConfig",
    TensorBoard: "monitor.config:TensorBoardConfig",
    WandB: "monitor.config:WandbConfig",
    CsvMonitor: "monitor.config:CSVConfig",
    Comet: "monitor.config:CometConfig",
    Fp16: "runtime.precision_config:DeepSpeedFP16Config",
    Bf16: "runtime.precision_config:DeepSpeedBF16Config",
    TensorParallel: "runtime.tensor_parallel.config:TPTrainingConfig",
    TensorParallelGroup: "runtime.tensor_parallel.config:TPConfig",
    Throughput: "utils.config:DeepSpeedThroughputTimerConfig",
    WeightQuantization: "inference.config:WeightQuantConfig",
    ZenFlow: "runtime.zenflow.zenflow_config:ZenFlowConfig",
    OffloadParam: "runtime.zero.offload_config:DeepSpeedZeroOffloadParamConfig",
    OffloadOptimizer: "runtime.zero.offload_config:DeepSpeedZeroOffloadOptimizerConfig",
    LeafModule: "runtime.zero.leaf_module_config:DeepSpeedZeroLeafModuleConfig",
    ZeroOptimization: "runtime.zero.config:DeepSpeedZeroConfig",
}


def described(block: type[CheckedBlock]) -> dict[str, Any]:
    """Fields of a block in a form that it can be compared by with DeepSpeed's model."""
    return {
        facts.attribute: (
            facts.name if facts.name != facts.attribute else None,
            plain(facts.default),
            sorted(f"{bound.sign} {bound.number:g}" for bound in facts.shape.bounds),
        )
        for facts in fields_of(block).values()
    }


def described_by_deepspeed(model: Any) -> dict[str, Any]:
    return {
        name: (
            info.alias,
            plain(info.get_default(call_default_factory=True)),
            sorted(limit(m) for m in info.metadata if isinstance(m, Ge | Gt | Le | Lt)),
        )
        for name, info in model.model_fields.items()
    }


def limit(mark: Ge | Gt | Le | Lt) -> str:
    sign = type(mark).__name__.lower()
    return f"{sign} {getattr(mark, sign):g}"


def plain(default: Any) -> Any:
    if isinstance(default, Enum):
        return default.value
    if hasattr(default, "model_fields_set"):
        return {}
    if type(default).__name__ == "dtype":
        return str(default)
    return default


@pytest.mark.parametrize("ours", THEIRS, ids=lambda model: model.__name__)
def test_a_checked_block_has_the_fields_of_deepspeeds_model(ours: type[CheckedBlock]) -> None:
    module, name = THEIRS[ours].split(":")
    theirs = getattr(import_module(f"deepspeed.{module}"), name)
    assert described(as_of(ours, NEWEST_KNOWN)) == described_by_deepspeed(theirs)


def test_every_checked_block_is_compared() -> None:
    ours = {block.with_history or block for block in blocks(as_of(Config, NEWEST_KNOWN))}
    assert {block for block in ours if issubclass(block, CheckedBlock)} == set(THEIRS)


def blocks(block: type[Block]) -> Iterator[type[Block]]:
    yield block
    for facts in fields_of(block).values():
        for inner in (facts.shape.block, facts.shape.blocks):
            if inner is not None:
                yield from blocks(inner)


class Recorder(dict[str, Any]):
    """An object that notes which of its keys somebody asks for."""

    def __init__(self, content: dict[str, Any], dotted: str, asked: set[str]) -> None:
        super().__init__(
            {
                key: Recorder(value, f"{dotted}{key}.", asked) if isinstance(value, dict) else value
                for key, value in content.items()
            }
        )
        self._dotted, self._asked = dotted, asked

    def _note(self, key: Any) -> None:
        self._asked.add(f"{self._dotted}{key}")

    def get(self, key: str, default: Any = None) -> Any:
        self._note(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self._note(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._note(key)
        return super().__contains__(key)

    def keys(self) -> Any:
        return self

    def __copy__(self) -> Recorder:
        copied = Recorder({}, self._dotted, self._asked)
        copied.update(self)
        return copied


def asked_for(config: dict[str, Any]) -> set[str]:
    import copy

    from tests.oracle import refuses

    asked: set[str] = set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(copy, "deepcopy", lambda value: value)
        assert refuses(Recorder(config, "", asked)) is None
    return asked


def test_every_key_that_deepspeed_asks_for_is_known() -> None:
    from deepspeed.runtime import config as real

    gone = set(real._REMOVED_TOP_LEVEL_CONFIG_KEYS) | {
        f"zero_optimization.{key}" for key in real._REMOVED_ZERO_CONFIG_KEYS
    }
    asked = set().union(*(asked_for(c) for c in (whole_config(), *(BATCH | w for w in WRITTEN))))
    assert len(asked) > 150
    assert {key for key in asked - gone if find(key) is None} == set()


def test_every_removed_key_that_deepspeed_refuses_is_known() -> None:
    from deepspeed.runtime import config as real

    theirs = set(real._REMOVED_TOP_LEVEL_CONFIG_KEYS) | {
        f"zero_optimization.{key}" for key in real._REMOVED_ZERO_CONFIG_KEYS
    }
    ours = {
        key.dotted
        for key in all_keys(None)
        if key.refused_when_gone and key.removed and key.removed <= NEWEST_KNOWN
    }
    assert ours == theirs


def test_defaults_of_unchecked_keys_are_those_deepspeed_uses() -> None:
    from unittest import mock

    from deepspeed.runtime import config as real

    with mock.patch.object(real.dist, "get_world_size", return_value=1):
        made = real.DeepSpeedConfig(dict(BATCH))
    for name in [
        "steps_per_print",
        "dump_state",
        "disable_python_gc",
        "disable_allgather",
        "prescale_gradients",
        "gradient_predivide_factor",
        "gradient_allreduce_op",
        "gradient_clipping",
        "memory_breakdown",
        "managed_gradient_accumulation",
        "zero_allow_untested_optimizer",
        "log_level",
        "zero_force_ds_cpu_optimizer",
        "dataloader_drop_last",
        "wall_clock_breakdown",
    ]:
        known = find(name)
        assert known is not None
        assert known.default == getattr(made, name), name
    for block, values in (
        ("expert_parallel", vars(made.expert_parallel_config)),
        ("aio", made.aio_config),
        ("flops_profiler", vars(made.flops_profiler_config)),
        ("activation_checkpointing", vars(made.activation_checkpointing_config)),
        ("autotuning", vars(made.autotuning_config)),
        ("pipeline", made.pipeline),
    ):
        for name, value in values.items():
            known = find(f"{block}.{name}")
            if known is not None and name not in ("expert_w3", "model_info"):
                assert known.default == value, f"{block}.{name}"


def test_all_keys_have_a_sentence_of_documentation() -> None:
    bare = [
        info.dotted for info in all_keys() if not (info.doc[:1].strip() and info.doc[-1] == ".")
    ]
    assert bare == []
