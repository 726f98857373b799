"""Parses the command line at import."""

import argparse

BATCH = 12
_parser = argparse.ArgumentParser()
_parser.add_argument("--batch_size", type=int, default=BATCH)
_parser.add_argument("--gas", "--gradient_accumulation_steps", type=int, default=2)
args = _parser.parse_args()
