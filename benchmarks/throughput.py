"""How long dsguard takes, as ratios of times measured in one run.

    python benchmarks/throughput.py

Every time is the best of several runs of a whole process, the kinds taken in turn so that a
busy machine slows them all.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

FIXTURES = Path(__file__).parent.parent / "fixtures" / "rules"
ROUNDS = 7
FLOOR = [sys.executable, "-c", "import pydantic, typer, rich.console"]


def copies(folder: Path, number: int) -> Path:
    """A folder with this many configs, the rules' fixtures over and over."""
    configs = sorted(FIXTURES.glob("*/*/*.json"))
    folder = folder / str(number)
    folder.mkdir()
    for index in range(number):
        shutil.copy(configs[index % len(configs)], folder / f"ds_config_{index:05}.json")
    return folder


def seconds(command: list[str], folder: Path) -> float:
    start = time.perf_counter()
    subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return time.perf_counter() - start


def check(folder: Path) -> list[str]:
    files = sorted(str(path) for path in folder.iterdir())
    return [sys.executable, "-m", "dsguard", "check", "--target", "0.19.8", "-o", "json", *files]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        runs = {"floor": FLOOR}
        runs |= {str(n): check(copies(root, n)) for n in (1, 30, 300)}
        best = dict.fromkeys(runs, float("inf"))
        for _ in range(ROUNDS):
            for kind, command in runs.items():
                best[kind] = min(best[kind], seconds(command, root))
    table = Table("what", "ratio", title="dsguard check, whole processes")
    table.add_row(
        "1 file / import pydantic, typer, rich.console", f"{best['1'] / best['floor']:.2f}"
    )
    table.add_row("300 files / 30 files", f"{best['300'] / best['30']:.2f}")
    table.add_row(
        "300 files / (30 files + start-up)", f"{best['300'] / (best['30'] + best['1']):.2f}"
    )
    per_file = (best["300"] - best["30"]) / 270
    table.add_row("one more file / 1 file with start-up", f"{per_file / best['1']:.4f}")
    Console().print(table)


if __name__ == "__main__":
    main()
