# Written as such scripts are.
# ruff: noqa: UP006, UP035, UP045
"""A typer app with one command."""

from enum import Enum
from pathlib import Path
from typing import Annotated, List, Optional

import typer

app = typer.Typer(add_completion=False)
RATE = 1e-4


class Precision(str, Enum):
    bf16 = "bf16"
    fp16 = "fp16"


@app.command()
def train(
    data: Path,
    batch_size: int = 8,
    lr: Annotated[float, typer.Option("--lr", "-l", help="peak")] = RATE,
    offload: bool = True,
    fp16: bool = typer.Option(False, "--fp16"),
    quiet: Annotated[bool, typer.Option("--quiet/--loud", "-q/-Q")] = False,
    tags: Optional[List[str]] = None,
    precision: Precision = Precision.bf16,
    name: Optional[str] = typer.Option(None, help="of the run"),
    project: str = typer.Option(...),
    output: str = typer.Argument("out"),
    steps: int = typer.Option(4, "--n-steps", "-n"),
    where: Annotated[str, typer.Argument()] = "here",
    maybe: Optional[bool] = None,
    betas: tuple[float, float] = (0.9, 0.95),
):
    print(data, batch_size, lr, offload, fp16, quiet, tags, precision, name, project, output)
    print(steps, where, maybe, betas)


if __name__ == "__main__":
    app()
