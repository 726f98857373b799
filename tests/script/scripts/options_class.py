"""Options as a class that keeps its parser, with a subclass that adds more."""

import argparse


class BaseOptions:
    def __init__(self):
        self.parser = argparse.ArgumentParser(
            formatter_class=argparse.ArgumentDefaultsHelpFormatter
        )
        self.is_train = False

    def initialize(self, parser):
        parser.add_argument("--name", type=str, default="experiment")
        parser.add_argument("--batch_size", type=int, default=1, help="input batch size")
        return parser

    def parse(self):
        self.initialize(self.parser)
        return self.parser.parse_args()


class TrainOptions(BaseOptions):
    def initialize(self, parser):
        BaseOptions.initialize(self, parser)
        parser.add_argument("--lr", type=float, default=0.0002)
        parser.set_defaults(batch_size=3)
        return parser


if __name__ == "__main__":
    options = TrainOptions().parse()
    print(options)
