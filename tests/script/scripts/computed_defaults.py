"""Defaults that are written as something else than one number."""

import argparse
import os
from pathlib import Path

BATCH = 2**4
WARMUP: int = 3 * 100
LEARNING_RATE = 1e-4 * 2
NAME = "tiny"
OUTPUT = f"out/{NAME}-{BATCH}"
BETAS = (0.9, 0.95)
DEVICES = int(os.environ.get("DEVICES", "1"))
EPOCHS = 3
if DEVICES > 1:
    EPOCHS = 5
QUIET = None


class Defaults:
    clip = 0.5
    seed: int = 1234


parser = argparse.ArgumentParser()
parser.add_argument("--batch_size", type=int, default=BATCH)
parser.add_argument("--eval_batch_size", type=int, default=BATCH * 2)
parser.add_argument("--total", type=int, default=BATCH // 3 - -1)
parser.add_argument("--warmup", type=int, default=WARMUP)
parser.add_argument("--lr", type=float, default=LEARNING_RATE)
parser.add_argument("--lr-text", type=float, default="3e-5")
parser.add_argument("--steps", type=int, default=int(1e6))
parser.add_argument("--output", type=Path, default=OUTPUT)
parser.add_argument("--name", default=NAME)
parser.add_argument("--betas", type=float, nargs=2, default=BETAS)
parser.add_argument("--devices", type=int, default=DEVICES)
parser.add_argument("--epochs", type=int, default=EPOCHS)
parser.add_argument("--quiet", default=QUIET)
parser.add_argument("--clip", type=float, default=Defaults.clip)
parser.add_argument("--seed", type=int, default=Defaults.seed)
parser.add_argument("--negative", type=int, default=-1)
parser.add_argument("--bf16", action=argparse.BooleanOptionalAction, default=True)
parser.add_argument("--offload", action=argparse.BooleanOptionalAction)
parser.add_argument("--verbose", "-v", action="count", default=0)
parser.add_argument("--level", action="store_const", const=3, default=0)
parser.add_argument("--resume", nargs="?", const="last", default=None)
parser.add_argument("--tag", action="append")
parser.add_argument("--ratio", type=lambda text: float(text), default=0.1)
parser.add_argument("--hidden", default=argparse.SUPPRESS)
parser.add_argument("--max-steps", dest="max_train_steps", type=int, default=True and 100)
parser.add_argument("--accumulate", type=int, required=True)
parser.set_defaults(seed=7, extra="set")
parser.add_argument("--late", type=int)

if __name__ == "__main__":
    args = parser.parse_args()
    args.batch_size = args.batch_size // 2
