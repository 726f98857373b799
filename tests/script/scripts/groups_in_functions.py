# Written as such scripts are.
# ruff: noqa: RUF059
"""Arguments collected by one function per topic, each of which gets the parser."""

import argparse
import os
from argparse import ArgumentParser as Parser


def add_model_args(parser):
    group = parser.add_argument_group("model", "model configuration")
    group.add_argument("--hidden-size", type=int, default=1024)
    group.add_argument("--num-layers", type=int, default=24)
    group.add_argument("--checkpoint-activations", action="store_true")
    return parser


def add_training_args(parser, micro_batch_size=4):
    group = parser.add_argument_group("train")
    group.add_argument("--batch-size", type=int, default=micro_batch_size)
    group.add_argument("--gradient-accumulation-steps", type=int, default=1)
    group.add_argument("--lr", type=float, default=1.0e-4)
    group.add_argument("--clip-grad", type=float, default=1.0)
    exclusive = group.add_mutually_exclusive_group()
    exclusive.add_argument("--fp16", action="store_true")
    exclusive.add_argument("--bf16", action="store_true")
    group.add_argument("--no-shuffle", dest="shuffle", action="store_false")
    return parser


def add_data_args(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", nargs="*")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int)


def get_args():
    parser = Parser(description="language model")
    parser = add_model_args(parser)
    parser = add_training_args(parser, micro_batch_size=8)
    add_data_args(parser)
    args, unknown = parser.parse_known_args()
    args.world_size = int(os.environ.get("WORLD_SIZE", "1"))
    return args


def main():
    args = get_args()
    print(args)


main()
