"""Real ``Trainer.train()`` runs on the CPU: cases come in as JSON, what was observed goes out.

Run as a program, by the tests, in a process of its own: one rank, gloo, a model of one layer.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import transformers.training_args
from accelerate.state import AcceleratorState
from transformers import HfArgumentParser, Trainer, TrainerCallback, TrainingArguments

SAMPLES = 16


class Model(torch.nn.Module):
    """One layer; it counts how often it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)
        self.calls = 0

    def forward(self, x: torch.Tensor, labels: Any = None) -> dict[str, torch.Tensor]:
        self.calls += 1
        output = self.layer(x.to(self.layer.weight.dtype))
        return {"loss": (100 * output.float()).pow(2).mean()}


class Data(torch.utils.data.Dataset):
    """Samples that differ a little."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"x": torch.tensor([1.0, index / SAMPLES]), "labels": 0}


class Watch(TrainerCallback):
    """Sees how many micro-batches each step took, and the rate of the first."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.stepped_after: list[int] = []
        self.first_rate: float | None = None

    def on_step_begin(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        if self.first_rate is None:
            self.first_rate = given["optimizer"].param_groups[0]["lr"]

    def on_step_end(self, args: Any, state: Any, control: Any, **given: Any) -> None:
        self.stepped_after.append(self.model.calls)


def train(config: dict[str, Any], words: list[str], folder: Path) -> dict[str, Any]:
    """One run; ``stopped`` says where it ended, if it did not train."""
    AcceleratorState._reset_state(True)
    path = folder / "ds_config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    fixed = ["--output_dir", str(folder / "out"), "--report_to", "none", "--save_strategy", "no"]
    fixed += ["--disable_tqdm", "true", "--num_train_epochs", "1", "--deepspeed", str(path)]
    try:
        (arguments,) = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses(
            [*fixed, *words]
        )
    except Exception as error:
        return {"stopped": "arguments", "error": f"{type(error).__name__}: {error}"}
    model = Model()
    watch = Watch(model)
    trainer = Trainer(model=model, args=arguments, train_dataset=Data(), callbacks=[watch])
    try:
        trainer.train()
    except Exception as error:
        return {"stopped": "train", "error": f"{type(error).__name__}: {error}"}
    engine = trainer.deepspeed
    return {
        "stepped_after": watch.stepped_after,
        "first_rate": watch.first_rate,
        "gradient_accumulation_steps": engine.gradient_accumulation_steps(),
        "train_batch_size": engine.train_batch_size(),
        "gradient_clipping": engine.gradient_clipping(),
        "bf16": engine.bfloat16_enabled(),
        "scheduler": type(engine.lr_scheduler).__name__,
    }


def main() -> None:
    """Train every case that standard input names."""
    cases = json.load(sys.stdin)
    # bf16 is asked of a GPU; the CPU trains in it too.
    patch = mock.patch.object(
        transformers.training_args, "is_torch_bf16_gpu_available", return_value=True
    )
    observed = {}
    with patch:
        for name, case in cases.items():
            with tempfile.TemporaryDirectory() as folder:
                observed[name] = train(case["config"], case["words"], Path(folder))
    print("observed:", json.dumps(observed))


if __name__ == "__main__":
    main()
