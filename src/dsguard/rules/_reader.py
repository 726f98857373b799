"""How sure it is who reads the config, for findings that hold for one reader only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.frontends.detect import config_argument
from dsguard.frontends.flags import is_guess
from dsguard.model.fact import Known, OriginKind
from dsguard.model.finding import Confidence

if TYPE_CHECKING:
    from dsguard.facts.case import Case


def confidence_in_reader(case: Case) -> Confidence:
    """Medium where the reader is told from the name of a flag alone."""
    reader = case.facts["front_end"]
    if case.launch is None or not isinstance(reader, Known):
        return Confidence.HIGH
    if reader.origin.kind is OriginKind.OPTION:
        return Confidence.HIGH
    guessed = is_guess(config_argument(case.launch), case.launch, case.script)
    return Confidence.MEDIUM if guessed else Confidence.HIGH
