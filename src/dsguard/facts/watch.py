"""Whether a rule got an answer to everything it asked."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from dsguard.facts.case import Case
from dsguard.model.fact import Fact, FactName, Facts, Known

_MAY_BE_ABSENT = ("document", "launch", "script", "front_end")


class WatchedCase(Case):
    """A case that notes when it is asked for something that this check does not know.

    A rule that says nothing after such a question may have something to say about another check
    of the same config, as where the launch command is given too.
    """

    def __init__(self, case: Case) -> None:
        given = {one.name: getattr(case, one.name) for one in fields(case)}
        notes: list[str] = []
        super().__init__(**{**given, "facts": _WatchedFacts(case.facts, notes)})
        object.__setattr__(self, "_notes", notes)

    @property
    def lacked(self) -> bool:
        """Whether something was asked for in vain."""
        notes: list[str] = object.__getattribute__(self, "_notes")
        return bool(notes)

    def forget(self) -> None:
        """Begin anew, for the next rule."""
        object.__getattribute__(self, "_notes").clear()

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        absent = value is None and name in _MAY_BE_ABSENT
        if absent or (name == "requests" and object.__getattribute__(self, "launch") is None):
            object.__getattribute__(self, "_notes").append(name)
        return value


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
