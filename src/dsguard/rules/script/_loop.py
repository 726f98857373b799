"""What the rules of this family share: questions about a loop."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from packaging.version import Version

from dsguard.facts.values import written
from dsguard.frontends.base import FrontEndName
from dsguard.model.fact import FactName, Known, Origin, OriginKind
from dsguard.model.finding import Because, Finding
from dsguard.script.declaration import Constant, FromArgument
from dsguard.script.loop.description import (
    Action,
    Around,
    Block,
    Condition,
    Context,
    Does,
    Engine,
    FromConfig,
    FromEngine,
    Given,
    Loop,
    Maker,
    Meaning,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dsguard.facts.case import Case
    from dsguard.model.source import Location

_HOW_IT_RUNS = r"deepspeed|zero|stage|partition|engine|backend|strategy|\bds"

ACCUMULATION: Literal["gradient_accumulation_steps"] = "gradient_accumulation_steps"


def loop_of(case: Case) -> Loop:
    """The loop of the case's script; an empty one where there is no script."""
    return case.script.loop if case.script is not None else Loop()


def actions(
    case: Case, *does: Does, engine: Engine | None = None, maker: Maker | None = None
) -> Iterator[Action]:
    """What the script does of these kinds, of one engine or of those of one maker."""
    for action in loop_of(case).actions:
        if action.does not in does or (engine is not None and action.engine is not engine):
            continue
        if maker is None or action.engine.maker is maker:
            yield action


def runs_under_deepspeed(case: Case, engine: Engine) -> bool:
    """Whether an engine is DeepSpeed's: one of Accelerate's is only with a config."""
    if engine.maker is Maker.DEEPSPEED:
        return True
    accelerate = case.front_end is not None and case.front_end.name is FrontEndName.ACCELERATE
    return accelerate and (case.document is not None or bool(loop_of(case).configs))


def release(case: Case) -> Version:
    """The DeepSpeed release that the case is judged by."""
    return Version(case.target.version)


def innermost(action: Action) -> Block | None:
    """The innermost loop around an action."""
    loops = [block for block in action.blocks if block.around is Around.LOOP]
    return loops[-1] if loops else None


def branches(action: Action | Engine, within: Iterable[Block] = ()) -> tuple[Block, ...]:
    """The branches that an action stands in, without those in ``within``."""
    known = set(within)
    return tuple(
        block for block in action.blocks if block.around is Around.BRANCH and block not in known
    )


def conditions(action: Action | Engine, within: Iterable[Block] = ()) -> tuple[Condition, ...]:
    """The conditions under which an action happens, without those of ``within``."""
    return tuple(one for block in branches(action, within) for one in block.conditions)


def excludes_any(action: Action, others: Iterable[Action]) -> bool:
    """Whether no turn of a loop does this and one of the others, because they are in two branches
    of one ``if``.
    """
    own = {block.split: block for block in branches(action)}
    return any(
        own.get(block.split, block) is not block for other in others for block in branches(other)
    )


def asks_about_zero(action: Action | Engine) -> bool:
    """Whether a condition around an action, or around the making of an engine, asks how the script
    runs: with which stage, or with DeepSpeed at all. What it is then the config does not say.
    """
    return any(
        re.search(_HOW_IT_RUNS, one.text, re.I)
        for one in conditions(action)
        if one.meaning in (Meaning.OTHER, Meaning.ABOVE_ONE)
    )


def is_alternative(case: Case, action: Action) -> bool:
    """Whether a branch beside this one does it the engine's way: the script runs without, too."""
    if asks_about_zero(action):
        return True
    theirs = actions(case, Does.BACKWARD, Does.STEP, engine=action.engine)
    return excludes_any(action, theirs)


def inside(action: Action, *contexts: Context) -> bool:
    """Whether one of these ``with`` blocks stands around an action."""
    return any(block.context in contexts for block in action.blocks)


def owns_its_windows(case: Case, engine: Engine) -> bool:
    """Whether the script tells the engine where a window ends, or the engine does not count."""
    if any(True for _ in actions(case, Does.SET_BOUNDARY, engine=engine)):
        return True
    managed = written(case.document, "managed_gradient_accumulation")
    return managed is not None and managed.value is not True


def is_accumulation(given: Given) -> bool:
    """Whether an amount is called an accumulation count."""
    value = given.value
    if isinstance(value, FromEngine):
        return value.name == ACCUMULATION
    if isinstance(value, FromConfig):
        return value.key == ACCUMULATION
    text = f"{given.text} {value.name if isinstance(value, FromArgument) else ''}".lower()
    return "accum" in text or text.split(".")[-1].strip() in ("gas", "ga_steps")


def is_the_engines_count(case: Case, given: Given, engine: Engine) -> bool:
    """Whether an amount is the very count that the engine accumulates by."""
    if isinstance(given.value, (FromEngine, FromConfig)):
        return is_accumulation(given)
    literal = engine.config.literal if engine.config is not None else None
    if literal is None or not isinstance(given.value, FromArgument):
        return False
    return any(e.key == ACCUMULATION and e.value == given.value for e in literal.entries)


def number_of(case: Case, given: Given, engine: Engine) -> Known | None:
    """An amount as a number with its origin; None where it is not known."""
    value = given.value
    here = Origin(OriginKind.SCRIPT, given.location)
    if isinstance(value, Constant):
        is_number = isinstance(value.value, (int, float)) and not isinstance(value.value, bool)
        return Known(value.value, here) if is_number else None
    if is_the_engines_count(case, given, engine):
        fact = case.facts[ACCUMULATION]
        return Known(fact.value, here) if isinstance(fact, Known) else None
    if isinstance(value, FromEngine) and value.name == "train_micro_batch_size_per_gpu":
        fact = case.facts["micro_batch_size"]
        return fact if isinstance(fact, Known) else None
    if isinstance(value, FromArgument):
        request = case.requests.argument(value.name)
        if request is not None and isinstance(request.value, (int, float)):
            return Known(request.value, request.origin)
    return None


def accumulation(case: Case) -> int | None:
    """How many micro-batches DeepSpeed accumulates, None where that is not known."""
    value = case.facts.value(ACCUMULATION)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def stage(case: Case) -> int | None:
    """The ZeRO stage, None where it is not known."""
    value = case.facts.value("zero_stage")
    return value if isinstance(value, int) else None


def reasons(case: Case, *names: FactName) -> tuple[Because, ...]:
    """The known ones of these facts, each with its origin."""
    facts = ((name, case.facts[name]) for name in names)
    return tuple(Because.of(name, fact) for name, fact in facts if isinstance(fact, Known))


def in_script(fact: str, value: object, location: Location) -> Because:
    """A reason that stands in the script."""
    return Because(fact, value, Origin(OriginKind.SCRIPT, location))


def every_nth(action: Action, within: Iterable[Block]) -> Condition | None:
    """The one condition of an action beyond ``within``, if it is "every n-th time"."""
    found = conditions(action, within)
    counted = [c for c in found if c.meaning is Meaning.EVERY_NTH and c.holds]
    others = [c for c in found if c.meaning is not Meaning.EVERY_NTH]
    return counted[0] if len(counted) == 1 and not others else None


def once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Each place once: a function that is called twice is followed twice."""
    seen: set[Location] = set()
    for finding in findings:
        if finding.location not in seen:
            seen.add(finding.location)
            yield finding
