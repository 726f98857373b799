"""What one cold check costs, beside the libraries it stands on and beside DeepSpeed itself.

    python benchmarks/startup.py [TURNS]

Each program is started several times in turn; the least CPU time of a whole process counts, its
interpreter included. All read the shipped example, in a folder of its own, as most projects are
that have no settings of dsguard.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

EXAMPLE = Path(__file__).parent.parent / "fixtures" / "runs" / "accumulation-ignored"
TURNS = 15
MODELS = "from pydantic import BaseModel\nclass One(BaseModel):\n    x: int = 1\nOne()"
APP = "import typer\ndef main(name: str = ''): pass\ntyper.run(main)"
JUDGED = "from deepspeed.runtime.config import DeepSpeedConfig\nDeepSpeedConfig('ds_config.json')"
LAUNCH = (EXAMPLE / "launch.txt").read_text(encoding="utf-8").split()
PROGRAMS = {
    "floor: import pydantic, typer, rich.console": [
        *("-c", "import pydantic, typer, rich.console")
    ],
    "one pydantic model, made and used": ["-c", MODELS],
    "a typer program with one option": ["-c", APP],
    "dsguard --version": ["-m", "dsguard", "--version"],
    "dsguard check ds_config.json": ["-m", "dsguard", "check", "ds_config.json"],
    "dsguard check ds_config.json -- torchrun ... train.py ...": [
        *("-m", "dsguard", "check", "ds_config.json", "--", *LAUNCH)
    ],
    "DeepSpeedConfig of the same file": ["-c", JUDGED],
}


def cpu_seconds(arguments: list[str], folder: str) -> float:
    """User and system time of one process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environ = {**os.environ, "DS_ACCELERATOR": "cpu", "WORLD_SIZE": "1", "RANK": "0"}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environ, capture_output=True, check=False
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    """Start everything in turn, and print the ratios."""
    least = dict.fromkeys(PROGRAMS, float("inf"))
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else TURNS
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True)
        for _ in range(turns):
            for name, arguments in PROGRAMS.items():
                least[name] = min(least[name], cpu_seconds(arguments, folder))
    floor = least["floor: import pydantic, typer, rich.console"]
    table = Table("a process", "CPU, ms", "of the floor", title="cold starts")
    for name, seconds in least.items():
        table.add_row(name, f"{seconds * 1e3:.0f}", f"{seconds / floor:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
