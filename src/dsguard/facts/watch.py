"""Whether a rule got an answer to everything it asked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dsguard.facts.case import Case
from dsguard.model.fact import Facts, Known

if TYPE_CHECKING:
    from collections.abc import Callable

    from dsguard.model.fact import Fact, FactName


def _noted(name: str, without: str) -> Any:
    """An attribute of a case; asking for it is noted where the case is ``without`` something."""
    read: Callable[[Case], Any] = getattr(Case, name).__get__
    needed: Callable[[Case], Any] = getattr(Case, without).__get__

    def get(case: WatchedCase) -> Any:
        if needed(case) is None:
            case.notes.append(name)
        return read(case)

    return property(get)


class WatchedCase(Case, frozen=True, kw_only=True):
    """A case that notes when it is asked for something that this check does not know.

    A rule that says nothing after such a question may have something to say about another check
    of the same config, as where the launch command is given too.
    """

    notes: list[str]

    @classmethod
    def of(cls, case: Case) -> WatchedCase:
        """A case, from now on watched."""
        given = {name: getattr(case, name) for name in case.__struct_fields__}
        notes: list[str] = []
        return cls(**{**given, "facts": _WatchedFacts(case.facts, notes), "notes": notes})

    @property
    def lacked(self) -> bool:
        """Whether something was asked for in vain."""
        return bool(self.notes)

    def forget(self) -> None:
        """Begin anew, for the next rule."""
        self.notes.clear()

    # Descriptors, because rules ask hundreds of times in a check.
    document = _noted("document", without="document")
    launch = _noted("launch", without="launch")
    script = _noted("script", without="script")
    front_end = _noted("front_end", without="front_end")
    requests = _noted("requests", without="launch")


class _WatchedFacts(Facts):
    def __init__(self, facts: Facts, notes: list[str]) -> None:
        self._facts = facts._facts
        self._notes = notes

    def __getitem__(self, name: FactName) -> Fact:
        fact = super().__getitem__(name)
        if not isinstance(fact, Known):
            self._notes.append(name)
        return fact

    def value(self, name: FactName) -> Any:
        fact = self[name]
        return fact.value if isinstance(fact, Known) else None
