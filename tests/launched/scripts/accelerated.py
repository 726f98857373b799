"""A regression in a loop under Accelerate.

``--behind-the-back N`` changes the accumulation after the launch was checked.
"""

import argparse
import importlib

import torch
from accelerate import Accelerator

from dsguard import guard

importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch_size", type=int, default=2)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=4)
    parser.add_argument("--behind-the-back", type=int, default=0)
    args = parser.parse_args()
    accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps)
    if args.behind_the_back:
        accelerator.state.deepspeed_plugin.deepspeed_config["gradient_accumulation_steps"] = (
            args.behind_the_back
        )
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    rows = torch.randn(16, 8)
    loader = torch.utils.data.DataLoader(rows, batch_size=args.batch_size)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    guard(accelerator)
    for batch in loader:
        with accelerator.accumulate(model):
            accelerator.backward(model(batch).square().mean())
            optimizer.step()
            optimizer.zero_grad()
    # Without a GPU Accelerate takes itself for the only process.
    if torch.distributed.get_rank() == 0:
        print("steps", model.global_steps, flush=True)
    # Threads of a process group that is left open can abort the process when it ends.
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
