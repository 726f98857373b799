"""Loops with nothing wrong under compilers and front ends, on one rank."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch

from dsguard import Guard, guard
from tests.guard.healthy_loops import MICRO_BATCH, Model, config, initialize
from tests.guard.scenarios import batches, scenario, train


@scenario(*((how, stage) for how in ("engine", "engine-after", "model") for stage in (0, 2)))
def compiled(how: str, stage: int) -> Iterator[Guard]:
    """The guard causes no graph, no recompilation and no graph break of its own."""
    counts = []
    for guarding in (False, True):
        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        graphs: list[int] = []

        def backend(module: Any, inputs: Any, graphs: list[int] = graphs) -> Any:
            graphs.append(len(inputs))
            return module.forward

        model: Any = Model()
        if how == "model":
            model = torch.compile(model, backend=backend)
        engine, _ = initialize(config(stage, accumulation=2), model)
        if how == "engine":
            engine.compile(backend=backend)
        guarded = guard(engine) if guarding else None
        if how == "engine-after":
            engine.compile(backend=backend)
        train(engine, 12)
        engine.eval()
        with torch.no_grad():
            for x, y in batches(2):
                engine(x, y)
        engine.train()
        train(engine, 2)
        counters = torch._dynamo.utils.counters
        breaks = sum(counters["graph_break"].values())
        counts.append(
            (graphs, breaks, counters["stats"]["unique_graphs"], dict(counters["frames"]))
        )
    assert counts[0] == counts[1], counts
    assert counts[0][0], "nothing was compiled"
    assert guarded is not None
    assert guarded.summary().windows == {2: 7}
    yield guarded


@scenario(0, 2)
def engine_inside_a_compiled_function(stage: int) -> Iterator[Guard]:
    engine, _ = initialize(config(stage, accumulation=2))
    guarded = guard(engine)
    forward = torch.compile(lambda x, y: engine(x, y), backend="eager")
    for x, y in batches(6):
        engine.backward(forward(x, y))
        engine.step()
    yield guarded


@scenario()
def hybrid_engine() -> Iterator[Guard]:
    settings = config(0, accumulation=2)
    settings["hybrid_engine"] = {"enabled": True}
    engine, _ = initialize(settings)
    assert type(engine).__name__ == "DeepSpeedHybridEngine"
    guarded = guard(engine)
    for x, y in batches(6):
        engine.eval()
        with torch.no_grad():
            engine(x, y)
        engine.train()
        engine.backward(engine(x, y))
        engine.step()
    assert guarded.summary().windows == {2: 3}
    yield guarded


@scenario(0, 2, 3)
def accelerate(stage: int) -> Iterator[Guard]:
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState
    from accelerate.utils import DeepSpeedPlugin

    AcceleratorState._reset_state(reset_partial_state=True)
    with mock.patch.dict(os.environ, {"ACCELERATE_USE_DEEPSPEED": "true"}):
        plugin = DeepSpeedPlugin(hf_ds_config=config(stage, accumulation=4))
        accelerator = Accelerator(deepspeed_plugin=plugin)
    model = Model()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    data = torch.utils.data.TensorDataset(*map(torch.cat, zip(*batches(27), strict=True)))
    loader = torch.utils.data.DataLoader(data, batch_size=MICRO_BATCH)
    engine, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    guarded = guard(engine, dataloader=loader)
    for _ in range(2):
        for x, y in loader:
            with accelerator.accumulate(engine):
                accelerator.backward(engine(x, y))
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
    assert guarded.summary().windows == {4: 12, 3: 2}
    assert engine.global_steps == 14
    yield guarded


@scenario(0, 2, 3)
def trainer(stage: int) -> Iterator[Guard]:
    import transformers
    from accelerate.state import AcceleratorState

    AcceleratorState._reset_state(reset_partial_state=True)
    shape = transformers.LlamaConfig(
        vocab_size=16,
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
        max_position_embeddings=16,
    )
    rows = [{"input_ids": [1, 2, 3, 4], "labels": [1, 2, 3, 4]} for _ in range(27 * MICRO_BATCH)]
    guards: list[Guard] = []

    class Attach(transformers.TrainerCallback):
        def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            guards.append(guard(trainer.model_wrapped))

    settings = dict.fromkeys(_FILLED, "auto") | {"zero_optimization": {"stage": stage}}
    settings["zero_allow_untested_optimizer"] = True
    with tempfile.TemporaryDirectory() as folder:
        trainer = transformers.Trainer(
            model=transformers.LlamaForCausalLM(shape),
            args=transformers.TrainingArguments(
                output_dir=folder,
                deepspeed=settings,
                use_cpu=True,
                per_device_train_batch_size=MICRO_BATCH,
                gradient_accumulation_steps=4,
                num_train_epochs=2,
                report_to=[],
                disable_tqdm=True,
                save_strategy="epoch",
                eval_strategy="epoch",
                gradient_checkpointing=stage == 2,
            ),
            train_dataset=rows,
            eval_dataset=rows[: 2 * MICRO_BATCH],
            callbacks=[Attach()],
        )
        trainer.train()
    summary = guards[0].summary()
    assert summary.windows == {4: 12, 3: 2}
    assert summary.optimizer_steps == trainer.state.global_step == 14
    yield guards[0]


_FILLED = (
    "train_batch_size",
    "train_micro_batch_size_per_gpu",
    "gradient_accumulation_steps",
    "gradient_clipping",
)
