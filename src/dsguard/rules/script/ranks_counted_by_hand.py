"""A batch size that the script computes with the wrong number of ranks; see the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dsguard.facts.script_config import config_of_script
from dsguard.model.fact import Known
from dsguard.model.finding import Consequence, Finding, Severity
from dsguard.model.rule import Reporter, rule
from dsguard.rules.conditions import Given
from dsguard.rules.script._loop import once, reasons
from dsguard.script.loop.description import Counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dsguard.facts.case import Case

_KEYS = ("train_batch_size", "gradient_accumulation_steps")
_EQUATION = (*_KEYS, "train_micro_batch_size_per_gpu")


@rule(
    code="DSG824",
    slug="ranks-counted-by-hand",
    summary="a batch size in the script is computed with another number than its ranks",
    severity=Severity.ERROR,
    since="0.1.0",
    needs=("data_parallel_size", "world_size"),
    oracle="raises AssertionError: Check batch related parameters",
    when=(Given("script"),),
)
def ranks_counted_by_hand(case: Case, report: Reporter) -> Iterator[Finding]:
    """Find ``torch.cuda.device_count()`` on several machines, and all ranks where some share."""
    yield from once(_findings(case, report))


def _findings(case: Case, report: Reporter) -> Iterator[Finding]:
    config = config_of_script(case.script) if case.script is not None else None
    literal = config.literal if config is not None else None
    if literal is None:
        return
    for entry in literal.entries:
        if entry.key not in _KEYS or not isinstance(entry.value, Counted):
            continue
        said = _said(case, entry.value)
        if said is None:
            continue
        stops = all(literal.get(key) is not None for key in _EQUATION)
        yield report(
            entry.location,
            f"{said}: {entry.key} is computed for another number of ranks",
            Consequence.REFUSED if stops else Consequence.DIFFERS,
            because=reasons(case, "world_size", "data_parallel_size"),
            help="give train_micro_batch_size_per_gpu and gradient_accumulation_steps, and leave "
            "train_batch_size to DeepSpeed",
            severity=Severity.ERROR if stops else Severity.WARNING,
        )


def _said(case: Case, counted: Counted) -> str | None:
    ranks = case.facts.known("data_parallel_size").value
    world = case.facts.known("world_size").value
    if counted.what == "ranks":
        if ranks == world:
            return None
        return f"the ranks are {world}, of which {world // ranks} share a batch"
    launch = case.launch
    nodes = launch.nodes if launch is not None else None
    if not isinstance(nodes, Known) or nodes.value < 2:
        return None
    return (
        f"torch.cuda.device_count() counts the GPUs of one machine, and the job has {nodes.value} "
        f"with {world} ranks"
    )
