"""A DeepSpeed loop in the shape of the tutorials: one argparse parser, one group."""

import argparse

import deepspeed
import torch


def get_arguments():
    parser = argparse.ArgumentParser(description="image classifier")
    parser.add_argument("-b", "--batch_size", default=32, type=int, help="samples per GPU")
    parser.add_argument("-e", "--epochs", default=30, type=int)
    parser.add_argument("--local_rank", type=int, default=-1)
    parser.add_argument("--log-interval", type=int, default=2000)
    parser.add_argument(
        "--dtype", default="fp16", type=str, choices=["bf16", "fp16", "fp32"], help="precision"
    )
    parser.add_argument("--stage", default=0, type=int, choices=[0, 1, 2, 3])
    experts = parser.add_argument_group("mixture of experts")
    experts.add_argument("--moe", default=False, action="store_true")
    experts.add_argument("--num-experts", type=int, nargs="+", default=[1])
    experts.add_argument("--mlp-type", type=str, default="standard")
    parser = deepspeed.add_config_arguments(parser)
    return parser.parse_args()


def main(args):
    net = torch.nn.Linear(4, 4)
    engine, _, _, _ = deepspeed.initialize(args=args, model=net, model_parameters=net.parameters())
    for _ in range(args.epochs):
        loss = engine(torch.randn(args.batch_size, 4)).sum()
        engine.backward(loss)
        engine.step()


if __name__ == "__main__":
    main(get_arguments())
