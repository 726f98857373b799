"""``#PBS`` and ``#BSUB`` directives, and the counts that they make Torque and LSF set.

Sources: Torque 6.1 Administrator Guide, "Exported batch environment variables" (PBS_NP,
PBS_NUM_NODES, PBS_NUM_PPN); LSF 10.1 reference, ``bsub -n`` and LSB_DJOB_NUMPROC. PBS Pro
counts in a file of host names only. As with Slurm, a script is judged as it stands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dsguard.launch.shell.state import State, Variable
from dsguard.launch.shell.text import Chunk, Text

if TYPE_CHECKING:
    from dsguard.model.source import Span

_DIRECTIVE = re.compile(r"#(PBS|BSUB)[ \t]+([^\r\n]*)")
_NODES = re.compile(r"(?:^|[\s,])nodes=(\d{1,6})((?::[^\s,+]*)?)(?=[\s,]|$)")
_PPN = re.compile(r":ppn=(\d{1,6})(?=:|$)")
_SLOTS = re.compile(r"(?:^|\s)-n[ \t]+(\d{1,6})(?=\s|$)")
_SET = ("PBS_NP", "PBS_NUM_NODES", "PBS_NUM_PPN", "PBS_NODEFILE", "PBS_O_WORKDIR", "PBS_JOBID")
_SET_BY_LSF = ("LSB_DJOB_NUMPROC", "LSB_HOSTS", "LSB_MCPU_HOSTS", "LSB_JOBID", "LSB_DJOB_HOSTFILE")


def set_by_batch_system(state: State, text: Text) -> None:
    """Set the variables of a job script for Torque or LSF; of other scripts none."""
    for kind, words, place in _directives(text):
        for name in _SET if kind == "PBS" else _SET_BY_LSF:
            state.variables.setdefault(name, Variable(None, exported=True))
        nodes, slots = _NODES.search(words), _SLOTS.search(words)
        if kind == "BSUB" and slots is not None:
            _set(state, "LSB_DJOB_NUMPROC", slots[1], text.places(*place)[-1])
        if kind == "PBS" and nodes is not None:
            ppn = _PPN.search(nodes[2])
            each = int(ppn[1]) if ppn is not None else 1
            where = text.places(*place)[-1]
            _set(state, "PBS_NUM_NODES", nodes[1], where)
            _set(state, "PBS_NUM_PPN", str(each), where)
            _set(state, "PBS_NP", str(int(nodes[1]) * each), where)


def _set(state: State, name: str, value: str, place: Span) -> None:
    state.assign(name, (Chunk(value, (place,)),), place, export=True)


def _directives(text: Text) -> list[tuple[str, str, tuple[int, int]]]:
    """Kind, words and place of the directives before the first command."""
    found: list[tuple[str, str, tuple[int, int]]] = []
    at = 0
    for line in text.text.splitlines(keepends=True):
        if line.strip() and not line.startswith("#"):
            break
        directive = _DIRECTIVE.match(line)
        if directive is not None:
            start, end = directive.span(2)
            found.append((directive[1], directive[2], (at + start, at + end)))
        at += len(line)
    return [one for one in found if text.known(*one[2])]
