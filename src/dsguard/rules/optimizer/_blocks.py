"""What the rules of this family share: the block that DeepSpeed builds something from."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Literal

from packaging.version import Version

from dsguard.facts.values import written
from dsguard.model.finding import Edit, Fix, Safety, Severity
from dsguard.model.tree import Object, join_pointer
from dsguard.schema.history import NEWEST_KNOWN
from dsguard.schema.names import is_comment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dsguard.facts.case import Case
    from dsguard.model.source import Location

_MEANT = {
    "learning_rate": "lr",
    "max_lr": "warmup_max_lr",
    "min_lr": "warmup_min_lr",
    "wd": "weight_decay",
    "epsilon": "eps",
    "beta1": "betas",
    "beta2": "betas",
    "adamw_mode": "adam_w_mode",
    "warmup_steps": "warmup_num_steps",
    "num_warmup_steps": "warmup_num_steps",
    "max_steps": "total_num_steps",
    "total_steps": "total_num_steps",
    "num_training_steps": "total_num_steps",
    "warmup_min_lr": "warmup_min_ratio",
}
"""What other libraries call the same parameter."""


def without_type(case: Case, path: Literal["optimizer", "scheduler"]) -> Location | None:
    """Where a block stands that has something to say and no type."""
    if case.document is None or not case.recognised:
        return None
    node = case.document.get(f"/{path}")
    if not isinstance(node, Object) or written(case.document, f"{path}.type") is not None:
        return None
    says = any(not is_comment(key) and value != {} for key, value in node.value.items())
    return case.document.locate(f"/{path}", "key") if says else None


def severity_of_unknown_name(case: Case) -> Severity:
    """A release newer than the known ones may have a name that dsguard does not know."""
    newer = Version(case.target.version) > NEWEST_KNOWN
    return Severity.WARNING if newer else Severity.ERROR


def meant(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """What was meant by a name: one where only case or dashes differ, else the closest ones."""
    names = sorted(known)
    same = [other for other in names if _plain(other) == _plain(name)]
    if same:
        return tuple(same[:1])
    if _MEANT.get(name) in names:
        return (_MEANT[name],)
    by_plain = {_plain(other): other for other in names}
    close = get_close_matches(_plain(name), list(by_plain), n=2, cutoff=0.75)
    return tuple(by_plain[other] for other in close)


def respelled(
    at: Location, name: str, guesses: tuple[str, ...], *, key: bool = False
) -> Fix | None:
    """The fix of a name in which only case or dashes are wrong; ``key`` where it is a key."""
    if len(guesses) != 1 or _plain(guesses[0]) != _plain(name):
        return None
    # DeepSpeed stops over the name so far, so there is no training that would change.
    edit = Edit(at.span.start, at.span.end, f'"{guesses[0]}"')
    parent = (at.pointer or "").rpartition("/")[0]
    there = (join_pointer(parent, guesses[0]),) if key else ()
    return Fix(f"write {guesses[0]}", Safety.SAFE, (edit,), there)


def did_you_mean(guesses: tuple[str, ...]) -> str:
    """The way out in words; empty where nothing comes close."""
    return f"did you mean {' or '.join(guesses)}?" if guesses else ""


def _plain(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower()
