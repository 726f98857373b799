"""One record per optimizer step, for whoever wants to look at the run afterwards."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TypeAlias

from dsguard import __version__
from dsguard.model.record import FoundLine, HeaderLine, StepLine, SummaryLine, real
from dsguard.runtime.later import Later
from dsguard.runtime.loaded import release_of
from dsguard.runtime.tokens import count_tokens

if TYPE_CHECKING:
    from dsguard.model.fact import FactName
    from dsguard.model.finding import Finding
    from dsguard.runtime.gauges import Gauges
    from dsguard.runtime.run import Engine
    from dsguard.runtime.sink import Sink
    from dsguard.runtime.summary import Summary
    from dsguard.runtime.windows import Window, Windows

_HELD = 8
"""Records that wait for their gradient norm at most; what has not come by then is left out."""


Trouble: TypeAlias = Callable[[str, Exception], None]
"""Called with what was switched off and why."""


class Recorder:
    """Makes the records of one rank and hands them to the sinks, in the order of the steps.

    Nothing here raises: a sink that fails is told to ``trouble`` once and asked no more. A
    gradient norm that lies on a device is read when it has arrived, so a record may be written
    a few steps late.
    """

    def __init__(self, sinks: Sequence[Sink], gauges: Gauges, trouble: Trouble) -> None:
        self._sinks = list(sinks)
        self._gauges = gauges
        self._trouble = trouble
        self._later = Later()
        self._held: deque[_Waiting] = deque()
        self._rank = 0
        self._started = time.monotonic()
        self._findings: Sequence[Finding] = ()
        self._told = 0
        self._rate: float | None = None
        self._scale: float | None = None
        self._read_ahead = False

    @property
    def wanted(self) -> bool:
        """Whether anybody wants records."""
        return bool(self._sinks)

    def start(
        self,
        engine: Engine,
        rank: int,
        world_size: int,
        data_parallel_size: int,
        findings: Sequence[Finding],
    ) -> None:
        """Write the header. ``findings`` is the list that the guard goes on filling."""
        self._rank, self._findings = rank, findings
        self._started = time.monotonic()
        self._contain(self._open, engine, world_size, data_parallel_size)

    def batch(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], windows: Windows) -> None:
        """A training forward is about to run: count its tokens."""
        self._contain(self._count, args, kwargs, windows)

    def stepping(self) -> None:
        """The optimizer is about to step: read what the scheduler and the scaler then change."""
        self._contain(self._read_gauges)

    def step(self, window: Window) -> None:
        """Take one closed window down."""
        self._contain(self._take, window)

    def close(self, summary: Summary, *, finished: bool) -> None:
        """Hand over what is held and write the summary. Calling it again does nothing."""
        self._contain(self._end, summary, finished)
        self._sinks.clear()

    def _contain(self, what: Callable[..., None], *args: Any) -> None:
        if not self._sinks:
            return
        try:
            what(*args)
        except Exception as error:
            for sink in tuple(self._sinks):
                self._drop(sink, error)

    def _open(self, engine: Engine, world_size: int, data_parallel_size: int) -> None:
        facts = engine.facts()

        def value(name: FactName) -> Any:
            known = facts.get(name)
            return known.value if known is not None else None

        header = HeaderLine(
            dsguard=__version__,
            deepspeed=release_of("deepspeed"),
            torch=release_of("torch"),
            engine=engine.kind,
            started_at=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            rank=self._rank,
            world_size=world_size,
            data_parallel_size=data_parallel_size,
            gradient_accumulation_steps=value("gradient_accumulation_steps"),
            micro_batch_size=value("micro_batch_size"),
            train_batch_size=value("train_batch_size"),
            gradient_clipping=real(value("gradient_clipping")),
            zero_stage=value("zero_stage"),
            precision=value("precision"),
        )
        self._each(lambda sink: sink.open(header, self._gauges))

    def _count(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], windows: Windows) -> None:
        windows.tokens(*count_tokens(args, kwargs))

    def _read_gauges(self) -> None:
        self._rate, self._scale = self._gauges.learning_rate(), self._gauges.loss_scale()
        self._read_ahead = True

    def _take(self, window: Window) -> None:
        if not self._read_ahead:
            self._read_gauges()
        self._read_ahead = False
        line = StepLine(
            step=window.number,
            rank=self._rank,
            micro_batches=window.micro_batches,
            expected=window.expected,
            samples=window.samples or None,
            tokens=window.tokens,
            tokens_unpadded=window.tokens_unpadded,
            applied=window.applied,
            grad_norm=None,
            learning_rate=real(self._rate),
            loss_scale=real(self._scale),
            seconds=self._seconds(),
            findings=self._new_findings(),
        )
        waiting = _Waiting(line)
        waiting.ask(self._gauges.grad_norm(), self._later)
        self._held.append(waiting)
        self._later.arrive()
        self._hand_over(_HELD)

    def _end(self, summary: Summary, finished: bool) -> None:
        self._later.arrive()
        self._hand_over(0)
        ending = SummaryLine(
            rank=self._rank,
            finished=finished,
            optimizer_steps=summary.optimizer_steps,
            skipped_steps=summary.skipped_steps,
            micro_batches=summary.micro_batches,
            pending_micro_batches=summary.pending_micro_batches,
            windows=dict(summary.windows),
            samples_per_step=dict(summary.samples_per_step),
            counts=dict(summary.findings),
            findings=self._new_findings(),
            seconds=self._seconds(),
        )
        self._each(lambda sink: sink.close(ending))

    def _hand_over(self, held: int) -> None:
        """Give the sinks every record that is complete, and all but the last ``held``."""
        while self._held and (self._held[0].complete or len(self._held) > held):
            line = self._held.popleft().line
            self._each(lambda sink, line=line: sink.take(line))  # type: ignore[misc]

    def _each(self, give: Callable[[Sink], None]) -> None:
        for sink in tuple(self._sinks):
            try:
                give(sink)
            except Exception as error:
                self._drop(sink, error)

    def _drop(self, sink: Sink, error: Exception) -> None:
        self._sinks.remove(sink)
        with suppress(Exception):
            sink.drop()
        self._trouble(sink.name, error)

    def _new_findings(self) -> list[FoundLine]:
        new = self._findings[self._told :]
        self._told += len(new)
        return [_found(finding) for finding in new]

    def _seconds(self) -> float:
        return round(time.monotonic() - self._started, 6)


class _Waiting:
    """A record, and whether it has its gradient norm or will never have it."""

    def __init__(self, line: StepLine) -> None:
        self.line = line
        self.complete = True

    def ask(self, norm: Any, later: Later) -> None:
        """Take the norm, now or when it has arrived."""
        if norm is None:
            return
        if isinstance(norm, (int, float)):
            self._arrived(norm)
        else:
            self.complete = not later.read(norm, self._arrived)

    def _arrived(self, value: float) -> None:
        self.line.grad_norm = real(float(value))
        self.complete = True


def _found(finding: Finding) -> FoundLine:
    source, span, _ = finding.location
    return FoundLine(
        code=finding.code,
        rule=finding.rule,
        severity=finding.severity.value,
        message=_plain(finding.message),
        file=_plain(source.name) if source.is_file else None,
        line=source.position(span.start).line if source.is_file else None,
        help=_plain(finding.help) or None,
    )


def _plain(text: str) -> str:
    """Without the lone surrogates of a path that is no UTF-8: readers of JSON refuse them."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
