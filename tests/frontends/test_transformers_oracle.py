"""What dsguard says of a Trainer's config, held to the real Trainer.

dsguard reports a finding with consequence ``refused`` exactly when the Trainer, Accelerate's plugin
or DeepSpeedConfig raises, and every fact it knows is what they end up with.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Dsguard
from tests.frontends.judged import CONFIG, REAL, Judged, judge
from tests.frontends.trainer_cases import CASES, LAUNCHED_CASES, SCRIPT, LaunchedCase, TrainerCase

pytestmark = REAL


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_trainer_agrees(case: TrainerCase, dsguard: Dsguard, tmp_path: Path) -> None:
    real = pytest.importorskip("tests.frontends.real")
    (tmp_path / CONFIG).write_text(case.text, encoding="utf-8")
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    run = real.trainer(tmp_path / CONFIG, shlex.split(case.words), case.world_size)
    told = judge(
        dsguard,
        tmp_path,
        f"torchrun --nproc_per_node {case.world_size} train.py --deepspeed {CONFIG} {case.words}",
    )
    agree(told, run, case.facts_apart)


@pytest.mark.parametrize("case", LAUNCHED_CASES, ids=lambda case: case.name)
def test_the_trainer_under_accelerate_launch_agrees(
    case: LaunchedCase, dsguard: Dsguard, tmp_path: Path
) -> None:
    real = pytest.importorskip("tests.frontends.real")
    (tmp_path / CONFIG).write_text(case.text, encoding="utf-8")
    (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
    run = real.trainer_under_accelerate(
        shlex.split(case.launch), shlex.split(case.words), tmp_path, case.world_size
    )
    told = judge(dsguard, tmp_path, f"accelerate launch {case.launch} train.py {case.words}")
    assert told.known["front_end"] == "transformers"
    agree(told, run)


def test_the_launcher_precision_is_not_the_trainers(dsguard: Dsguard, tmp_path: Path) -> None:
    """Also where the script cannot be read: ``--mixed_precision`` sets no TrainingArgument."""
    case = next(case for case in LAUNCHED_CASES if case.name == "bf16 asked of the launcher")
    (tmp_path / CONFIG).write_text(case.text, encoding="utf-8")
    told = judge(
        dsguard,
        tmp_path,
        f"accelerate launch {case.launch} train.py {case.words}",
        "--front-end transformers",
    )
    assert [line.partition(":")[0] for line in told.refused] == ["training-argument-mismatch"]


def agree(told: Judged, run: Any, apart: tuple[str, ...] = ()) -> None:
    """Refused by both or by neither; and where it runs, the same numbers."""
    assert bool(told.refused) == (run.refused is not None), (told.refused, run.refused)
    if run.refused is not None:
        return
    real = {
        "micro_batch_size": run.micro,
        "gradient_accumulation_steps": run.accumulation,
        "train_batch_size": run.config.train_batch_size,
        "gradient_clipping": run.config.gradient_clipping,
        "precision": run.precision,
        "zero_stage": run.config.zero_optimization_stage,
        "learning_rate": run.learning_rate,
    }
    ours = {name: told.known[name] for name in real if name in told.known and name not in apart}
    assert ours == {name: real[name] for name in ours}
