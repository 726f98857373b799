"""How many processes: nodes, processes per node, and their product."""

from __future__ import annotations

from msgspec import Struct

from dsguard.model.fact import Fact, Known, Origin, OriginKind, Unknown


class Counts(Struct, frozen=True):
    """The factors of the world size and the world size itself, each a fact."""

    nodes: Fact
    processes_per_node: Fact
    world_size: Fact

    @classmethod
    def unknown(cls, reason: str) -> Counts:
        """Nothing is known, always for the same reason."""
        return cls(Unknown(reason), Unknown(reason), Unknown(reason))

    @classmethod
    def of(cls, nodes: Fact, processes_per_node: Fact) -> Counts:
        """Every node starts the same number of processes."""
        return cls(nodes, processes_per_node, product(nodes, processes_per_node))


def default(value: int, whose: str) -> Known:
    """A number that nobody gave."""
    return Known(value, Origin(OriginKind.DEFAULT, whose=whose))


def product(nodes: Fact, processes_per_node: Fact) -> Fact:
    """The number of processes on all nodes.

    On one node by default, the processes of that node are the answer and keep their origin.
    """
    for fact in (processes_per_node, nodes):
        if isinstance(fact, Unknown):
            return Unknown(fact.reason)
    if not isinstance(nodes, Known) or not isinstance(processes_per_node, Known):
        return Unknown("the number of processes is in conflict")
    if nodes.value == 1 and nodes.origin.kind is OriginKind.DEFAULT:
        return processes_per_node
    total = nodes.value * processes_per_node.value
    formula = (
        f"{counted(nodes.value, 'node')} × "
        f"{counted(processes_per_node.value, 'process')} per node = {total}"
    )
    location = processes_per_node.origin.location or nodes.origin.location
    return Known(total, Origin(OriginKind.DERIVED, location, formula=formula))


def counted(number: int, noun: str) -> str:
    """A number and its noun: ``1 node``, ``2 processes``."""
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{number} {noun if number == 1 else plural}"
