"""One function, handed to typer."""

import typer


def main(config: str, accumulation: int = 4, *, resume: bool = False):
    print(config, accumulation, resume)


if __name__ == "__main__":
    typer.run(main)
