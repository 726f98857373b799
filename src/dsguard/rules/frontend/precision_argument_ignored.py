"""A precision that is asked for and not trained in; see precision_argument_ignored.md."""

from __future__ import annotations

from collections.abc import Iterator

from dsguard.facts.case import Case
from dsguard.facts.values import has, written
from dsguard.frontends.base import FrontEndName
from dsguard.model.finding import Because, Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.model.tree import Object
from dsguard.rules.frontend._trainer import read_by


@rule(
    code="DSG707",
    slug="precision-argument-ignored",
    summary="--bf16 or --fp16 beside a block that leaves the precision off",
    severity=Severity.ERROR,
    since="0.1.0",
    oracle="engine.bfloat16_enabled() is False",
)
def precision_argument_ignored(case: Case, report: Reporter) -> Iterator[Finding]:
    """A block without ``enabled`` is off, and nobody fills the absent key."""
    document = read_by(case, FrontEndName.TRANSFORMERS, FrontEndName.ACCELERATE)
    if document is None or case.front_end is None:
        return
    for name in ("fp16", "bf16"):
        request = case.requests.switch(name)
        if request is None:
            continue
        because = (Because(name, True, request.origin),)
        block = document.get(f"/{name}")
        if isinstance(block, Object) and written(document, f"{name}.enabled") is None:
            yield report(
                document.locate(f"/{name}", "key"),
                f"the {name} block has no enabled, which means off: training runs in fp32 "
                f"although {request.flag} is given",
                Consequence.DIFFERS,
                because=because,
                help=f'write "{name}": {{"enabled": "auto"}}',
            )
        elif name == "bf16" and block is None and has(document, "bfloat16"):
            yield report(
                document.locate("/bfloat16", "key"),
                "the old name bfloat16 does not count here: a bf16 block that is off is put "
                f"beside it, and training runs in fp32 although {request.flag} is given",
                Consequence.DIFFERS,
                because=because,
                help='rename it to bf16, with "enabled": "auto"',
            )
