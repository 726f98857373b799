"""The fixes of schema problems, where only one is meant.

A fix is safe where it keeps what is trained: DeepSpeed reads the new spelling as it read the old
one, it stops over the config so far, or the setting only decides what is shown. A key that was
ignored so far and starts to count is another training, so such a fix is not safe.
"""

from __future__ import annotations

import json
import math
import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from msgspec.structs import replace

from dsguard.frontends.base import FrontEndName
from dsguard.model.fact import Known, OriginKind
from dsguard.model.finding import Consequence, Edit, Fix, Safety
from dsguard.model.tree import Object, dotted, join_pointer, same_value, split_pointer
from dsguard.reading.editing import move_member, remove_member, rename_member
from dsguard.rules._effect import effect_of_key
from dsguard.schema.keys import find
from dsguard.schema.problem import Problem, ProblemKind

if TYPE_CHECKING:
    from dsguard.facts.case import Case

_SURE = 0.85
"""How much alike two names are before one of them is taken for a slip of the other."""

_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")

_STOPS = (Consequence.REFUSED, Consequence.LATE)

_ONLY_SHOWN = frozenset(
    {
        "comet",
        "comms_logger",
        "csv_monitor",
        "dump_state",
        "flops_profiler",
        "memory_breakdown",
        "steps_per_print",
        "tensorboard",
        "timers",
        "wall_clock_breakdown",
        "wandb",
    }
)
"""Top-level keys that decide what is printed, measured and logged."""

_RENAMED = {
    "bfloat16": "bf16",
    "zero_optimization.stage3_gather_fp16_weights_on_model_save": (
        "stage3_gather_16bit_weights_on_model_save"
    ),
}
"""Old names under which DeepSpeed reads the very same value."""

_SWITCHES = {
    "zero_optimization.cpu_offload": "offload_optimizer",
    "zero_optimization.cpu_offload_param": "offload_param",
}
"""Old switches that DeepSpeed reads as a block of their own: true as {"device": "cpu"}."""


def fix_of(case: Case, problem: Problem) -> Fix | None:
    """The fix of a problem, None where a person has to choose."""
    if case.document is None:
        return None
    make = {
        ProblemKind.UNKNOWN_KEY: _rename,
        ProblemKind.MISPLACED_KEY: _move,
        ProblemKind.MISTYPED_VALUE: _retype,
        ProblemKind.DEPRECATED_KEY: _renew,
        ProblemKind.REMOVED_KEY: _drop_disabled,
        ProblemKind.CONFLICTING_KEYS: _drop_unneeded,
    }.get(problem.kind)
    return make(case, problem) if make is not None else None


def _rename(case: Case, problem: Problem) -> Fix | None:
    """Spell a key right where one spelling is meant and its place in the block is free."""
    if problem.belongs:
        return None
    written = split_pointer(problem.pointer)[-1]
    alike = [
        name
        for name in problem.suggestions
        if SequenceMatcher(None, written, name).ratio() >= _SURE
    ]
    if len(alike) != 1:
        return None
    (name,) = alike
    return _renamed(case, problem, name, _safety(problem, _sibling(problem, name)))


def _renamed(case: Case, problem: Problem, name: str, safety: Safety) -> Fix | None:
    assert case.document is not None
    there = _sibling(problem, name)
    edit = rename_member(case.document, problem.pointer, name)
    if edit is None or case.document.get(there) is not None:
        return None
    effect = effect_of_key(case, dotted(there), problem.value) if safety is Safety.UNSAFE else ""
    return Fix(f"rename it to {name}{effect}", safety, (edit,), (there,))


def _move(case: Case, problem: Problem) -> Fix | None:
    """Move a key to the one block that knows it, where that block is there and has no such key."""
    if len(problem.belongs) != 1:
        return None
    (block,) = problem.belongs
    home = "".join(f"/{part}" for part in block.split(".")) if block else ""
    assert case.document is not None
    member = case.document.member(problem.pointer)
    parent = case.document.get(problem.pointer.rpartition("/")[0])
    new_parent = case.document.get(home)
    there = join_pointer(home, split_pointer(problem.pointer)[-1])
    if member is None or not isinstance(parent, Object) or not isinstance(new_parent, Object):
        return None
    if case.document.get(there) is not None:
        return None
    edits = move_member(case.document, parent, member, new_parent)
    if edits is None:
        return None
    safety = _safety(problem, there)
    effect = effect_of_key(case, dotted(there), problem.value) if safety is Safety.UNSAFE else ""
    where = f"under {block}" if block else "to the top level"
    return Fix(f"move it {where}{effect}", safety, edits, (there,))


def _retype(case: Case, problem: Problem) -> Fix | None:
    """Write a value in the type that is taken, where the text or switch leaves no doubt."""
    if isinstance(problem.value, str):
        written = _literal(problem.value.strip(), problem.expected)
    elif problem.value in (True, False) and find(f"{problem.pointer}/enabled"):
        written = json.dumps({"enabled": problem.value})
    else:
        written = None
    if written is None:
        return None
    span = case.locate(problem).span
    safety = Safety.SAFE if problem.consequence in _STOPS else Safety.UNSAFE
    return Fix(f"write {written}", safety, (Edit(span.start, span.end, written),))


def _renew(case: Case, problem: Problem) -> Fix | None:
    """Write an old form as DeepSpeed reads it."""
    assert case.document is not None
    old = dotted(problem.pointer)
    if old == "bfloat16" and not _counts_by_old_name(case, problem):
        fix = _renamed(case, problem, _RENAMED[old], Safety.UNSAFE)
        why = ", the only name that HF Trainer and Accelerate know"
        return replace(fix, title=fix.title + why) if fix is not None else None
    if old in _RENAMED:
        return _renamed(case, problem, _RENAMED[old], Safety.SAFE)
    if old in _SWITCHES and isinstance(problem.value, bool):
        if not problem.value:
            return _dropped(case, problem, "remove it, as it switches nothing on")
        fix = _renamed(case, problem, _SWITCHES[old], Safety.SAFE)
        value = case.document.locate(problem.pointer).span
        block = json.dumps({"device": "cpu"})
        if fix is None:
            return None
        title = f"write {_SWITCHES[old]} with the device cpu"
        return Fix(title, Safety.SAFE, (*fix.edits, Edit(*value, block)), fix.pointers)
    if old == "zero_optimization" and isinstance(problem.value, bool):
        # Beside the old form the bucket size comes from the top level.
        if case.document.get("/allgather_size") is not None:
            return None
        value = case.document.locate(problem.pointer).span
        written = json.dumps({"stage": int(problem.value)})
        return Fix(f"write {written}", Safety.SAFE, (Edit(*value, written),))
    return None


def _counts_by_old_name(case: Case, problem: Problem) -> bool:
    """Whether what stands under ``bfloat16`` is sure to reach DeepSpeed as it is.

    Accelerate's plugin puts a ``bf16`` block beside it, which DeepSpeed reads instead; Lightning
    does so where its precision asks for bf16. Without any sign of who reads the config it may be
    any of them.
    """
    reader = case.facts["front_end"]
    if not isinstance(reader, Known) or reader.origin.kind is OriginKind.DEFAULT:
        return False
    if reader.value is FrontEndName.LIGHTNING:
        return isinstance(problem.value, dict) and problem.value.get("enabled") is True
    return reader.value is FrontEndName.PLAIN


def _drop_disabled(case: Case, problem: Problem) -> Fix | None:
    """Take out what the release no longer has and what was switched off anyway."""
    value = problem.value
    off = value is False or (isinstance(value, dict) and value.get("enabled") is False)
    return _dropped(case, problem, "remove it, as it is switched off") if off else None


def _drop_unneeded(case: Case, problem: Problem) -> Fix | None:
    """Take out the spelling that is ignored, or that says the same as the other one."""
    assert case.document is not None
    nodes = [case.document.get(p) for p in (problem.pointer, problem.other or problem.pointer)]
    if problem.consequence is Consequence.IGNORED:
        return _dropped(case, problem, "remove it, as it is ignored")
    if nodes[0] is not None and nodes[1] is not None and same_value(nodes[0], nodes[1]):
        return _dropped(case, problem, "remove it, as it says the same")
    return None


def _dropped(case: Case, problem: Problem, title: str) -> Fix | None:
    assert case.document is not None
    member = case.document.member(problem.pointer)
    parent = case.document.get(problem.pointer.rpartition("/")[0])
    if member is None or not isinstance(parent, Object):
        return None
    edits = remove_member(case.document, parent, member)
    return Fix(title, Safety.SAFE, edits) if edits is not None else None


def _safety(problem: Problem, there: str) -> Safety:
    """Whether a key may start to count where it then stands."""
    only_shown = dotted(there).partition(".")[0] in _ONLY_SHOWN
    return Safety.SAFE if only_shown or problem.consequence in _STOPS else Safety.UNSAFE


def _sibling(problem: Problem, name: str) -> str:
    return join_pointer(problem.pointer.rpartition("/")[0], name)


def _literal(text: str, expected: str) -> str | None:
    """The number or switch that a text spells, as JSON, if that is what is expected."""
    if "true or false" in expected and text.lower() in ("true", "false"):
        return text.lower()
    if "number" not in expected:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    if "whole number" in expected:
        return str(int(number)) if number.is_integer() else None
    if not math.isfinite(number):
        return None
    return text if _JSON_NUMBER.fullmatch(text) else repr(number)
