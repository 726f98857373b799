"""The long run: ``python -m tests.fuzz [--minutes N] [TARGET ...]``.

With atheris (``pip install atheris``; Linux and macOS), which follows the lines that an input
reaches, else with hypothesis. Every target has a process and its share of the time. A fault ends
its target, says with which bytes, and leaves them in the folder of ``--keep``.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fuzz.targets import FuzzTarget

ROOT = Path(__file__).parents[2]
MOST_MEMORY = 1 << 30
"""Bytes, of the process. What wants more is refused them, where it asks."""
MOST_GROWTH = MOST_MEMORY >> 1
"""Bytes that one input may add to the most that the process has taken so far."""
MOST_SECONDS = 60
"""For one input."""


def main() -> None:
    """All targets in turn, or one of them in this process; exits with 1 after a fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET")
    parser.add_argument("--minutes", type=float, default=60, help="over all targets together")
    parser.add_argument("--engine", choices=("atheris", "hypothesis"))
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "dsguard-fuzz")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    engine = given.engine or ("atheris" if find_spec("atheris") else "hypothesis")
    keep = given.keep.absolute()
    keep.mkdir(parents=True, exist_ok=True)
    if given.here:
        run = with_atheris if engine == "atheris" else with_hypothesis
        run(given.targets[0], given.minutes * 60, keep)
        return
    names = given.targets or names_of_targets()
    failed = [
        name for name in names if not in_a_process(name, given.minutes / len(names), engine, keep)
    ]
    print(f"{len(names)} targets, faults in: {', '.join(failed) or 'none'}")
    sys.exit(bool(failed))


def names_of_targets() -> list[str]:
    from tests.fuzz.targets import TARGETS

    return list(TARGETS)


def in_a_process(name: str, minutes: float, engine: str, keep: Path) -> bool:
    """Whether a target has stood its time."""
    print(f"== {name}: {minutes:.1f} minutes with {engine}", flush=True)
    options = ["--minutes", str(minutes), "--engine", engine, "--keep", str(keep), "--here"]
    command = [sys.executable, "-m", "tests.fuzz", name, *options]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def with_atheris(name: str, seconds: float, keep: Path) -> None:
    """Run a target under libFuzzer; the process ends with it."""
    import atheris

    with atheris.instrument_imports(include=["dsguard"]):
        from tests.fuzz.targets import TARGETS
    target, folder = TARGETS[name], at_work(keep)
    target.prepare(folder)
    limit_memory()
    corpus = keep / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    words = keep / f"{name}.words"
    lines = ("".join(f"\\x{byte:02x}" for byte in word) for word in all_words(name) if word)
    words.write_text("".join(f'"{line}"\n' for line in lines))
    options = [
        f"-dict={words}", f"-artifact_prefix={keep}/{name}-", f"-max_total_time={int(seconds)}",
        # Its own limit looks once a second and blames the input of that moment.
        f"-timeout={MOST_SECONDS}", "-rss_limit_mb=0", "-max_len=20000",
        "-print_final_stats=1", "-verbosity=1", "-reload=0",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(corpus)], lambda data: take(target, data, folder))
    atheris.Fuzz()


def with_hypothesis(name: str, seconds: float, keep: Path) -> None:
    """Run a target on mutations of its seeds, with another seed for every few hundred."""
    from hypothesis import HealthCheck, Phase, given, seed, settings

    from tests.fuzz.inputs import inputs
    from tests.fuzz.targets import TARGETS

    target, folder = TARGETS[name], at_work(keep)
    target.prepare(folder)
    limit_memory()
    signal.signal(signal.SIGALRM, _too_long)
    count, end = 0, time.monotonic() + seconds

    @settings(
        max_examples=300,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate,),
    )
    @given(inputs(target.seeds, target.words))
    def one(data: bytes) -> None:
        nonlocal count
        count += 1
        (keep / f"{name}-last").write_bytes(data)
        signal.alarm(MOST_SECONDS)
        try:
            take(target, data, folder)
        except AssertionError as error:
            # The watch of effects is told of the file below, too.
            raise RuntimeError(str(error)) from error
        finally:
            signal.alarm(0)

    number = 0
    while time.monotonic() < end:
        number += 1
        seed(number)(one)()
    print(f"{name}: {count} inputs, {most_taken() >> 20} MiB")


def limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))


def take(target: FuzzTarget, data: bytes, folder: Path) -> None:
    """One input, also judged by the memory that it takes.

    Raises:
        MemoryError: too much.
    """
    before = most_taken()
    target(data, folder)
    grown = most_taken() - before
    if grown > MOST_GROWTH:
        raise MemoryError(f"an input of {len(data)} bytes took {grown >> 20} MiB")


def most_taken() -> int:
    """The most memory that this process has had at once, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most << 10


def _too_long(number: int, frame: object) -> None:
    raise TimeoutError(f"an input took more than {MOST_SECONDS} seconds")


def all_words(name: str) -> list[bytes]:
    from tests.fuzz.inputs import WORDS
    from tests.fuzz.targets import TARGETS

    return [word for word in (*TARGETS[name].words, *WORDS) if len(word) < 64]


def at_work(keep: Path) -> Path:
    """A folder of its own, in which this process then works."""
    folder = Path(tempfile.mkdtemp(dir=keep))
    os.chdir(folder)
    return folder


if __name__ == "__main__":
    main()
