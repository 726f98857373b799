"""Reading a launch command: prefixes off, then the reader of its launcher."""

from __future__ import annotations

from msgspec.structs import replace

from dsguard.launch.arguments import read_assignment
from dsguard.launch.call import Call, Surroundings
from dsguard.launch.context import Argument, Command, LaunchContext, LauncherName, Word
from dsguard.launch.counts import Counts
from dsguard.launch.jobs.find import has_jobs
from dsguard.launch.launchers import (
    launcher_of_program,
    reader_of,
    runs_launcher_module,
)
from dsguard.launch.prefixes import program_name, strip_prefixes
from dsguard.launch.scan import Scan
from dsguard.launch.words import hidden_part
from dsguard.model.fact import Unknown

__all__ = ["Surroundings", "read_launch"]

RUN_ONCE = frozenset(
    (
        "apptainer", "bsub", "catchsegv", "ch-run", "docker", "dumb-init", "enroot", "ncu", "nsys",
        "perf", "podman", "py-spy", "rocprof", "screen", "shifter", "singularity", "strace",
        "tini", "xvfb-run",
    )
)  # fmt: skip
"""Containers, profilers and the like: programs that run the command behind their options."""
_DEEPEST = 8
"""How many launchers may start one another: ``srun bash -c "mpirun ..."`` makes two."""


def read_launch(command: Command, surroundings: Surroundings) -> LaunchContext:
    """Read a launch command the way its launcher will.

    Whatever is not understood ends in an unknown fact with its reason. Nothing is executed;
    only a hostfile, a config file of the launcher and a file of arguments, where one is named,
    are read from disk.
    """
    exported = [read_assignment(command, word) for word in command.exported]
    set_before = tuple(variable for variable in exported if variable is not None)
    variables = (*surroundings.environ.variables, *set_before)
    launch = _Reading(command, surroundings).read(command.words, variables, 0)
    if not has_jobs(launch):
        return launch
    from dsguard.launch.jobs.attach import attach_jobs

    return attach_jobs(launch, surroundings.folder)


class _Reading:
    """One command that is being read."""

    def __init__(self, command: Command, surroundings: Surroundings) -> None:
        self.command = command
        self.surroundings = surroundings

    def read(
        self, words: tuple[Word, ...], outer: tuple[Argument, ...], depth: int
    ) -> LaunchContext:
        stripped = strip_prefixes(self.command, words, names_launcher, outer)
        environment = stripped.environment

        def call(program: Word, following: tuple[Word, ...]) -> Call:
            return Call(
                self.command,
                program,
                following,
                environment,
                self.surroundings,
                lambda inner: self.read(inner, environment, depth + 1),
            )

        if not stripped.words:
            nothing = Word("", self.command.span)
            return _unread(call(nothing, ()), "the launch command is empty")
        program, following = stripped.words[0], stripped.words[1:]
        if depth > _DEEPEST or stripped.unread:
            reason = stripped.unread or "too many commands start one another"
            return _unread(call(program, following), reason)
        if stripped.python is not None:
            return reader_of("python")(call(stripped.python, stripped.words))
        launcher = launcher_of_program(program_name(program))
        if launcher is None and not program.known and runs_launcher_module(following):
            launcher = "python"
        if launcher is not None:
            return reader_of(launcher)(call(program, following))
        at = launcher_inside(stripped.words)
        if at:
            inner = self.read(stripped.words[at:], environment, depth + 1)
            return inner if program_name(program) in RUN_ONCE else _perhaps_many(inner, program)
        return _script_only(call(program, following))


def names_launcher(word: Word) -> bool:
    """Whether a word names a launcher, or python."""
    return launcher_of_program(program_name(word)) is not None


def launcher_inside(words: tuple[Word, ...]) -> int:
    """Where a launcher stands behind a program that dsguard does not know, such as a container.

    0 where there is none. A word behind an option may be the option's value.
    """
    if words[0].text.endswith((".py", ".sh")):
        return 0
    for at in range(1, len(words)):
        if not words[at - 1].text.startswith("-") and names_launcher(words[at]):
            return at
    return 0


def _perhaps_many(inner: LaunchContext, program: Word) -> LaunchContext:
    """One process of a program that may start any number of them, such as ``jsrun``."""
    if inner.launcher is not LauncherName.PYTHON or inner.variable("WORLD_SIZE"):
        return inner
    name = program_name(program) if program.known else program.text
    unknown = Unknown(f"dsguard does not know how many processes {name} starts")
    return replace(
        inner,
        launcher=LauncherName.UNKNOWN,
        launcher_location=inner.command.locate(program),
        world_size=unknown,
        nodes=unknown,
        processes_per_node=unknown,
    )


def _unread(call: Call, reason: str) -> LaunchContext:
    return call.context(LauncherName.UNKNOWN, Scan((), None, ()), Counts.unknown(reason))


def _script_only(call: Call) -> LaunchContext:
    """A script with its flags, or a program that starts one in its own way."""
    program = call.program
    if not program.known:
        reason = f"the command starts with {program.text}; it is {hidden_part(program.text)}"
    elif program.text.endswith(".py"):
        reason = "no launcher in the command"
    else:
        reason = f"dsguard does not know how {program_name(program)} starts processes"
    scan = Scan((), program, call.words)
    return call.context(LauncherName.UNKNOWN, scan, Counts.unknown(reason))
