"""Settings that fail together or do nothing, put before the parts of DeepSpeed that use them.

One rank on a CPU cannot build most of these engines, so each part is asked alone: the real
function that the engine calls, with the fixture's config read by the real ``DeepSpeedConfig`` for
4 ranks. What an engine of one rank can show is asked with ``deepspeed.initialize``.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from tests.conftest import FIXTURES
from tests.contract.rule_cases import TARGET
from tests.engine import Verdict, initialize_all
from tests.test_fixture_oracle import installed, read

pytestmark = [
    pytest.mark.deepspeed,
    pytest.mark.skipif(
        installed() != TARGET, reason=f"the fixtures are judged by DeepSpeed {TARGET}"
    ),
]

RANKS = 4
FAILING = FIXTURES / "rules" / "failing-combination"
UNUSED = FIXTURES / "rules" / "unused-setting"


class ReachedError(Exception):
    """The checks are over and the engine would go on."""


@contextmanager
def ranks_of_an_engine() -> Iterator[None]:
    from tests.oracle import ranks

    with ranks(RANKS):
        yield


def engine_of(config: dict[str, Any]) -> Any:
    """An engine that has read its config and done nothing else yet."""
    import torch
    from deepspeed.runtime.config import DeepSpeedConfig
    from deepspeed.runtime.engine import DeepSpeedEngine

    engine = DeepSpeedEngine.__new__(DeepSpeedEngine)
    torch.nn.Module.__init__(engine)
    object.__setattr__(engine, "_config", DeepSpeedConfig(dict(config)))
    vars(engine).update(
        config=config,
        mpu=None,
        global_rank=0,
        local_rank=-1,
        client_optimizer=None,
        first_dataloader_check=None,
        is_compiled=False,
        _is_compiled=False,
        _compile_mode=None,
        has_moe_layers=True,
        sequence_parallel_size=config.get("sequence_parallel_size", 1),
        _deepcompile_active=False,
    )
    vars(engine)["_autoep_sequence_parallel_world_size"] = lambda: (
        config["sequence_parallel_size"] if "data_parallel_size" in config else 1
    )
    return engine


def folds_experts(config: dict[str, Any]) -> None:
    from deepspeed.runtime import engine as module

    engine = engine_of(config)
    with mock.patch.object(
        module.groups, "_create_expert_and_data_parallel", side_effect=ReachedError
    ):
        engine._configure_expert_parallel(SimpleNamespace())


def experts_at_stage_3(config: dict[str, Any]) -> None:
    import torch
    from deepspeed.module_inject.auto_ep_layer import AutoEPMoELayer

    class Layer(AutoEPMoELayer):  # type: ignore[misc]
        def __init__(self) -> None:
            torch.nn.Module.__init__(self)

    engine = engine_of(config)
    engine.module = torch.nn.Sequential(Layer())
    engine._validate_zero3_moe_compatibility()


def shards_tensors(config: dict[str, Any]) -> None:
    from deepspeed.runtime import engine as module

    engine = engine_of(config)
    model = SimpleNamespace(modules=lambda: iter(()))
    tensor_parallel = engine._config.tensor_parallel_config
    with mock.patch.object(module.groups, "get_tensor_model_parallel_group", return_value=None):
        engine._apply_autotp_partitioning(model, tensor_parallel)


def compiles(config: dict[str, Any]) -> Any:
    """What ``engine.compile()`` makes of the config: a backend, or None for plain torch."""
    from deepspeed.compile import init_z1_and_2, init_z3
    from deepspeed.module_inject.layers import LinearLayer

    engine = engine_of(config)
    layer = LinearLayer.__new__(LinearLayer)
    import torch

    torch.nn.Module.__init__(layer)
    layer.mp_group = object()
    engine.module = torch.nn.Sequential(layer)
    engine.module.compile = mock.Mock()
    engine.optimizer = SimpleNamespace(optimizer=None)
    for name in ("initialize_deepcompile_native", "deactivate_deepcompile"):
        vars(engine)[f"_{name}"] = mock.MagicMock()
    vars(engine)["_set_deepcompile_active"] = mock.MagicMock()
    vars(engine)["zero_use_cpu_optimizer"] = lambda: (
        engine.zero_offload_optimizer() is not None
        and engine.zero_offload_optimizer().device in ("cpu", "nvme")
    )
    overlaps = engine._config.tensor_parallel_config.tp_overlap_comm
    with (
        mock.patch.object(LinearLayer, "tp_overlap_comm", overlaps, create=True),
        mock.patch.object(init_z1_and_2, "init_z1_and_2", side_effect=ReachedError),
        mock.patch.object(init_z3, "DeepSpeedZeRoOffload", SimpleNamespace),
    ):
        engine.compile(backend="inductor")
    return engine.module.compile.call_args.kwargs["backend"]


def samples(config: dict[str, Any]) -> None:
    """The scheduler and the keys that the sampler of a loader takes of every metric."""
    from deepspeed.runtime.data_pipeline.curriculum_scheduler import CurriculumScheduler

    learning = config["data_efficiency"]["data_sampling"]["curriculum_learning"]
    for metric in learning["curriculum_metrics"].values():
        CurriculumScheduler(metric)
        metric["difficulty_type"], metric["clustering_type"]


CHECKS: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "tensor-parallel-two-sizes": (shards_tensors, "does not match tensor_parallel.autotp_size"),
    "tensor-parallel-partition-type": (shards_tensors, "is not a valid PartitionType"),
    "experts-limited-groups": (folds_experts, "must be <= num_expert_groups"),
    "experts-fused-gate-up": (folds_experts, "use_grouped_mm=false"),
    "experts-deepep-tokens": (folds_experts, "comm_max_tokens_per_rank must be a positive"),
    "experts-fused-rows": (folds_experts, "only runs inside the DeepEP route"),
    "experts-fused-rows-on-one-rank": (folds_experts, "autoep_size=1"),
    "experts-fused-sum": (folds_experts, 'cannot be used with comm_backend="deepep"'),
    "folding-deepcompile": (folds_experts, "DeepCompile with AutoEP"),
    "folding-order-of-groups": (folds_experts, "use_data_before_expert_parallel_"),
    "folding-sequence-parallel": (folds_experts, "mutually exclusive"),
    "folding-experts-on-one-rank": (folds_experts, "requires expert_parallel.autoep_size > 1"),
    "folding-async-plan": (folds_experts, "async_split_plan"),
    "folding-fused-sum": (folds_experts, "does not support folded tensor parallelism"),
    "folding-offload": (folds_experts, "offload with AutoEP"),
    "folding-two-presets": (folds_experts, "must match when both"),
    "stage-3-quantized-gradients": (experts_at_stage_3, "zero_quantized_gradients"),
    "stage-3-hpz": (experts_at_stage_3, "hpZeRO secondary"),
    "compile-autotp-with-zero-pass": (compiles, "cannot yet be combined with AutoSP"),
    "compile-autotp-with-overlap": (compiles, "does not support tp_overlap_comm"),
    "compile-states-offloaded-twice": (compiles, "offload_opt_states cannot be combined"),
    "compile-states-and-parameters": (compiles, "cannot be enabled together"),
    "compile-activation-and-parameters": (compiles, "offload_activation cannot be combined"),
    "compile-around-experts-deepcompile": (compiles, "cannot be combined with DeepCompile"),
    "compile-around-experts-stage-3": (compiles, "does not support ZeRO Stage 3"),
    "compile-around-experts-offload": (compiles, "does not support optimizer or parameter"),
    "curriculum-without-end": (samples, "requires the config 'max_difficulty'"),
    "curriculum-without-clustering": (samples, "clustering_type"),
    "curriculum-without-root-degree": (samples, "requires the schedule_config 'root_degree'"),
    "curriculum-phases": (samples, "AssertionError: "),
}
"""Which part of DeepSpeed stops over a fixture, and the words that show why."""

ON_THE_CPU = FIXTURES / "rules" / "refused-by-cpu"
CPU_REFUSES = {
    "gds": "GDS currently only supported for CUDA",
    "super-offload": "AssertionError",
}
"""What the CPU accelerator, which every test here uses, says to the fixtures about it."""

BY_ONE_RANK = {
    "precision-two-master-weights": "are mutually exclusive",
    "random-ltd-learning-rate": "NotImplementedError",
}
"""What an engine of one rank can show; the words are part of its complaint."""

OLD = {
    "amp-with-zero",
    "amp-with-fp16",
    "compile-without-stage-1-or-3",
    "curriculum-of-old-releases",
}
"""Fixtures about releases that are not installed."""


def complaint(name: str, kind: str) -> str:
    check, _ = CHECKS[name]
    try:
        with ranks_of_an_engine():
            check(read(FAILING / kind / f"{name}.json"))
    except ReachedError:
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def has(kind: str, name: str) -> bool:
    return (FAILING / kind / f"{name}.json").is_file()


@pytest.mark.parametrize("name", CHECKS)
def test_a_bad_one_fails_for_that_reason(name: str) -> None:
    assert CHECKS[name][1] in complaint(name, "bad")


@pytest.mark.parametrize("name", [name for name in CHECKS if has("good", name)])
def test_a_good_one_does_not(name: str) -> None:
    assert CHECKS[name][1] not in complaint(name, "good")


@pytest.mark.parametrize("name", BY_ONE_RANK)
def test_an_engine_of_one_rank_agrees(name: str, verdicts: dict[str, Verdict]) -> None:
    assert BY_ONE_RANK[name] in verdicts[f"bad/{name}"].complaint
    assert verdicts[f"good/{name}"].ok, verdicts[f"good/{name}"].complaint


EXPERTS = FIXTURES / "rules" / "expert-parallel-not-dividing-world"


@pytest.mark.parametrize("name", ["bad/three-on-four", "bad/eight-on-four"])
def test_experts_are_spread_over_whole_groups(name: str) -> None:
    with ranks_of_an_engine(), pytest.raises(ValueError, match="must divide the stage size"):
        folds_experts(read(EXPERTS / f"{name}.json"))
    with ranks_of_an_engine(), pytest.raises(ReachedError):
        folds_experts(read(EXPERTS / "good" / "three-on-four.json"))


@pytest.mark.parametrize(
    ("name", "rank", "error"),
    [
        ("bad/mesh-too-large", 0, "RuntimeError"),
        ("bad/mesh-too-small", 3, "IndexError"),
        ("good/mesh-too-large", 3, ""),
    ],
)
def test_a_mesh_is_made_of_all_ranks(name: str, rank: int, error: str) -> None:
    config = read(FIXTURES / "rules" / "sequence-parallel-not-dividing-world" / f"{name}.json")
    sizes = config["data_parallel_size"], config["sequence_parallel_size"]
    done = subprocess.run(
        [sys.executable, "-c", MESH, str(rank), *map(str, sizes)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip().splitlines()[-1:] == [error or "made"]


MESH = """
import sys
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

rank, *sizes = map(int, sys.argv[1:])
dist.init_process_group("fake", rank=rank, world_size=4, store=FakeStore())
names = ("data_parallel", "sequence_parallel")
try:
    init_device_mesh("cpu", tuple(sizes), mesh_dim_names=names).get_group("data_parallel")
    print("made")
except Exception as error:
    print(type(error).__name__)
"""
"""What ``initialize`` does with both sizes, as one of four ranks that do not talk."""


def test_one_size_alone_makes_a_fraction() -> None:
    from tests.oracle import resolved

    folder = FIXTURES / "rules" / "sequence-parallel-not-dividing-world"
    total, micro, _ = resolved(read(folder / "bad" / "three-on-four.json"), RANKS)
    assert total / micro == pytest.approx(RANKS / 3)


def test_the_engine_does_not_configure_checkpointing() -> None:
    """No code outside deepspeed.checkpointing asks for the block or calls configure()."""
    import deepspeed

    root = Path(deepspeed.__file__).parent
    found = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(
            r"activation_checkpointing_config\b|checkpointing\.configure\(",
            path.read_text(encoding="utf-8"),
        )
    }
    assert found == {
        "runtime/config.py",
        "runtime/activation_checkpointing/checkpointing.py",
    } | (found & {"__init__.py"})


@pytest.mark.parametrize(
    "name", ["bad/contiguous-without-number", "good/contiguous-without-number"]
)
def test_configure_asks_for_what_one_buffer_needs(name: str) -> None:
    from deepspeed.runtime.activation_checkpointing import checkpointing

    config = read(FIXTURES / "rules" / "activation-checkpointing-not-applied" / f"{name}.json")
    with ranks_of_an_engine():
        if name.startswith("good"):
            checkpointing.configure(None, config)
            return
        with pytest.raises(AssertionError, match="Must specify the number of layers"):
            checkpointing.configure(None, config)


def test_every_fixture_is_asked() -> None:
    assert {path.stem for path in (FAILING / "bad").glob("*.json")} == {
        *CHECKS,
        *BY_ONE_RANK,
        *OLD,
    }


@pytest.mark.parametrize(
    "name",
    [
        "deepcompile-without-zero",
        "deepcompile-autosp-at-stage-2",
        "deepcompile-autotp-without-ranks",
    ],
)
def test_deepcompile_becomes_plain_torch(name: str) -> None:
    with ranks_of_an_engine():
        assert compiles(read(UNUSED / "bad" / f"{name}.json")) == "inductor"


def test_offload_turns_the_compile_option_on() -> None:
    config = read(UNUSED / "bad" / "deepcompile-turns-offload-on.json")
    with ranks_of_an_engine():
        engine = engine_of(config)
        vars(engine)["zero_use_cpu_optimizer"] = lambda: True
        vars(engine)["_initialize_deepcompile_native"] = mock.Mock(side_effect=ReachedError)
        engine.optimizer = SimpleNamespace()
        with pytest.raises(ReachedError):
            engine.get_deepcompile_backend("inductor", {}, None)
    assert engine._config.compile_config.offload_parameters is True


ASKED = (
    "optimizer.cpu_offload",
    "optimizer.contiguous_gradients",
    "optimizer.prefetch_elements",
    "optimizer.fused_adam_legacy",
    "basic_optimizer.fp32_optimizer_states",
    "lr_scheduler.warmup_num_steps",
    "lr_scheduler.cycle_momentum",
    "wall_clock_breakdown",
)
SEEN = {
    "offload-without-device": ("bad", {"optimizer.cpu_offload": False}),
    "offload-without-device (device given)": ("good", {"optimizer.cpu_offload": True}),
    "contiguous-gradients": ("bad", {"optimizer.contiguous_gradients": True}),
    "contiguous-gradients (no offload)": ("good", {"optimizer.contiguous_gradients": False}),
    "prefetch-bucket": ("bad", {"optimizer.prefetch_elements": 1}),
    "master-weights": ("bad", {"dtype": "float32"}),
    "optimizer-states": ("bad", {"basic_optimizer.fp32_optimizer_states": False}),
    "warm-up-of-one-step": ("bad", {"lr_scheduler.warmup_num_steps": 2}),
    "momentum-of-sgd": ("bad", {"lr_scheduler.cycle_momentum": False}),
    "wall-clock-breakdown": ("bad", {"wall_clock_breakdown": True}),
    "legacy-fusion": ("bad", {"optimizer.fused_adam_legacy": None}),
    "legacy-fusion (stage 0)": ("good", {"optimizer.fused_adam_legacy": True}),
}
"""What the engine says of itself, for a bad fixture or its good neighbour."""


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Verdict]:
    """All configs that need a whole engine, asked in one process."""
    paths = {
        f"{kind}/{name}": FAILING / kind / f"{name}.json"
        for name in BY_ONE_RANK
        for kind in ("bad", "good")
    }
    paths |= {
        name: UNUSED / kind / f"{name.partition(' (')[0]}.json" for name, (kind, _) in SEEN.items()
    }
    for name in CPU_REFUSES:
        for kind in ("bad", "good"):
            paths[f"cpu/{kind}/{name}"] = ON_THE_CPU / kind / f"{name}.json"
    answers = initialize_all([read(path) for path in paths.values()], ask=ASKED)
    return dict(zip(paths, answers, strict=True))


@pytest.mark.parametrize("name", CPU_REFUSES)
def test_the_cpu_refuses_it(name: str, verdicts: dict[str, Verdict]) -> None:
    assert CPU_REFUSES[name] in verdicts[f"cpu/bad/{name}"].complaint


def test_fp16_on_the_cpu_depends_on_the_processor() -> None:
    """The reason why refused-by-cpu does not judge it since 0.16.8."""
    import torch
    from deepspeed.accelerator import get_accelerator

    takes_it = bool(torch.ops.mkldnn._is_mkldnn_fp16_supported())
    assert (torch.float16 in get_accelerator().supported_dtypes()) is takes_it


@pytest.mark.parametrize("name", SEEN)
def test_the_engine_goes_on_with_another_value(name: str, verdicts: dict[str, Verdict]) -> None:
    wanted, verdict = SEEN[name][1], verdicts[name]
    assert verdict.ok, verdict.complaint
    said = {"dtype": verdict.dtype, **verdict.values}
    assert {key: said.get(key) for key in wanted} == wanted


def test_another_preset_is_none() -> None:
    from deepspeed.module_inject.autotp_config import AutoTPPresets

    from dsguard.schema.effect import AUTOTP_PRESETS

    assert AutoTPPresets.get_preset("llama3") is None
    assert all(AutoTPPresets.get_preset(name) is not None for name in AUTOTP_PRESETS)


def test_cuda_graphs_have_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    from deepspeed.runtime import hybrid_engine_graph as module

    cuda = SimpleNamespace(is_available=lambda: True, device_name=lambda: "cuda")
    monkeypatch.setattr(module, "get_accelerator", lambda: cuda)
    for kind, supported in (("bad", False), ("good", True)):
        for name in ("cuda-graph-at-stage-3", "cuda-graph-with-released-cache"):
            with ranks_of_an_engine():
                config = engine_of(read(UNUSED / kind / f"{name}.json"))._config
            answer = module.validate_cuda_graph_support(
                config.hybrid_engine, config.zero_config.stage
            )
            assert (answer is None) is supported


NEVER_READ = {
    r"\.zero_allgather_partitions\(|zero_config\.allgather_partitions(?!$)": ("runtime/engine.py",),
    r"\.disable_allgather": ("runtime/config.py",),
    r"pipeline\[.(?:stages|partition|seed_layers)": (),
}
"""Where the keys are named at all: nothing but an accessor or the reader of the config."""


@pytest.mark.parametrize("pattern", NEVER_READ)
def test_no_code_reads_them(pattern: str) -> None:
    import deepspeed

    root = Path(deepspeed.__file__).parent
    found = {
        path.relative_to(root).as_posix()
        for path in (root / "runtime").rglob("*.py")
        if re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert found <= set(NEVER_READ[pattern])
