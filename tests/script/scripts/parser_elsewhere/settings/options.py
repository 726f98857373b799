"""Options of the training."""

import argparse

from . import defaults
from .defaults import BATCH_SIZE


def get_parser():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--batch-size", type=int, default=BATCH_SIZE)
    parser.add_argument("--lr", type=float, default=defaults.LEARNING_RATE)
    parser.add_argument("--warmup", type=int, default=defaults.WARMUP["steps"])
    return parser


if __name__ == "__main__":
    get_parser().parse_args(["--lr", "1"])
