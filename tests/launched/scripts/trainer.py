"""A regression by the HF Trainer.

``--behind_the_back N`` changes the accumulation after the launch was checked.
"""

import importlib
from dataclasses import dataclass

import torch
from transformers import HfArgumentParser, Trainer, TrainingArguments

from dsguard.integrations.transformers import GuardCallback

importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None


@dataclass
class OwnArguments:
    behind_the_back: int = 0


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def forward(self, x, labels):
        return {"loss": torch.nn.functional.mse_loss(self.layer(x), labels)}


def main():
    parser = HfArgumentParser((TrainingArguments, OwnArguments))
    training, own = parser.parse_args_into_dataclasses()
    if own.behind_the_back:
        # So that no reader of this file sees it.
        replace = importlib.import_module("dataclasses").replace
        training = replace(training, gradient_accumulation_steps=own.behind_the_back)
    torch.manual_seed(0)
    rows = [{"x": torch.randn(8), "labels": torch.randn(1)} for _ in range(32)]
    trainer = Trainer(model=Model(), args=training, train_dataset=rows, callbacks=[GuardCallback()])
    trainer.train()
    if trainer.is_world_process_zero():
        print("steps", trainer.state.global_step, flush=True)
    # Threads of a process group that is left open can abort the process when it ends.
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
