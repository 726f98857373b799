"""An optimizer or scheduler in the config and in the script; see optimizer_clash.md."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dsguard.facts.values import block, has, lacks
from dsguard.frontends.base import FrontEndName
from dsguard.model.fact import Origin, OriginKind
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Either, Is, ReadBy, Reads, Written
from dsguard.rules.frontend._trainer import read_by
from dsguard.script.loop.description import Engine, Maker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case
    from dsguard.model.tree import Document

_KINDS = {"optimizer": ("optimizer",), "scheduler": ("scheduler", "lr_scheduler")}
"""The block of the config, and what the script calls what it passes."""

_OPTIMIZERS = re.compile(r"(torch\.optim|deepspeed\.ops|bitsandbytes\.optim|apex\.optimizers)\.\w")
_SCHEDULERS = re.compile(
    r"torch\.optim\.lr_scheduler\.\w|(transformers|diffusers)\..*get_((?!get_)\w)*sched"
)
_DUMMY = re.compile(r"accelerate\..*DummyOptim")


@rule(
    code="DSG721",
    slug="optimizer-clash",
    summary="the optimizer or scheduler of the script does not fit the block of the config",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("front_end",),
    oracle="accelerator.prepare raises ValueError; deepspeed.initialize takes the script's",
    when=(
        Reads("script"),
        ReadBy(FrontEndName.PLAIN, FrontEndName.ACCELERATE),
        Either(Is("front_end", FrontEndName.ACCELERATE), Written(*_KINDS)),
    ),
)
def optimizer_clash(case: Case, report: Reporter) -> Iterator[Finding]:
    """Compare the blocks with what the one engine of the script is plainly given."""
    document = read_by(case, FrontEndName.PLAIN, FrontEndName.ACCELERATE)
    engines = case.script.loop.engines if case.script is not None else ()
    if document is None or case.front_end is None or len(engines) != 1:
        return
    (engine,) = engines
    accelerate = case.front_end.name is FrontEndName.ACCELERATE
    if (engine.maker is Maker.ACCELERATE) is not accelerate:
        return
    for key, names in _KINDS.items():
        for name in names:
            made = engine.made_by.get(name, "")
            if accelerate:
                yield from _refused(case, document, report, engine, key, name, made)
            elif block(document, key) and _is(key, made):
                yield report(
                    document.locate(f"/{key}", "key"),
                    f"this block has no effect: deepspeed.initialize takes the {made} that the "
                    "script passes",
                    Consequence.IGNORED,
                    because=(_passed(engine, name, made),),
                    help=f"take the block out, or pass no {name}",
                    severity=Severity.WARNING,
                )


def _refused(
    case: Case,
    document: Document,
    report: Reporter,
    engine: Engine,
    key: str,
    name: str,
    made: str,
) -> Iterator[Finding]:
    """What ``Accelerator._prepare_deepspeed`` raises."""
    article = "an" if key == "optimizer" else "a"
    if has(document, key) and _is(key, made):
        dummy = "DummyOptim" if key == "optimizer" else "DummyScheduler"
        yield report(
            document.locate(f"/{key}", "key"),
            f"Accelerate stops in prepare(): the config has {article} {key} block, and the script "
            f"passes {made}",
            Consequence.REFUSED,
            because=(_passed(engine, name, made),),
            help=f"take the block out, or make accelerate.utils.{dummy} in the script",
        )
    elif key == "optimizer" and lacks(document, key) and _DUMMY.match(made):
        yield report(
            engine.passed[name],
            "Accelerate stops in prepare(): the script passes DummyOptim, and the config has no "
            "optimizer block for it to stand for",
            Consequence.REFUSED,
            help="write the block, or make an optimizer of torch.optim in the script",
        )


def _is(key: str, made: str) -> bool:
    """Whether a call surely makes an optimizer, or a scheduler."""
    scheduler = _SCHEDULERS.match(made) is not None
    return scheduler if key == "scheduler" else bool(_OPTIMIZERS.match(made)) and not scheduler


def _passed(engine: Engine, name: str, made: str) -> Because:
    return Because(name, made, Origin(OriginKind.SCRIPT, engine.passed[name]))
