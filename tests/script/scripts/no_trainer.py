# Written as such scripts are.
# ruff: noqa: SIM108
"""An Accelerate loop whose parse function also takes words of its own for tests."""

import argparse

from accelerate import Accelerator
from transformers import SchedulerType


def parse_args(input_args=None):
    parser = argparse.ArgumentParser(description="Finetune a model")
    parser.add_argument("--per_device_train_batch_size", type=int, default=8)
    parser.add_argument("--learning_rate", type=float, default=5e-5)
    parser.add_argument("--max_train_steps", type=int, default=None)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=1)
    parser.add_argument(
        "--lr_scheduler_type", type=SchedulerType, default="linear", help="its name"
    )
    parser.add_argument("--with_tracking", action="store_true")
    if input_args is not None:
        args = parser.parse_args(input_args)
    else:
        args = parser.parse_args()
    if args.max_train_steps is None and args.with_tracking:
        raise ValueError("steps are needed for tracking")
    return args


def main():
    args = parse_args()
    accelerator = Accelerator(gradient_accumulation_steps=args.gradient_accumulation_steps)
    accelerator.print(args)


if __name__ == "__main__":
    main()
