"""How long dsguard takes, as ratios of times measured in one run.

    python benchmarks/throughput.py [ROUNDS]

Every time is the least CPU time of several runs of a whole process, the kinds taken in turn so
that a busy machine slows them all. With ``DSGUARD_CORPUS=<folder with configs/*.json>`` the
configs are public ones instead of the rules' fixtures; where check-jsonschema is installed it
validates the same files against ``dsguard schema``.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

FIXTURES = Path(__file__).parent.parent / "fixtures" / "rules"
FLOOR = [sys.executable, "-c", "import pydantic, typer, rich.console"]
PEER = shutil.which("check-jsonschema")
MANY = 300
LARGE = {
    "JSON, MB": (5, 10),
    "keys": (5_000, 10_000),
    "repeated keys": (5_000, 10_000),
    "levels of nesting": (500, 1_000),
    "files": (5_000, 10_000),
}
"""What grows, and the two sizes that are compared."""


def configs() -> Iterator[Path]:
    """Public configs, or the fixtures, over and over."""
    corpus = os.environ.get("DSGUARD_CORPUS")
    found = sorted(Path(corpus).glob("configs/*.json") if corpus else FIXTURES.glob("*/*/*.json"))
    while True:
        yield from found


def copies(folder: Path, number: int) -> Path:
    """A folder with this many configs."""
    folder = folder / str(number)
    folder.mkdir()
    for index, config in zip(range(number), configs(), strict=False):
        shutil.copy(config, folder / f"ds_config_{index:05}.json")
    return folder


def large(folder: Path, kind: str, size: int) -> list[str]:
    """The command that checks one large thing."""
    if kind == "files":
        return check([str(copies(folder, size))])
    path = folder / f"{kind.split(',')[0].replace(' ', '-')}-{size}.json"
    texts = {
        "JSON, MB": lambda: json.dumps(
            {"train_batch_size": 8, "x": ["0123456789"] * (size * 74_000)}
        ),
        "keys": lambda: json.dumps({"zero_optimization": {}} | {f"key{i}": i for i in range(size)}),
        "repeated keys": lambda: "{" + ", ".join(['"train_batch_size": 8'] * size) + "}",
        "levels of nesting": lambda: '{"a": ' * size + "1" + "}" * size,
    }
    path.write_text(texts[kind]())
    return check([str(path)])


def check(files: list[str]) -> list[str]:
    return [sys.executable, "-m", "dsguard", "check", "--target", "0.19.8", "-o", "json", *files]


def seconds(command: list[str], folder: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, cwd=folder, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def best_of(runs: dict[str, list[str]], rounds: int, folder: Path) -> dict[str, float]:
    """The shortest time of each, all of them run in turn."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for kind, command in runs.items():
            best[kind] = min(best[kind], seconds(command, folder))
    return best


def throughput(root: Path, rounds: int) -> Table:
    numbers = (1, 30, MANY)
    files = {n: [str(path) for path in sorted(copies(root, n).iterdir())] for n in numbers}
    runs = {"floor": FLOOR} | {str(n): check(files[n]) for n in numbers}
    if PEER is not None:
        schema = root / "schema.json"
        with schema.open("w") as file:
            subprocess.run([sys.executable, "-m", "dsguard", "schema"], stdout=file, check=True)
        for n in (1, MANY):
            runs[f"peer {n}"] = [PEER, "--schemafile", str(schema), *files[n]]
    best = best_of(runs, rounds, root)
    table = Table("what", "value", title="dsguard check, whole processes")
    table.add_row("1 file / import pydantic, typer, rich.console", ratio(best["1"], best["floor"]))
    table.add_row("300 files / 30 files", ratio(best["300"], best["30"]))
    table.add_row("300 files / (30 files + start-up)", ratio(best["300"], best["30"] + best["1"]))
    one_more = (best["300"] - best["1"]) / (MANY - 1)
    table.add_row("one more file / 1 file with start-up", f"{one_more / best['1']:.4f}")
    table.add_row("one more file", f"{one_more * 1e3:.1f} ms")
    if PEER is not None:
        table.add_row("300 files / check-jsonschema", ratio(best["300"], best["peer 300"]))
        theirs = (best["peer 300"] - best["peer 1"]) / (MANY - 1)
        table.add_row("one more file / check-jsonschema", ratio(one_more, theirs))
    return table


def growth(root: Path) -> Table:
    runs = {
        f"{kind} {size}": large(root, kind, size) for kind, sizes in LARGE.items() for size in sizes
    }
    best = best_of({"1": check([])} | runs, 1, root)
    table = Table("what", "half", "whole", "whole / half", title="twice as much")
    for kind, (half, whole) in LARGE.items():
        short, long = (best[f"{kind} {size}"] for size in (half, whole))
        table.add_row(f"{whole} {kind}", f"{short:.2f} s", f"{long:.2f} s", ratio(long, short))
    return table


def ratio(one: float, other: float) -> str:
    return f"{one / other:.2f}"


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    with tempfile.TemporaryDirectory() as name:
        Console().print(throughput(Path(name), rounds))
    with tempfile.TemporaryDirectory() as name:
        Console().print(growth(Path(name)))


if __name__ == "__main__":
    main()
