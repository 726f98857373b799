"""Running training scripts on a real DeepSpeed, one after the other in the same processes.

A crew is one process a rank, whose process group is made once. It is given scripts as JSON lines
and answers with what the guard has found and what the training has come to.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import json
import linecache
import logging
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest import mock

from tests.guard.fleet import ROOT, join_ranks, prepare_deepspeed, rank_environment

TINY = ROOT / "fixtures" / "guard"
_SECONDS = 120
_SECONDS_FOR_RANKS = 60.0


@dataclass(frozen=True)
class Found:
    """A finding and the moment it was there: ``attach``, ``close`` or ``micro-batch N``."""

    rule: str
    severity: str
    when: str
    message: str


@dataclass(frozen=True)
class Answer:
    """What one rank says of a script. ``said`` is what it has logged, ``error`` why it stopped."""

    found: tuple[Found, ...] = ()
    outcome: dict[str, Any] = field(default_factory=dict)
    said: str = ""
    error: str = ""


class Crew:
    """The processes of one run."""

    def __init__(self, ranks: int) -> None:
        with socket.create_server(("127.0.0.1", 0)) as door:
            self._ranks = [
                subprocess.Popen(
                    [sys.executable, "-m", "tests.guard.scripts"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    cwd=ROOT,
                    pass_fds=[door.fileno()] if rank == 0 else [],
                    env={
                        **rank_environment(rank, ranks, door),
                        "PYTHONPATH": os.pathsep.join(
                            [str(TINY), os.environ.get("PYTHONPATH", "")]
                        ),
                    },
                )
                for rank in range(ranks)
            ]
        self._errors: list[str] = ["" for _ in self._ranks]
        for rank, process in enumerate(self._ranks):
            threading.Thread(target=self._drain, args=(rank, process), daemon=True).start()

    def run(
        self,
        source: str,
        name: str,
        stage: int = 0,
        *,
        before: str = "",
        release: str = "",
        seconds_for_ranks: float = _SECONDS_FOR_RANKS,
    ) -> list[Answer]:
        """The answer of each rank to a script, which stands under ``name`` in its messages.

        ``before`` is code that runs first, in the same namespace. With a ``release`` the guard
        takes the engine for one of it. ``seconds_for_ranks`` is how long a rank is waited for at
        attach: long on a busy machine, short where none comes.

        Raises:
            AssertionError: a rank died or hangs; the crew is of no use any more.
        """
        request: dict[str, Any] = {"source": source, "name": name, "stage": stage}
        request |= {"before": before, "release": release, "seconds": seconds_for_ranks}
        line = json.dumps(request) + "\n"
        for process in self._ranks:
            assert process.stdin is not None
            process.stdin.write(line)
            process.stdin.flush()
        alarm = threading.Timer(_SECONDS, self.end)
        alarm.start()
        try:
            return [self._answer(rank, process) for rank, process in enumerate(self._ranks)]
        finally:
            alarm.cancel()

    def end(self) -> None:
        """End the processes."""
        for process in self._ranks:
            process.kill()
            process.wait()

    def _answer(self, rank: int, process: subprocess.Popen[str]) -> Answer:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, f"rank {rank} died or hangs: {self._errors[rank][-6000:]}"
        fields = json.loads(line)
        return Answer(**fields | {"found": tuple(Found(**found) for found in fields["found"])})

    def _drain(self, rank: int, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            self._errors[rank] += line


def _serve() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    prepare_deepspeed()
    join_ranks()
    for number, line in enumerate(sys.stdin):
        print(json.dumps(_run(number, **json.loads(line))), file=answers, flush=True)
    # Destructors of PyTorch and DeepSpeed can abort an ordinary exit, or wait for other ranks.
    os._exit(0)


def _run(
    number: int,
    source: str,
    name: str,
    stage: int,
    before: str,
    release: str,
    seconds: float,
) -> dict[str, Any]:
    import tiny

    from dsguard.runtime import ranks, session

    os.environ["ZERO_STAGE"] = str(stage)
    tiny.given = tiny.samples = 0
    # Guards are matched by the order in which a process attaches them, and a script may attach
    # fewer on one rank than on another.
    ranks._attached = itertools.count(number * 100)
    session._SECONDS_FOR_RANKS = seconds
    namespace: dict[str, Any] = {"__name__": "__main__", "__file__": name, "rank": tiny.RANK}
    error = ""
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    with _listening() as (found, said), _pretending(release):
        try:
            exec(before, namespace)
            exec(compile(source, name, "exec"), namespace)
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
        finally:
            _close(namespace, finished=not error)
    outcome = namespace.get("outcome", {})
    namespace.clear()
    gc.collect()
    return {"found": found, "outcome": outcome, "said": "\n\n".join(said), "error": error}


@contextlib.contextmanager
def _listening() -> Iterator[tuple[list[dict[str, Any]], list[str]]]:
    """Collect what a notebook takes down the first time, and what is logged."""
    import tiny

    from dsguard.runtime.reporting import LOGGER, Notebook

    found: list[dict[str, Any]] = []
    said: list[str] = []
    write = Notebook.write

    def listen(self: Notebook, finding: Any, moment: str) -> None:
        before = len(self.findings)
        write(self, finding, moment)
        if len(self.findings) > before:
            when = {"Attached": "attach", "RanksCompared": "attach", "Closed": "close"}
            found.append(
                {
                    "rule": finding.rule,
                    "severity": finding.severity.value,
                    "when": when.get(moment, f"micro-batch {tiny.given}"),
                    "message": finding.message,
                }
            )

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    ear = Ear()
    LOGGER.addHandler(ear)
    LOGGER.propagate = False
    LOGGER.setLevel(logging.INFO)
    try:
        with mock.patch.object(Notebook, "write", listen):
            yield found, said
    finally:
        LOGGER.removeHandler(ear)


@contextlib.contextmanager
def _pretending(release: str) -> Iterator[None]:
    """Let the guard take engines for those of another release, which may not be installed."""
    from dsguard.facts.known_bugs import release_number
    from dsguard.runtime.engines import deepspeed_view

    if not release:
        yield
        return
    make = deepspeed_view.DeepSpeedView.__init__

    def remade(self: deepspeed_view.DeepSpeedView, engine: Any) -> None:
        make(self, engine)
        self._hooks_outputs = release_number(release) >= (0, 18, 3)

    with (
        mock.patch.object(deepspeed_view, "release_of", return_value=release),
        mock.patch.object(deepspeed_view.DeepSpeedView, "__init__", remade),
    ):
        yield


def _close(namespace: dict[str, Any], *, finished: bool) -> None:
    """Close every guard of a script, as the end of its process does, or an exception."""
    from dsguard.runtime.attach import _guards

    for value in list(namespace.values()):
        with contextlib.suppress(TypeError):
            guard = _guards.get(value)
            if guard is not None and (alive := guard()) is not None:
                alive.close() if finished else alive.replace()


if __name__ == "__main__":
    _serve()
