"""``#SBATCH`` directives, and the variables that they make Slurm set.

Source: the manual page of ``sbatch`` (Slurm 24.05), DESCRIPTION and OUTPUT ENVIRONMENT VARIABLES.
Options on the command line of ``sbatch`` would win; a script is judged as it stands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dsguard.launch.context import Argument, Command, Word
from dsguard.launch.launchers import srun
from dsguard.launch.options import OptionTable, getopt
from dsguard.launch.scan_getopt import scan_getopt
from dsguard.launch.shell.state import State, Variable
from dsguard.launch.shell.text import Chunk, Text
from dsguard.model.source import Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_OPTIONS = OptionTable(
    (
        *srun.OPTIONS.options,
        *getopt(
            "-a|--array: --batch: --get-user-env:: --ignore-pbs --parsable --requeue "
            "--no-requeue --wrap:"
        ).options,
    )
)
_DIRECTIVE = re.compile(r"#SBATCH(?=[ \t])")
_WORD = re.compile(r"(?:[^\s\"']|\"[^\"\n]*\"|'[^'\n]*'|[\"'])+")
_COUNT = re.compile(r"0*(\d{1,9})")
_DEVICES = re.compile(r"(?:gpu:)?(?:[A-Za-z][\w.-]*:)?(\d{1,6})")
"""``8``, ``a100:8``, and behind ``--gres`` ``gpu:8`` or ``gpu:a100:8``."""
_MAY_NEED_NODES = ("nodelist", "nodefile", "gpus", "ntasks_per_node", "ntasks_per_gpu", "array")
_SET_BY_SLURM = (
    "CUDA_VISIBLE_DEVICES", "SLURMD_NODENAME", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID",
    "SLURM_CLUSTER_NAME", "SLURM_CPUS_ON_NODE", "SLURM_CPUS_PER_TASK", "SLURM_GPUS",
    "SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE", "SLURM_GPUS_PER_TASK", "SLURM_JOBID",
    "SLURM_JOB_GPUS", "SLURM_JOB_ID", "SLURM_JOB_NAME", "SLURM_JOB_NODELIST",
    "SLURM_JOB_NUM_NODES", "SLURM_JOB_PARTITION", "SLURM_LAUNCH_NODE_IPADDR", "SLURM_LOCALID",
    "SLURM_MEM_PER_NODE", "SLURM_NNODES", "SLURM_NODEID", "SLURM_NODELIST", "SLURM_NPROCS",
    "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_PROCID", "SLURM_SUBMIT_DIR",
    "SLURM_SUBMIT_HOST", "SLURM_TASKS_PER_NODE",
)  # fmt: skip


def directives(source: Source, text: Text | None = None) -> tuple[Argument, ...]:
    """The options in ``#SBATCH`` lines, up to the first command.

    ``text`` is a job script that stands in ``source``; by default it is all of it.
    """
    if text is None:
        text = Text.written(source.text, 0, len(source.text))
    found: list[Argument] = []
    for span in _lines(text.text):
        words = _words(text, span)
        found.extend(scan_getopt(Command(source, words), words, _OPTIONS).arguments)
    return tuple(found)


def command_line(source: Source, words: Sequence[Word]) -> tuple[Argument, ...]:
    """The options behind ``sbatch`` on its command line."""
    return scan_getopt(Command(source, tuple(words)), words, _OPTIONS).arguments


def job_state(options: Sequence[Argument], submitted_from: State | None = None) -> State:
    """The shell in which a job script starts; it inherits from where it is submitted.

    Of a script without directives nothing is assumed. Of the others, what no directive says is
    not known: it may stand on the command line of ``sbatch``.
    """
    state = State() if submitted_from is None else submitted_from.child()
    if not options:
        return state
    state.variables.update((name, Variable(None)) for name in _SET_BY_SLURM)
    given = {option.name: option for option in options}
    nodes = _nodes(given)
    per_node = given.get("ntasks_per_node")
    devices = given.get("gpus_per_node") or _gres(given)
    _set(state, ("SLURM_JOB_NUM_NODES", "SLURM_NNODES"), *nodes)
    _set(state, ("SLURM_NTASKS_PER_NODE",), _count(per_node), per_node)
    _set(state, ("SLURM_NTASKS", "SLURM_NPROCS"), *_tasks(given, nodes[0]))
    for option, name in (("gpus_per_node", "SLURM_GPUS_PER_NODE"), ("gpus", "SLURM_GPUS")):
        argument = given.get(option)
        if argument is not None and argument.known:
            _set(state, (name,), argument.value, argument)
    cpus = given.get("cpus_per_task")
    _set(state, ("SLURM_CPUS_PER_TASK",), _count(cpus), cpus)
    _set(state, ("SLURM_GPUS_ON_NODE",), _devices(devices), devices)
    return state


def _lines(text: str) -> Iterator[Span]:
    """What stands behind ``#SBATCH`` in each line before the first command."""
    at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end == -1 else end
        line = text[at:end].strip()
        if line and not line.startswith("#"):
            return
        found = _DIRECTIVE.match(text, at)
        if found is not None:
            yield Span(found.end(), end)
        at = end + 1


def _words(text: Text, span: Span) -> tuple[Word, ...]:
    """The words of one line; it is no command, so nothing in it is expanded and no sign ends it."""
    found: list[Word] = []
    for piece in _WORD.finditer(text.text, span.start, span.end):
        if piece[0].startswith("#"):
            break
        word, known = re.sub(r"[\"']", "", piece[0]), text.known(*piece.span())
        found.append(Word(word, text.places(*piece.span())[-1], known and "$" not in word))
    return tuple(found)


def _count(argument: Argument | None) -> str | None:
    if argument is None or argument.value is None or not argument.known:
        return None
    found = _COUNT.fullmatch(argument.value)
    return found[1] if found else None


def _devices(argument: Argument | None) -> str | None:
    if argument is None or argument.value is None or not argument.known:
        return None
    found = _DEVICES.fullmatch(argument.value)
    return found[1] if found else None


def _gres(given: dict[str, Argument]) -> Argument | None:
    gres = given.get("gres")
    return gres if gres is not None and (gres.value or "").startswith("gpu") else None


def _nodes(given: dict[str, Argument]) -> tuple[str | None, Argument | None]:
    """``--nodes N`` or ``N-N``; one node where nothing asks for more."""
    nodes = given.get("nodes")
    if nodes is not None:
        low, dash, high = (nodes.value or "").partition("-")
        return (_count(nodes._replace(value=low)) if not dash or low == high else None), nodes
    tasks = given.get("ntasks")
    alone = tasks is None or _count(tasks) == "1"
    if not alone or any(name in given for name in _MAY_NEED_NODES):
        return None, None
    return "1", next(iter(given.values()))


def _tasks(given: dict[str, Argument], nodes: str | None) -> tuple[str | None, Argument | None]:
    """``--ntasks``, or the tasks of each node times the nodes."""
    total, per_node = given.get("ntasks"), given.get("ntasks_per_node")
    if total is not None or per_node is None:
        return _count(total), total
    share = _count(per_node)
    return (str(int(nodes) * int(share)) if nodes and share else None), per_node


def _set(state: State, names: Sequence[str], value: str | None, argument: Argument | None) -> None:
    if value is None or argument is None:
        return
    place = argument.location.span
    for name in names:
        state.assign(name, (Chunk(value, (place,)),), place, export=True)
