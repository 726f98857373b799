"""The guard that a user holds: what is attached, what was found, how it ends."""

from __future__ import annotations

import os
import sys
import weakref
from typing import TYPE_CHECKING, Any

from dsguard.runtime.balance import Balance, BalanceMeter
from dsguard.runtime.engines.tap import Tap
from dsguard.runtime.gauges import Gauges, RateOnly
from dsguard.runtime.moments import (
    Attached,
    BalanceMeasured,
    Closed,
    CountsCompared,
    EpochEnded,
    RanksCompared,
)
from dsguard.runtime.ranks import Answers, OneVoice, RankStore, counts_apart, rank_and_world_size
from dsguard.runtime.records import Recorder
from dsguard.runtime.run import Engine, Run
from dsguard.runtime.summary import Summary
from dsguard.runtime.watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from dsguard.model.finding import Finding
    from dsguard.runtime.expectation import Expectation
    from dsguard.runtime.plan import Plan
    from dsguard.runtime.reporting import Notebook
    from dsguard.runtime.windows import Window

_SECONDS_FOR_RANKS = 10.0
_RECORDS = "the training and the other checks go on; see the place that guard(record=...) names"


class Guard:
    """Holds a running engine to what was asked; made by :func:`dsguard.guard`.

    It stays on the engine until :meth:`close`, the end of a ``with`` block, the end of the
    engine or the normal end of the process; a window that is open then is reported. It does
    not keep the engine alive.
    """

    def __init__(
        self,
        engine: object,
        tap: Tap,
        notebook: Notebook,
        data_parallel_size: int,
    ) -> None:
        self._tap = tap
        self._notebook = notebook
        self._data_parallel_size = data_parallel_size
        self._closed = False
        self._process = os.getpid()
        # Also called at the normal end of the process, where an engine is rarely collected.
        self._ending: Callable[[], Any] = weakref.finalize(engine, self._engine_ends)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found so far, the first of each kind, in the order of its discovery."""
        return tuple(self._notebook.findings)

    @property
    def counts(self) -> Mapping[str, int]:
        """How often each rule has found something, by its slug."""
        return dict(self._notebook.counts)

    def summary(self) -> Summary:
        """What the run has really consumed so far, counted on this rank."""
        counts = self._tap.run.ordinary.snapshot()
        return Summary.of(counts, self._data_parallel_size, self._notebook.counts)

    @property
    def balance(self) -> Balance | None:
        """What ``balance_every`` has measured last, the same on every rank; None before that."""
        return self._tap.run.balance

    def epoch_end(self) -> None:
        """Say that the script's own loader has come to its end.

        A loader that the engine made (``training_data=``) says so itself.
        """
        if not self._closed:
            self._tap.watch.contain(
                "the end of an epoch", self._tap.tell, EpochEnded(self._tap.run)
            )

    def close(self) -> None:
        """Report an open window and take every hook off the engine. May be called again."""
        self._close(finished=True)

    def replace(self) -> None:
        """Take every hook off because another guard comes: an open window is none of its end."""
        self._close(finished=False)

    def __enter__(self) -> Guard:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # A run that stops by an exception has not come to its end: its window is no finding.
        self._close(finished=kind is None)

    def state_dict(self) -> dict[str, Any]:
        """The counts, made of numbers and dicts, to be kept with a checkpoint."""
        return self._tap.run.ordinary.snapshot().state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on counting from :meth:`state_dict` of an earlier run.

        Raises:
            KeyError: it is no state of a guard.
        """
        self._tap.run.windows.load_state_dict(state)

    def _close(self, *, finished: bool) -> None:
        if self._closed:
            return
        self._closed = True
        if os.getpid() != self._process:  # a fork: the run is its parent's, and so is the record
            self._tap.detach()
            return
        try:
            if finished:
                self._tap.watch.contain("close", self._tap.tell, Closed(self._tap.run))
            self._notebook.settle()
        finally:
            self._tap.recorder.close(self.summary(), finished=finished)
            self._tap.detach()
            detach = getattr(self._ending, "detach", None)
            if detach is not None:
                detach()

    def _engine_ends(self) -> None:
        # sys.last_value is what the interpreter has printed a traceback for.
        crashed = getattr(sys, "last_value", None) is not None
        self._close(finished=not crashed)


def start(
    engine: Any,
    view: Engine,
    expected: Expectation,
    plan: Plan,
    *,
    hooks: Callable[[Tap], None],
    learning_rate: Callable[[], float],
    data_parallel_size: int,
    told: Callable[[], Mapping[str, Any]],
    gauges: Gauges | None = None,
) -> Guard:
    """Attach: put the hooks on, compare with what was asked for and with the other ranks.

    ``hooks`` puts the hooks of this kind of engine on; ``told`` is what this rank tells the
    others. Without ``gauges`` a record knows the learning rate and no gradient norm.

    Raises:
        GuardViolation: the engine differs already, and violations are to be raised.
    """
    notebook = plan.notebook
    watch = Watch(plan.rules, notebook)
    run = Run(view, expected, plan.attached_at, contract=plan.contract)
    store = watch.contain("the store of the ranks", RankStore.connect)
    if store is not None:
        notebook.voice = OneVoice(store)

    def switched_off(what: str, error: Exception) -> None:
        watch.fault(f"writing a record to {what}", error, "no more are written there", _RECORDS)

    recorder = Recorder(plan.sinks, gauges or RateOnly(learning_rate), switched_off)

    every = plan.every  # the plan itself holds the script's optimizer and loader
    meter = BalanceMeter(plan.balance_every) if plan.balance_every else None

    def at_step(window: Window) -> None:
        notebook.settle()
        if every and window.number % every == 0:
            watch.tell(CountsCompared(run, counts_apart(run.windows)))
        balance = meter.step(window) if meter is not None else None
        if balance is not None:
            run.balance = balance
            watch.tell(BalanceMeasured(run, balance))

    def waits() -> bool:
        return bool(every) or meter is not None or notebook.waits

    others = store is not None or every or meter is not None
    tap = Tap(run, watch, learning_rate, at_step if others else None, waits, recorder, meter)
    guard = Guard(engine, tap, notebook, data_parallel_size)
    try:
        rank, world_size = rank_and_world_size()
        recorder.start(view, rank, world_size, data_parallel_size, notebook.findings)
        watch.contain("attaching", hooks, tap)
        watch.contain("attaching", watch.tell, Attached(run))
        if plan.compare_ranks and store is not None:
            watch.contain("comparing the ranks", _compare_ranks, store, run, watch, told)
    except BaseException:
        guard.replace()
        raise
    return guard


def _compare_ranks(
    store: RankStore, run: Run, watch: Watch, told: Callable[[], Mapping[str, Any]]
) -> None:
    def judge(answers: Answers) -> None:
        watch.tell(RanksCompared(run, answers.apart, answers.missing, _SECONDS_FOR_RANKS))

    store.compare(told(), _SECONDS_FOR_RANKS, judge)
