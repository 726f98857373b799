"""An argparse parser with subcommands."""

import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=1)
commands = parser.add_subparsers(dest="command")
train = commands.add_parser("train")
train.add_argument("--batch-size", type=int, default=8)
args = parser.parse_args()
