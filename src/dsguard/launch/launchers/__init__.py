"""One module for each launcher, all of the same shape.

``read`` makes a :class:`~dsguard.launch.context.LaunchContext` of a
:class:`~dsguard.launch.call.Call`, and the options stand in a table. A module is imported when
its launcher occurs: a command has one or two.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dsguard.launch.call import Call
    from dsguard.launch.context import LaunchContext
    from dsguard.launch.words import Word

_PROGRAMS = {
    "accelerate": "accelerate",
    "accelerate-launch": "accelerate",
    "axolotl": "axolotl",
    "deepspeed": "deepspeed",
    "deepspeed.pt": "deepspeed",
    "ds": "deepspeed",
    "llamafactory-cli": "llamafactory",
    "lmf": "llamafactory",
    "mpiexec": "mpi",
    "mpiexec.hydra": "mpi",
    "mpirun": "mpi",
    "mpirun.mpich": "mpi",
    "mpirun.openmpi": "mpi",
    "orterun": "mpi",
    "srun": "srun",
    "swift": "swift",
    "torchrun": "torchrun",
    "trl": "trl",
}
"""The name of a program → the module that reads its words."""

_MODULES = {
    "accelerate.commands.accelerate_cli": "accelerate",
    "accelerate.commands.launch": "accelerate",
    "deepspeed.launcher.runner": "deepspeed",
    "torch.distributed.launch": "torchrun",
    "torch.distributed.run": "torchrun",
}
"""What is run by ``python -m`` → the module that reads its words."""


def launcher_of_program(name: str) -> str | None:
    """The module of the launcher that is called by this name, python included."""
    return "python" if is_python(name) else _PROGRAMS.get(name)


def launcher_of_module(name: str) -> str | None:
    """The module of the launcher that ``python -m NAME`` runs."""
    return _MODULES.get(name)


def launcher_of_file(name: str) -> str | None:
    """The module of the launcher that ``python NAME`` runs, as of those written in Python."""
    found = _PROGRAMS.get(name)
    return found if found in _MODULES.values() else None


def is_python(name: str) -> bool:
    """Whether a program is a Python interpreter."""
    pattern = r"(python|pypy)w?[0-9.]*t?(\.exe)?"
    return name.startswith(("python", "pypy")) and re.fullmatch(pattern, name) is not None


def runs_launcher_module(words: Sequence[Word]) -> bool:
    """Whether words start with the ``-m`` of a launcher: only python is called like that."""
    return len(words) > 1 and words[0].text == "-m" and words[1].text in _MODULES


def reader_of(launcher: str) -> Callable[[Call], LaunchContext]:
    """``read`` of the module of a launcher."""
    read: Callable[[Call], LaunchContext] = import_module(f"{__name__}.{launcher}").read
    return read
