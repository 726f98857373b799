"""Whole trainings by the HF Trainer, Accelerate and Lightning, each with its guard.

A job returns what the guard told on this rank: the severity of each finding by its rule, and
the counts of its summary.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from dsguard import Guard, guard

MICRO_BATCH = 2
ACCUMULATION = 4
WIDTH = 8


class Model(torch.nn.Module):
    """A small regression that returns its loss, as Hugging Face models do."""

    def __init__(self, *, divide: int = 1) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, 1)
        )
        self.divide = divide

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        """Mean squared error, divided by ``divide``."""
        loss = torch.nn.functional.mse_loss(self.layers(x), labels)
        return {"loss": loss / self.divide}


class Rows(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    """Seeded rows."""

    def __init__(self, number: int) -> None:
        make = torch.Generator().manual_seed(0)
        self.x = torch.randn(number, WIDTH, generator=make)

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, at: int) -> dict[str, torch.Tensor]:
        return {"x": self.x[at], "labels": self.x[at].sum(0, keepdim=True)}


def config(stage: int, accumulation: int | str, world_size: int = 1) -> dict[str, Any]:
    """A config for the CPU; ``auto`` accumulation leaves the batch to the front end."""
    auto = accumulation == "auto"
    return {
        "train_micro_batch_size_per_gpu": "auto" if auto else MICRO_BATCH,
        "gradient_accumulation_steps": accumulation,
        "train_batch_size": "auto" if auto else MICRO_BATCH * int(accumulation) * world_size,
        "zero_optimization": {"stage": stage},
        "zero_allow_untested_optimizer": True,
    }


def told(held: Guard | None) -> dict[str, Any]:
    """What a guard says at the end of a job."""
    assert held is not None
    held.close()
    summary = held.summary()
    return {
        "findings": {finding.rule: finding.severity.value for finding in held.findings},
        "because": {
            finding.rule: [because.origin.describe() for because in finding.because]
            for finding in held.findings
        },
        "windows": {str(size): times for size, times in summary.windows.items()},
        "samples": {str(samples): times for samples, times in summary.samples_per_step.items()},
        "optimizer_steps": summary.optimizer_steps,
    }


def trainer(stage: int, rows: int, batch: int = MICRO_BATCH, divide: int = 1) -> dict[str, Any]:
    """Two epochs of the HF Trainer; ``batch`` is what its loader is made to yield."""
    import transformers
    from accelerate.state import AcceleratorState

    from dsguard.integrations.transformers import GuardCallback

    AcceleratorState._reset_state(reset_partial_state=True)
    callback = GuardCallback()

    class OtherLoader(transformers.Trainer):
        """A Trainer whose loader somebody has replaced."""

        def get_train_dataloader(self) -> Any:
            self._train_batch_size = batch
            return super().get_train_dataloader()

    with tempfile.TemporaryDirectory() as folder:
        made = OtherLoader(
            model=Model(divide=divide),
            args=transformers.TrainingArguments(
                output_dir=folder,
                deepspeed=config(stage, "auto"),
                use_cpu=True,
                per_device_train_batch_size=MICRO_BATCH,
                gradient_accumulation_steps=ACCUMULATION,
                num_train_epochs=2,
                report_to=[],
                disable_tqdm=True,
                logging_steps=1,
                save_strategy="no",
            ),
            train_dataset=Rows(rows),
            callbacks=[callback],
        )
        made.train()
    logged = [entry for entry in made.state.log_history if "dsguard/samples_per_step" in entry]
    return told(callback.guard) | {
        "logged": [entry["dsguard/samples_per_step"] for entry in logged],
        "global_step": made.state.global_step,
    }


def language_model(stage: int, rows: int, across_devices: bool = True) -> dict[str, Any]:
    """Two epochs of the HF Trainer on a causal model, whose loss counts the tokens of a step."""
    import transformers
    from accelerate.state import AcceleratorState

    from dsguard.integrations.transformers import GuardCallback

    AcceleratorState._reset_state(reset_partial_state=True)
    callback = GuardCallback()
    torch.manual_seed(0)
    make = torch.Generator().manual_seed(0)
    lengths = torch.randint(4, 16, (rows,), generator=make).tolist()
    # The labels of padding are left out of the loss.
    rows_of_tokens = [
        {
            "input_ids": torch.arange(16) % 50,
            "attention_mask": (torch.arange(16) < length).long(),
            "labels": torch.where(torch.arange(16) < length, torch.arange(16) % 50, -100),
        }
        for length in lengths
    ]
    model = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=50,
            hidden_size=16,
            intermediate_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        trainer = transformers.Trainer(
            model=model,
            args=transformers.TrainingArguments(
                output_dir=folder,
                deepspeed=config(stage, "auto"),
                use_cpu=True,
                per_device_train_batch_size=MICRO_BATCH,
                gradient_accumulation_steps=ACCUMULATION,
                average_tokens_across_devices=across_devices,
                num_train_epochs=2,
                report_to=[],
                disable_tqdm=True,
                save_strategy="no",
            ),
            train_dataset=rows_of_tokens,
            callbacks=[callback],
        )
        assert trainer.model_accepts_loss_kwargs
        trainer.train()
    return told(callback.guard) | {"global_step": trainer.state.global_step}


def accelerate(stage: int, batches: int, plant: str = "") -> dict[str, Any]:
    """Two epochs of a loop of its own under Accelerate."""
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState
    from accelerate.utils import DeepSpeedPlugin

    AcceleratorState._reset_state(reset_partial_state=True)
    world_size = torch.distributed.get_world_size()
    with mock.patch.dict(os.environ, {"ACCELERATE_USE_DEEPSPEED": "true"}):
        plugin = DeepSpeedPlugin(hf_ds_config=config(stage, ACCUMULATION, world_size))
        accelerator = Accelerator(deepspeed_plugin=plugin)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    size = MICRO_BATCH if plant != "loader" else 3 * MICRO_BATCH
    rows = Rows(batches * size * world_size)
    # Without a GPU Accelerate takes itself for the only process and leaves the loader whole.
    sampler = torch.utils.data.distributed.DistributedSampler(rows)
    loader = torch.utils.data.DataLoader(rows, batch_size=size, sampler=sampler)
    engine, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    held = guard(accelerator)
    for _ in range(2):
        for batch in loader:
            with accelerator.accumulate(engine):
                loss = engine(**batch)["loss"]
                accelerator.backward(loss / ACCUMULATION if plant == "divided" else loss)
                optimizer.step()
                optimizer.zero_grad()
    return told(held) | {"global_step": engine.global_steps}


def lightning(stage: int, batches: int, plant: str = "") -> dict[str, Any]:
    """Two epochs of Lightning with its DeepSpeed strategy."""
    import lightning as pl
    from lightning.pytorch.accelerators import CPUAccelerator
    from lightning.pytorch.strategies import DeepSpeedStrategy, deepspeed

    from dsguard.integrations.lightning import GuardCallback

    world_size = torch.distributed.get_world_size()
    callback = GuardCallback()

    class OnCpu(DeepSpeedStrategy):
        """The strategy with devices that have a number, as DeepSpeed asks for."""

        @property
        def root_device(self) -> torch.device:
            """This rank's CPU."""
            return torch.device("cpu", self.local_rank)

    class Module(pl.LightningModule):
        """The small regression as a LightningModule."""

        def __init__(self) -> None:
            super().__init__()
            self.model = Model()

        def training_step(self, batch: Any, index: int) -> torch.Tensor:
            """The loss of one micro-batch."""
            loss: torch.Tensor = self.model(**batch)["loss"]
            return loss

        def configure_optimizers(self) -> torch.optim.Optimizer:
            """Adam on everything."""
            return torch.optim.Adam(self.parameters(), lr=1e-2)

    size = MICRO_BATCH if plant != "loader" else 3 * MICRO_BATCH
    settings = config(stage, ACCUMULATION, world_size)
    del settings["train_batch_size"], settings["gradient_accumulation_steps"]
    with tempfile.TemporaryDirectory() as folder:
        fit = pl.Trainer(
            accelerator="cpu",
            devices=world_size,
            strategy=OnCpu(config=settings, process_group_backend="gloo"),
            accumulate_grad_batches=ACCUMULATION,
            max_epochs=2,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=Path(folder),
            callbacks=[callback],
        )
        module = Module()
        # Lightning asks for CUDA before it starts; nothing after that depends on it.
        with mock.patch.multiple(
            deepspeed,
            CUDAAccelerator=CPUAccelerator,
            _validate_device_index_selection=lambda devices: None,
        ):
            fit.fit(module, torch.utils.data.DataLoader(Rows(batches * size * world_size), size))
        steps = fit.strategy.deepspeed_engine.global_steps
    return told(callback.guard) | {
        "global_step": steps,
        "logged": float(fit.callback_metrics.get("dsguard/micro_batches_per_step", 0)),
    }


def run(job: str, cases: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Every case of one kind of job, in one process group."""
    return {name: globals()[job](**arguments) for name, arguments in cases.items()}
