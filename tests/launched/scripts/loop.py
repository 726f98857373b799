"""A loop of its own on a DeepSpeed engine.

``--behind-the-back N`` changes the accumulation in the file after the launch was checked.
"""

import argparse
import importlib
import json
from pathlib import Path

import deepspeed
import torch

importlib.import_module("deepspeed.comm.torch").build_shm_op = lambda: None

parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=2)
parser.add_argument("--gradient_accumulation_steps", type=int, default=4)
parser.add_argument("--behind-the-back", type=int, default=0)
parser.add_argument("--guard", action="store_true")
deepspeed.add_config_arguments(parser)
args = parser.parse_args()
deepspeed.init_distributed("gloo")
if args.behind_the_back:
    if torch.distributed.get_rank() == 0:
        path = Path(args.deepspeed_config)
        changed = {
            "gradient_accumulation_steps": args.behind_the_back,
            "train_batch_size": 4 * args.behind_the_back,
        }
        path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    torch.distributed.barrier()
torch.manual_seed(0)
model = torch.nn.Linear(8, 1)
engine, *_ = deepspeed.initialize(
    model=model, model_parameters=model.parameters(), config=args.deepspeed_config
)
if args.guard:
    from dsguard import guard

    guard(engine)
for _ in range(8):
    loss = engine(torch.randn(args.batch_size, 8)).pow(2).mean()
    engine.backward(loss)
    engine.step()
if engine.global_rank == 0:
    print("steps", engine.global_steps, flush=True)
# Threads of a process group that is left open can abort the process when it ends.
torch.distributed.destroy_process_group()
