"""Arguments from a signature, which python-fire reads."""

import fire


def train(batch_size: int = 128, micro_batch_size: int = 4):
    print(batch_size // micro_batch_size)


if __name__ == "__main__":
    fire.Fire(train)
