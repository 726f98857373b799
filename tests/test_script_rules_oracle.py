"""What the script rules warn of, seen in real runs: each bad script beside its corrected twin.

Every fixture of these rules is a whole training script. Its first weights, its data and its
learning rate are always the same, so that steps and weights tell what became of the gradients: of
eight micro-batches, number k has the gradient k in each of four weights.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import FIXTURES
from tests.contract.rule_cases import TARGET, script_cases
from tests.test_fixture_oracle import installed
from tests.training import Run, run_all

pytestmark = [
    pytest.mark.deepspeed,
    pytest.mark.skipif(
        installed() != TARGET, reason=f"the fixtures are judged by DeepSpeed {TARGET}"
    ),
]

ON_TWO_RANKS = ("data-not-split", "ranks-counted-by-hand", "short-batch-in-pipeline")
"""Rules about what several ranks do."""

LAST = ("checkpoint-on-one-rank",)
"""Rules of which a bad script leaves the process group broken."""

CASES = {
    case.id: case.config
    for case in script_cases()
    if case.slug not in (*ON_TWO_RANKS, *LAST) and case.config.suffix == ".py"
}
FIRST = -0.0037
"""The first weight before the first step."""


def _script(name: str) -> Path:
    slug, verdict, stem = name.split("/")
    return FIXTURES / "rules" / slug / verdict / f"{stem}.py"


@pytest.fixture(scope="module")
def runs(extensions: str) -> dict[str, Run]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_EXTENSIONS_DIR", extensions)
        results = run_all(list(CASES.values()))
    return {name: result[0] for name, result in zip(CASES, results, strict=True)}


def moved(run: Run) -> float:
    """How far the first weight went down: the sum of the gradients that were applied."""
    assert run.error is None, run.message
    return round(FIRST - run.weights[0], 2)


@pytest.mark.parametrize("name", [name for name in CASES if "/good/" in name])
def test_a_good_script_runs(name: str, runs: dict[str, Run]) -> None:
    assert runs[name].error is None, runs[name].message


UPDATES = {
    # Two windows of four: (0 + 1 + 2 + 3) / 4 + (4 + 5 + 6 + 7) / 4, times two, as sample 2k and
    # 2k + 1 make the gradient 2k + 1/2.
    "loss-divided-by-hand/good/not-divided": (2, 15.0),
    "loss-divided-by-hand/bad/divided-in-the-call": (2, 15.0 / 4),
    "loss-divided-by-hand/bad/by-the-engines-count": (2, 15.0 / 4),
    "loss-divided-by-hand/bad/by-an-argument": (2, 15.0 / 4),
    "loss-divided-by-hand/good/accelerate": (2, 15.0),
    "loss-divided-by-hand/bad/accelerate": (2, 15.0 / 4),
    "loss-divided-by-hand/good/engine-told-not-to-divide": (2, 15.0),
    "backward-without-engine/good/engine-backward": (2, 15.0),
    "backward-without-engine/good/loss-backward-at-stage-1": (2, 15.0),
    "optimizer-stepped-directly/good/engine-step": (8, 60.0),
    # Its steps have no gradient.
    "optimizer-stepped-directly/bad/clients-optimizer": (8, 0.0),
    "optimizer-stepped-directly/good/accelerate": (8, 60.0),
    # Of each window only the last: (6.5 + 14.5) / 4.
    "gradients-zeroed-per-micro-batch/bad/engine": (2, 5.25),
    "gradients-zeroed-per-micro-batch/bad/model-at-stage-0": (2, 5.25),
    "gradients-zeroed-per-micro-batch/bad/clients-optimizer-at-stage-0": (2, 5.25),
    "gradients-zeroed-per-micro-batch/bad/optimizer-at-stage-3": (2, 5.25),
    "gradients-zeroed-per-micro-batch/good/at-the-boundary": (2, 15.0),
    "gradients-zeroed-per-micro-batch/good/clients-optimizer-at-stage-1": (2, 15.0),
    "gradients-zeroed-per-micro-batch/good/engine-at-stage-2": (2, 15.0),
    "gradients-zeroed-per-micro-batch/good/accelerate": (2, 15.0),
    "engine-stepped-on-own-boundary/good/every-micro-batch": (2, 15.0),
    "engine-stepped-on-own-boundary/good/boundary-set-by-hand": (2, 15.0),
    "engine-stepped-on-own-boundary/bad/at-the-engines-boundary": (0, 0.0),
    "engine-stepped-on-own-boundary/bad/every-fourth": (0, 0.0),
    "accumulated-by-hand/good/own-boundary-at-stage-0": (2, 15.0),
    "accumulated-by-hand/good/told-to-the-engine": (2, 15.0),
    "accumulated-by-hand/bad/own-boundary-at-stage-2": (2, 5.25),
    "accumulated-by-hand/bad/inner-loop": (2, 5.25),
    # The gradient of the second loss is three times that of the first.
    "two-backwards-per-step/good/summed": (8, 240.0),
    "two-backwards-per-step/good/two-losses-at-stage-0": (8, 240.0),
    "two-backwards-per-step/good/accelerate-summed": (8, 240.0),
    "two-backwards-per-step/bad/accelerate": (16, 240.0),
    "two-backwards-per-step/bad/two-losses-at-stage-2": (8, 180.0),
    "two-backwards-per-step/bad/one-forward-at-stage-1": (8, 180.0),
    "backward-outside-accumulate/good/inside": (2, 15.0),
    "backward-outside-accumulate/good/told-by-hand": (2, 15.0),
    "backward-outside-accumulate/good/entered-on-a-stack": (2, 15.0),
    "backward-outside-accumulate/bad/no-windows": (8, 15.0),
    "backward-outside-accumulate/bad/own-windows": (8, 60.0),
    "backward-outside-accumulate/bad/inner-loop": (8, 60.0),
    "backward-outside-accumulate/bad/own-windows-beside-the-config": (8, 15.0),
    # Of two batches in four parts the first is one step and the last is four.
    "batch-split-in-accumulate/good/not-by-the-loader": (2, 15.0),
    "batch-split-in-accumulate/good/not-prepared": (2, 15.0),
    "batch-split-in-accumulate/good/micro-batches-from-the-loader": (2, 15.0),
    "batch-split-in-accumulate/bad/split": (5, 15.0),
    "batch-split-in-accumulate/bad/slices": (5, 15.0),
    # A norm of at most 0.1 over four equal weights: 0.05 a step, but 0 in no step.
    "clipping-beside-engine/good/in-the-config": (8, 0.4),
    "clipping-beside-engine/good/stage-0": (8, 0.4),
    "clipping-beside-engine/bad/stage-2": (8, 60.0),
    "clipping-beside-engine/bad/model-at-stage-1": (8, 60.0),
    "clipping-beside-engine/bad/stage-3-while-accumulating": (2, 15.0),
}
"""Optimizer steps, and how far a weight moves in all of them."""


@pytest.mark.parametrize("name", UPDATES)
def test_steps_and_gradients(name: str, runs: dict[str, Run]) -> None:
    assert (runs[name].steps, moved(runs[name])) == UPDATES[name]


def test_a_window_in_a_window_is_four_times_as_long(runs: dict[str, Run]) -> None:
    """Two micro-batches a window in the loop and two in the config: a step in four."""
    run = runs["engine-stepped-on-own-boundary/bad/skips-the-others"]
    assert run.steps == 2


COMPLAINTS = {
    "backward-without-engine": "Direct calls to tensor.backward() are not supported",
    "optimizer-stepped-directly/bad/returned-optimizer-on-own-boundary": "0",
    "no-sync-with-partitioned-gradients": "no_sync context manager is incompatible",
    "returns-mixed-up/bad/three-names": "too many values to unpack",
    "returns-mixed-up/bad/scheduler-third": "'NoneType' object has no attribute 'step'",
    "pipeline-with-partitioned-gradients": "incompatible with pipeline parallelism",
    "device-map-with-zero-3": "not compatible with passing a `device_map`",
}


@pytest.mark.parametrize("prefix", COMPLAINTS)
def test_it_stops_for_the_reason_that_the_rule_gives(prefix: str, runs: dict[str, Run]) -> None:
    bad = [run for name, run in runs.items() if name.startswith(prefix) and "/bad/" in name]
    assert bad
    assert all(COMPLAINTS[prefix] in run.message for run in bad)


RATES = {
    "scheduler-stepped-beside-engine/good/engine-steps-it": 0.5**8,
    "scheduler-stepped-beside-engine/bad/passed-scheduler": 0.5**16,
    "scheduler-stepped-per-micro-batch/good/at-the-boundary": 0.5**2,
    "scheduler-stepped-per-micro-batch/bad/own-scheduler": 0.5**8,
    "scheduler-stepped-per-micro-batch/bad/accelerate": 0.5**8,
}
"""The learning rate after eight micro-batches, halved at every step of the schedule."""


@pytest.mark.parametrize("name", RATES)
def test_learning_rate(name: str, runs: dict[str, Run]) -> None:
    assert runs[name].learning_rate == RATES[name]


SAID = {
    "evaluation-left-on/bad/every-few-steps": [True] * 4 + [False] * 4,
    "evaluation-left-on/bad/in-a-function": [True] * 8 + [False] * 8,
    "evaluation-left-on/good/train-after-it": [True] * 16,
    "evaluation-left-on/good/train-in-every-epoch": [True] * 16,
    "weights-saved-in-parts/bad/stage-3": [0],
    "weights-saved-in-parts/bad/through-the-model": [0],
    "weights-saved-in-parts/good/gathered": [4],
    "weights-saved-in-parts/good/stage-2": [4],
    "model-loaded-before-training-arguments/bad/hf-config-after-it": [False],
    "model-loaded-before-training-arguments/bad/training-arguments-after-it": [False],
    "model-loaded-before-training-arguments/good/hf-config-before-it": [True],
    "model-loaded-before-training-arguments/good/training-arguments-before-it": [True],
}
"""What the scripts saw: the training mode at each step, the sizes of the saved tensors, and
whether the loaded parameters are partitioned."""


@pytest.mark.parametrize("name", SAID)
def test_what_the_script_sees(name: str, runs: dict[str, Run]) -> None:
    assert runs[name].said == SAID[name]


def test_every_bad_script_is_judged_here() -> None:
    shown = {*UPDATES, *RATES, *SAID, "engine-stepped-on-own-boundary/bad/skips-the-others"}
    left = {
        name
        for name in CASES
        if "/bad/" in name and name not in shown and not name.startswith(tuple(COMPLAINTS))
    }
    assert left == {
        # The loader's own size is what it says; a warning of Accelerate's is no number.
        "data-loader-size-differs/bad/by-a-name",
        "data-loader-size-differs/bad/seven-of-two",
        "scheduler-stepped-beside-engine/bad/scheduler-of-the-config",
        "uneven-inputs-not-joined/bad/around-the-loop",
        "uneven-inputs-not-joined/bad/in-every-epoch",
    }


def test_the_loader_decides_how_many_samples_a_step_has(runs: dict[str, Run]) -> None:
    """Sixteen samples, of which DeepSpeed counts two a step."""
    assert runs["data-loader-size-differs/good/the-same"].steps == 8
    assert runs["data-loader-size-differs/bad/by-a-name"].steps == 2
    assert runs["data-loader-size-differs/bad/seven-of-two"].steps == 3


def test_the_schedule_of_the_config_is_stepped_twice(runs: dict[str, Run]) -> None:
    """A warm-up over 64 steps, after eight of the engine's and eight of the script's own."""
    from math import log

    rate = runs["scheduler-stepped-beside-engine/bad/scheduler-of-the-config"].learning_rate
    assert rate == pytest.approx(log(16) / log(64))


def test_without_a_sampler_both_ranks_see_the_same_samples(extensions: str) -> None:
    scripts = [_script("data-not-split/bad/no-sampler"), *_good_of("data-not-split")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_EXTENSIONS_DIR", extensions)
        bad, *good = run_all(scripts, ranks=2)
    assert bad[0].said == bad[1].said
    for first, second in good:
        assert not set(first.said) & set(second.said)


MOVED = """
import deepspeed
import torch
from torch.nn.parallel import DistributedDataParallel

CONFIG = {{
    "train_micro_batch_size_per_gpu": 1,
    "gradient_accumulation_steps": 2,
    "gradient_clipping": 0.0,
    "zero_optimization": {{"stage": {stage}}},
    "zero_allow_untested_optimizer": True,
}}
model = torch.nn.Linear(4, 1, bias=False)
optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
model = {how}
engine, _, _, _ = deepspeed.initialize(model=model, optimizer=optimizer, config=CONFIG)
for number in range(4):
    sample = number + 10 * torch.distributed.get_rank()
    engine.backward(engine(torch.full((1, 4), float(sample))).mean())
    engine.step()
"""


def test_a_model_that_is_moved_or_wrapped_first_trains_alike(
    extensions: str, tmp_path: Path
) -> None:
    """So no rule says a word about ``.to()`` and DistributedDataParallel before ``initialize``."""
    scripts = []
    for stage in (0, 1, 2, 3):
        for how in ("model", 'model.to("cpu")', "DistributedDataParallel(model)"):
            scripts.append(tmp_path / f"script_{len(scripts)}.py")
            scripts[-1].write_text(MOVED.format(stage=stage, how=how))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_EXTENSIONS_DIR", extensions)
        runs = run_all(scripts, ranks=2)
    assert {(run.error, run.steps) for each in runs for run in each} == {(None, 2)}
    assert {moved(run) for each in runs for run in each} == {13.0}


def _good_of(slug: str) -> list[Path]:
    good = (FIXTURES / "rules" / slug / "good").glob("*.py")
    return sorted(path for path in good if path.stem not in ("one-rank", "model-parallel"))


def test_ranks_counted_by_hand_stop_over_the_batch_sizes(extensions: str) -> None:
    """Two ranks: of two machines with a GPU each, or of one with two."""
    slug = "ranks-counted-by-hand"
    devices = {
        f"{slug}/bad/devices-of-one-machine": 1,
        f"{slug}/bad/ranks-of-a-shared-sequence": 1,
        f"{slug}/good/devices-on-one-machine": 2,
        f"{slug}/good/ranks-of-a-shared-sequence": 1,
        f"{slug}/good/ranks-of-the-job": 1,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_EXTENSIONS_DIR", extensions)
        runs = run_all([_script(n) for n in devices], ranks=2, devices=list(devices.values()))
    for name, each in zip(devices, runs, strict=True):
        for run in each:
            assert ("Check batch related parameters" in run.message) == ("/bad/" in name), run


@pytest.mark.parametrize(
    ("bad", "good"), [("own-loader", "drops-the-last"), ("training-data", "config-drops-the-last")]
)
def test_a_short_batch_stops_a_pipeline(bad: str, good: str, extensions: str) -> None:
    """Ten samples in batches of four, over two stages: the third batch has two."""
    scripts = [f"good/{good}", f"bad/{bad}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_EXTENSIONS_DIR", extensions)
        fine, stopped = run_all([_script(f"short-batch-in-pipeline/{n}") for n in scripts], ranks=2)
    assert [run.said for run in fine] == [[True] * 4] * 2
    assert [run.steps for run in stopped] == [2, 2]
    assert "size of tensor a (4) must match the size of tensor b (2)" in stopped[1].message


def test_a_checkpoint_of_one_rank_waits_for_the_others(extensions: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_EXTENSIONS_DIR", extensions)
        good, bad = run_all(
            [
                _script("checkpoint-on-one-rank/good/every-rank"),
                _script("checkpoint-on-one-rank/bad/first-rank"),
            ],
            ranks=2,
        )
    assert [run.error for run in good] == [None, None]
    assert [run.error for run in bad] == ["RuntimeError", None]
    assert "gloo" in bad[0].message


def test_accelerate_says_that_it_does_not_join() -> None:
    import inspect

    from accelerate import Accelerator

    text = inspect.getsource(Accelerator.join_uneven_inputs)
    assert "Joining uneven inputs is only supported for multi-GPU training" in text
