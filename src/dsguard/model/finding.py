"""Findings: what is wrong, where, what will happen, and why dsguard thinks so."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from dsguard.model.fact import FactName, Known, Origin
    from dsguard.model.source import Location


class Severity(str, Enum):
    """How bad it is. Members compare: ``error`` is the highest."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """3 for error, 2 for warning, 1 for info."""
        return {"error": 3, "warning": 2, "info": 1}[self.value]


class Confidence(str, Enum):
    """How sure dsguard is that the finding is true of this run."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """3 for high, 2 for medium, 1 for low."""
        return {"high": 3, "medium": 2, "low": 1}[self.value]


class Consequence(str, Enum):
    """What happens if nothing is changed.

    ``refused``: DeepSpeed (when it reads the config) or the front end stops with an error at start.
    ``ignored``: the value has no effect. ``differs``: trains with other numbers than asked
    for. ``hangs``. ``late``: the config is read, and it fails afterwards (building the
    optimizer, the first step, saving, resuming, memory). ``note``: nothing by itself.
    """

    REFUSED = "refused"
    IGNORED = "ignored"
    DIFFERS = "differs"
    HANGS = "hangs"
    LATE = "late"
    NOTE = "note"


class Safety(str, Enum):
    """Whether a fix may be applied without asking.

    ``safe`` keeps what is trained; ``unsafe`` changes training arithmetic; ``display`` needs
    a choice by a person and is only shown.
    """

    SAFE = "safe"
    UNSAFE = "unsafe"
    DISPLAY = "display"


class Edit(Struct, frozen=True):
    """Replace the code points ``[start, end)`` of the finding's file by ``text``."""

    start: int
    end: int
    text: str


class Fix(Struct, frozen=True):
    """A way out. ``title`` is an imperative clause without a full stop.

    ``pointers`` are the JSON pointers that the edits change besides the finding's own, such as the
    new name of a key; whatever else would change refuses the fix when it is applied.
    """

    title: str
    safety: Safety
    edits: tuple[Edit, ...] = ()
    pointers: tuple[str, ...] = ()


class Because(Struct, frozen=True):
    """One number a finding rests on, and where it came from."""

    fact: str
    value: Any
    origin: Origin

    @classmethod
    def of(cls, name: FactName, fact: Known) -> Because:
        """The reason that a known fact gives."""
        return cls(name, fact.value, fact.origin)


class Finding(Struct, frozen=True):
    """One thing that will fail, hang, be ignored or mean something else.

    ``code`` and ``rule`` (the slug) name the rule. ``message`` is one sentence with the
    numbers in it and no full stop. ``location`` is where a caret points. ``help`` is a way
    out in words, for when there is no ``fix`` or to say more than its title.
    """

    code: str
    rule: str
    severity: Severity
    confidence: Confidence
    consequence: Consequence
    message: str
    location: Location
    because: tuple[Because, ...] = ()
    fix: Fix | None = None
    help: str = ""
