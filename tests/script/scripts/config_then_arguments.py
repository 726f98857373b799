"""A first parser only for a config file, whose values become defaults of the second."""

import argparse
import json

config_parser = argparse.ArgumentParser(add_help=False)
config_parser.add_argument("-c", "--config", default="", type=str)
parser = argparse.ArgumentParser(parents=[config_parser])
parser.add_argument("--batch-size", type=int, default=128)
parser.add_argument("--clip-grad", type=float, default=None)


def parse():
    args_config, remaining = config_parser.parse_known_args()
    if args_config.config:
        with open(args_config.config) as f:
            parser.set_defaults(**json.load(f))
    return parser.parse_args(remaining)


print(parse())
