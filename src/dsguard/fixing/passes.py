"""Fixing one config until nothing is left to fix.

Every pass applies the fixes that do not meet, reads the text again and compares it with the one
before. A pass that would change more than its fixes name is a fault of dsguard, and refused.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from dsguard.fixing.choose import apply, is_applicable, together
from dsguard.fixing.compare import changed_pointers, comment_texts, outside
from dsguard.reading.errors import HjsonSyntaxError
from dsguard.reading.hjson import parse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from dsguard.model.finding import Finding
    from dsguard.model.source import Source
    from dsguard.model.tree import Document

MAX_PASSES = 100
"""Fixes that meet take turns, one a pass; more passes than this never come to an end."""

_MOST_ADDED = 1 << 16
"""Characters that short configs may become longer by; fixes that quote one another's text would
double it with every pass."""

_REPORT = "the file is left alone; please report it with the config that shows it"


class FixError(Exception):
    """Fixes are refused and the text stays as it was.

    ``message`` is a clause without a full stop, ``help`` a way out.
    """

    def __init__(self, message: str, help: str = _REPORT) -> None:
        super().__init__(message)
        self.message = message
        self.help = help


class Fixed(Struct, frozen=True):
    """A text after its fixes; ``rules`` counts the fixes applied, by the rule that offered them."""

    source: Source
    rules: Counter[str]

    @property
    def count(self) -> int:
        """How many fixes were applied."""
        return self.rules.total()


def fix_config(
    source: Source, find: Callable[[Source], Iterable[Finding]], *, unsafe: bool
) -> Fixed:
    """Apply the fixes that ``find`` offers for a config's text, over and over.

    Args:
        source: the text of the config.
        find: gives the findings of a text, with its own argument as their source.
        unsafe: also apply fixes that change training arithmetic.

    Raises:
        FixError: a pass would change more than its fixes name, or they never come to an end.
    """
    rules: Counter[str] = Counter()
    seen = {source.text}
    longest = 10 * len(source.text) + _MOST_ADDED
    for _ in range(MAX_PASSES):
        offered = [one for one in find(source) if is_applicable(one, source, unsafe=unsafe)]
        if not offered:
            return Fixed(source, rules)
        chosen = together(offered)
        source = _pass(source, chosen)
        rules.update(finding.rule for finding in chosen)
        names = ", ".join(sorted({finding.rule for finding in chosen}))
        if source.text in seen or len(source.text) > longest:
            raise FixError(
                f"the fixes of {names} undo each other",
                "the file is left alone; two checks of it may want different values: edit it by "
                "hand",
            )
        seen.add(source.text)
    raise FixError(f"the fixes of {names} do not come to an end in {MAX_PASSES} passes")


def _pass(source: Source, chosen: list[Finding]) -> Source:
    fixes = [finding.fix for finding in chosen if finding.fix is not None]
    names = ", ".join(sorted({finding.rule for finding in chosen}))
    fixed = replace(source, text=apply(source.text, fixes))
    try:
        before, after = parse(source), parse(fixed)
    except HjsonSyntaxError as error:
        raise FixError(f"fixing {names} would break the syntax: {error.message}") from None
    pointers = [finding.location.pointer for finding in chosen]
    named = [pointer for pointer in pointers if pointer is not None]
    named += [pointer for fix in fixes for pointer in fix.pointers]
    more = outside(changed_pointers(before, after), named)
    if more:
        raise FixError(f"fixing {names} would also change {more[0] or 'the whole document'}")
    if comment_texts(before) != comment_texts(after):
        raise FixError(f"fixing {names} would change a comment")
    if _strict(before) and not _strict(after):
        raise FixError(f"fixing {names} would write what is no strict JSON")
    return fixed


def _strict(document: Document) -> bool:
    return not any(deviation.stops for deviation in document.deviations)
