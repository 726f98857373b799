"""Asking the rules, and keeping every fault of the guard away from the training.

A rule that raises is reported once as ``guard-fault`` (DSG900) and not asked again. A hook that
raises is reported the same way and ends the whole guard, because its counts cannot be trusted
any more.
"""

from __future__ import annotations

import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from dsguard.model.finding import Consequence, Finding
from dsguard.model.rule import Reporter
from dsguard.runtime.place import here
from dsguard.runtime.reporting import GuardViolation, Notebook
from dsguard.runtime.rules.guard_fault import guard_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from dsguard.runtime.moments import Moment
    from dsguard.runtime.rule import GuardRule

ResultT = TypeVar("ResultT")

_REPORT_IT = "the training is not affected; please report it"


@dataclass(slots=True)
class _Watcher:
    slug: str
    probing: bool
    check: Callable[[Any, Reporter], Iterator[Finding]]
    report: Reporter


class Watch:
    """The rules of one guard, by the moment at which they are asked."""

    __slots__ = ("_notebook", "_watchers", "stopped")

    def __init__(self, rules: Iterable[GuardRule[Any]], notebook: Notebook) -> None:
        self._watchers: dict[type[Moment], list[_Watcher]] = {}
        self._notebook = notebook
        self.stopped = False
        """Whether a hook has failed, or all were taken off: nothing is judged any more."""
        for rule in rules:
            watcher = _Watcher(rule.meta.slug, rule.probing, rule.check, Reporter(rule.meta))
            for moment in rule.on:
                self._watchers.setdefault(moment, []).append(watcher)

    def watches(self, moment: type[Moment]) -> bool:
        """Whether any rule is asked at this moment."""
        return moment in self._watchers

    def tell(self, moment: Moment, *, in_autograd: bool = False) -> None:
        """Ask every rule of this moment, unless an exception has interrupted the run.

        Raises:
            GuardViolation: an error was found and violations are to be raised. Inside autograd
                nothing is raised: it comes out at the next moment outside.
        """
        run = moment.run
        watchers = () if run.interrupted else self._watchers.get(type(moment), ())
        for watcher in watchers:
            if watcher.probing and not run.probing:
                continue
            try:
                for finding in watcher.check(moment, watcher.report):
                    moment.run.said.add(finding.rule)
                    self._notebook.write(finding, type(moment).__name__)
            except Exception as error:
                self._drop(watcher)
                self.fault(f"dsguard's rule {watcher.slug}", error, "the rule is switched off")
        if not in_autograd:
            self._notebook.raise_if_due()

    def contain(self, what: str, hook: Callable[..., ResultT], *args: Any) -> ResultT | None:
        """Run a hook of the guard so that no fault of it reaches the training.

        Raises:
            GuardViolation: as :meth:`tell`.
        """
        if self.stopped:
            return None
        try:
            return hook(*args)
        except Exception as error:
            self.failed(what, error)
            return None

    def failed(self, what: str, error: Exception) -> None:
        """Report the fault of a hook and end the guard.

        The hooks of every micro-batch come here from handlers of their own: :meth:`contain`
        would be one more call.

        Raises:
            GuardViolation: it is no fault; as :meth:`tell`.
        """
        if isinstance(error, GuardViolation):
            raise error
        self.stopped = True
        self.fault(f"dsguard's hook on {what}", error, "the guard is off for the rest of the run")

    def _drop(self, dropped: _Watcher) -> None:
        for moment, watchers in self._watchers.items():
            self._watchers[moment] = [w for w in watchers if w is not dropped]

    def fault(self, what: str, error: Exception, outcome: str, help: str = _REPORT_IT) -> None:
        """Report a fault of the guard, or of a function that it was given, once."""
        with suppress(Exception):  # one that cannot even be told still is none of the training's
            place = traceback.extract_tb(error.__traceback__)[-1]
            report = Reporter(guard_fault.meta)
            self._notebook.write(
                report(
                    here(),
                    f"{what} failed ({type(error).__name__}: {error}, "
                    f"{Path(place.filename).name}:{place.lineno}, "
                    f"Python {sys.version.split()[0]}); {outcome}",
                    Consequence.NOTE,
                    help=help,
                ),
                what,
            )
