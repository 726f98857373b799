"""A regression by Lightning with its DeepSpeed strategy.

``--behind-the-back N`` changes the accumulation after the launch was checked.
"""

import argparse
import importlib
from unittest import mock

import lightning as pl
import torch
from lightning.pytorch.accelerators import CPUAccelerator
from lightning.pytorch.strategies import DeepSpeedStrategy, deepspeed

from dsguard.integrations.lightning import GuardCallback

importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None


class Regression(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def training_step(self, batch, index):
        return self.layer(batch).square().mean()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=2)
    parser.add_argument("--accumulate_grad_batches", type=int, default=4)
    parser.add_argument("--behind-the-back", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(0)
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=2,
        strategy=DeepSpeedStrategy(config="ds_config.json", process_group_backend="gloo"),
        accumulate_grad_batches=args.accumulate_grad_batches,
        max_epochs=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[GuardCallback()],
    )
    if args.behind_the_back:
        vars(trainer)["accumulate_grad_batches"] = args.behind_the_back
    loader = torch.utils.data.DataLoader(torch.randn(32, 8), batch_size=args.batch_size)
    # Lightning asks for CUDA before it starts, and DeepSpeed for devices that have a number;
    # nothing after that depends on it.
    on_cpu = property(lambda strategy: torch.device("cpu", strategy.local_rank))
    with (
        mock.patch.object(DeepSpeedStrategy, "root_device", on_cpu),
        mock.patch.multiple(
            deepspeed,
            CUDAAccelerator=CPUAccelerator,
            _validate_device_index_selection=lambda devices: None,
        ),
    ):
        trainer.fit(Regression(), loader)
    if trainer.is_global_zero:
        print("steps", trainer.strategy.deepspeed_engine.global_steps, flush=True)
    # Threads of a process group that is left open can abort the process when it ends.
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
