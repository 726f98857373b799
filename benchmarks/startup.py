"""What one cold check costs, beside the libraries it stands on and beside DeepSpeed itself.

    python benchmarks/startup.py

Each program is started several times in turn; the least CPU time of a whole process counts, its
interpreter included. All read the shipped example.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

EXAMPLE = Path(__file__).parent.parent / "fixtures" / "runs" / "accumulation-ignored"
TURNS = 7
MODELS = "from pydantic import BaseModel\nclass One(BaseModel):\n    x: int = 1\nOne()"
JUDGED = (
    "from deepspeed.runtime.config import DeepSpeedConfig\n"
    "DeepSpeedConfig({'train_batch_size': 32, 'gradient_accumulation_steps': 1})"
)
LAUNCH = (EXAMPLE / "launch.txt").read_text(encoding="utf-8").split()
PROGRAMS = {
    "floor: import pydantic, typer, rich.console": [
        *("-c", "import pydantic, typer, rich.console")
    ],
    "one pydantic model, made and used": ["-c", MODELS],
    "dsguard --version": ["-m", "dsguard", "--version"],
    "dsguard check": [
        *("-m", "dsguard", "check", "ds_config.json", "--target", "0.19.8", "--", *LAUNCH)
    ],
    "DeepSpeedConfig of such a file": ["-c", JUDGED],
}


def cpu_seconds(arguments: list[str]) -> float:
    """User and system time of one process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environ = {**os.environ, "DS_ACCELERATOR": "cpu", "WORLD_SIZE": "1", "RANK": "0"}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run(
        [sys.executable, *arguments], cwd=EXAMPLE, env=environ, capture_output=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Start everything in turn, and print the ratios."""
    least = dict.fromkeys(PROGRAMS, float("inf"))
    for _ in range(TURNS):
        for name, arguments in PROGRAMS.items():
            least[name] = min(least[name], cpu_seconds(arguments))
    floor = least["floor: import pydantic, typer, rich.console"]
    table = Table("a process", "CPU, ms", "of the floor", title="cold starts")
    for name, seconds in least.items():
        table.add_row(name, f"{seconds * 1e3:.0f}", f"{seconds / floor:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
